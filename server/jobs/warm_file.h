// Loading of files into the warm cache, within the server's memory budgets.
#ifndef SPEXD_SERVER_JOBS_WARM_FILE_H_
#define SPEXD_SERVER_JOBS_WARM_FILE_H_

#include <stop_token>

#include "absl/status/statusor.h"
#include "server/admission/warm_cache.h"
#include "server/inputs/job_inputs.h"
#include "server/jobs/server_parts.h"

namespace spexd {

// Loads a file unless it is warm. Reserves memory before it is allocated. ResourceExhausted names value and
// limit: there is too little memory; with a retry delay if other jobs hold it. Other errors are those of
// FileInput, ReadWarmItem and WarmCache::GetOrLoad.
absl::StatusOr<WarmCache::Lease> LoadWarmFile(const ServerParts& parts, FileInput file, WarmCache::Keep keep,
                                              const std::stop_token& stop, WarmKind kind = WarmKind::kPsf);

}  // namespace spexd

#endif  // SPEXD_SERVER_JOBS_WARM_FILE_H_
