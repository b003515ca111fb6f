// Loading files into the cache of what is kept warm, within the server's budgets of memory.
#ifndef SPEXD_SERVER_JOBS_WARM_FILE_H_
#define SPEXD_SERVER_JOBS_WARM_FILE_H_

#include <cstdint>
#include <stop_token>

#include "absl/status/statusor.h"
#include "server/admission/warm_cache.h"
#include "server/jobs/job_inputs.h"
#include "server/jobs/server_parts.h"

namespace spexd {

// Limit of the bytes of an item's file, also once inflated.
int64_t MaxFileBytes(const ServerOptions& options, WarmKind kind);

// Memory that ReadWarmItem takes, as the file's headers tell: an upper estimate. Cancelled as it is.
absl::StatusOr<int64_t> DecodeBytes(WarmKind kind, const Source& source, const std::stop_token& stop);

// Reads an item from its file. Cancelled if a stop is requested.
absl::StatusOr<WarmItem> ReadWarmItem(WarmKind kind, const Source& source, const std::stop_token& stop);

// ResourceExhausted, naming value and limit, before memory is taken that is not there: with a retry delay if
// other jobs hold it. Else the errors of FileInput, ReadWarmItem and WarmCache::GetOrLoad.
absl::StatusOr<WarmCache::Lease> LoadWarmFile(const ServerParts& parts, FileInput file, WarmCache::Keep keep,
                                              const std::stop_token& stop, WarmKind kind = WarmKind::kPsf);

}  // namespace spexd

#endif  // SPEXD_SERVER_JOBS_WARM_FILE_H_
