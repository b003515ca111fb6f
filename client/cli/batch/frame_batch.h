// Many frames by one command: a number of them at once, and one summary of all.
#ifndef SPEXD_CLIENT_CLI_BATCH_FRAME_BATCH_H_
#define SPEXD_CLIENT_CLI_BATCH_FRAME_BATCH_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <stop_token>
#include <vector>

#include "client/cli/batch/frame_list.h"
#include "client/cli/terminal/progress.h"
#include "client/job.h"

namespace spexd::cli {

// Knows which tasks are done already, and notes those that a batch does. Safe to use from many threads.
class BatchRecord {
 public:
  enum class State { kToDo, kDone, kElsewhere };

  virtual ~BatchRecord() = default;
  // kToDo: the task is the caller's until End. kElsewhere: another process is at it; it may be asked for
  // again.
  virtual absl::StatusOr<State> Begin(size_t task) = 0;
  // The task's files were written. An error if that could not be noted.
  virtual absl::Status Done(size_t task, const JobOutcome& outcome) = 0;
  virtual void Failed(size_t task, const absl::Status& status) = 0;
  virtual void End(size_t task) = 0;
};

struct BatchOptions {
  int in_flight = 1;
  ProgressStyle style = ProgressStyle::kLines;
  bool quiet = false, verbose = false;
  std::chrono::steady_clock::time_point start;  // when the command began
  BatchRecord* record = nullptr;                // none: every task is to be done
  // Called for each job that the extractor will not see; may be empty.
  std::function<void(const client::Job&)> on_unused = {};
  int threads = 1;  // that write a frame
  std::optional<double> max_chi2pix = {};  // of --max-chi2pix
};

// Runs the tasks, at most `in_flight` at once, and writes each frame when it is complete. A frame that fails
// is named on stderr and stops no other. If no server takes any of them, the remaining ones are not tried.
// Those that another process is at come last. Returns the highest exit code of all, or kInterrupted once a
// stop is requested; frames that are written by then stay. `extractor` is used from many threads.
int RunBatch(const std::vector<FrameTask>& tasks, const BatchOptions& options, client::Extractor* extractor,
             const std::stop_token& stop);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_BATCH_FRAME_BATCH_H_
