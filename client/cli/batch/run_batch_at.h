// Many frames, extracted where the flags say.
#ifndef SPEXD_CLIENT_CLI_BATCH_RUN_BATCH_AT_H_
#define SPEXD_CLIENT_CLI_BATCH_RUN_BATCH_AT_H_

#include <stop_token>
#include <vector>

#include "client/cli/batch/frame_batch.h"
#include "client/cli/batch/frame_list.h"
#include "client/cli/flags/where_flags.h"

namespace spexd::cli {

// RunBatch on one engine of this process, whose PSFs are shared, or on servers. `batch.in_flight` 0 is
// replaced by what suits this process or the servers. `upload`: send the files' bytes to the server. Errors
// go to stderr.
int RunBatchAt(const WhereFlags& where, bool upload, const std::vector<FrameTask>& tasks, BatchOptions batch,
               const std::stop_token& stop);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_BATCH_RUN_BATCH_AT_H_
