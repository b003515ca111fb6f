// Loading files into the cache of what is kept warm, within the server's budgets of memory.
#ifndef SPEXD_SERVER_JOBS_WARM_FILE_H_
#define SPEXD_SERVER_JOBS_WARM_FILE_H_

#include <stop_token>

#include "absl/status/statusor.h"
#include "server/admission/warm_cache.h"
#include "server/inputs/job_inputs.h"
#include "server/jobs/server_parts.h"

namespace spexd {

// ResourceExhausted, naming value and limit, before memory is taken that is not there: with a retry delay if
// other jobs hold it. Else the errors of FileInput, ReadWarmItem and WarmCache::GetOrLoad.
absl::StatusOr<WarmCache::Lease> LoadWarmFile(const ServerParts& parts, FileInput file, WarmCache::Keep keep,
                                              const std::stop_token& stop, WarmKind kind = WarmKind::kPsf);

}  // namespace spexd

#endif  // SPEXD_SERVER_JOBS_WARM_FILE_H_
