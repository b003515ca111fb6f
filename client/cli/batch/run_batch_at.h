// Many frames, extracted where the flags say.
#ifndef SPEXD_CLIENT_CLI_BATCH_RUN_BATCH_AT_H_
#define SPEXD_CLIENT_CLI_BATCH_RUN_BATCH_AT_H_

#include <stop_token>

#include "absl/status/statusor.h"
#include "client/cli/batch/frame_batch.h"
#include "client/cli/batch/frame_task.h"
#include "client/cli/flags/job_flags.h"
#include "client/cli/flags/where_flags.h"

namespace spexd::cli {

// RunBatch on one engine of this process, whose PSFs are shared, or on servers. `batch.in_flight` 0 is
// replaced by what suits this process or the servers. `job`: its upload and priority are those of all jobs.
// Errors: of the servers' addresses, the device, or the inputs of products; nothing was done then.
absl::StatusOr<BatchEnd> RunBatchAt(const WhereFlags& where, const JobFlags& job, FrameSource* source,
                                    BatchOptions batch, const std::stop_token& stop);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_BATCH_RUN_BATCH_AT_H_
