// The run of a batch in this process or on servers.
#ifndef SPEXD_CLIENT_CLI_BATCH_RUN_BATCH_AT_H_
#define SPEXD_CLIENT_CLI_BATCH_RUN_BATCH_AT_H_

#include <stop_token>

#include "absl/status/statusor.h"
#include "client/cli/batch/frame_batch.h"
#include "client/cli/batch/frame_task.h"
#include "client/cli/flags/job_flags.h"
#include "client/cli/flags/where_flags.h"

namespace spexd::cli {

// Calls RunBatch on one engine of this process, with shared PSFs, or on servers. `batch.in_flight` 0 is
// replaced by a suitable number. `job`: its upload and priority hold for all jobs. Errors, before any frame
// is extracted: those of the servers' addresses, the device, or the inputs of products.
absl::StatusOr<BatchEnd> RunBatchAt(const WhereFlags& where, const JobFlags& job, FrameSource* source,
                                    BatchOptions batch, const std::stop_token& stop);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_BATCH_RUN_BATCH_AT_H_
