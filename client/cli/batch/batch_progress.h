// The progress of a batch of frames: a bar on a terminal, one line per frame in a log.
#ifndef SPEXD_CLIENT_CLI_BATCH_BATCH_PROGRESS_H_
#define SPEXD_CLIENT_CLI_BATCH_BATCH_PROGRESS_H_

#include <chrono>
#include <string>

#include "client/cli/terminal/progress.h"
#include "client/job.h"
#include "core/base/threads/mutex.h"

namespace spexd::cli {

// Safe to use from many threads.
class BatchProgress {
 public:
  // `frames`: the number of frames; 0: not known.
  BatchProgress(ProgressStyle style, int frames) : style_(style), frames_(frames) {}
  ~BatchProgress() { End(); }

  void OnBundle(const BundleSpectra& bundle);
  // Report that a frame has ended as `line` says. OnWritten prints the line on stdout, and only in a log;
  // OnFailed prints it on stderr.
  void OnWritten(const std::string& line);
  void OnFailed(const std::string& line);
  // Prints a line on stderr without breaking the bar's line.
  void Note(const std::string& line);
  // Ends the bar's line.
  void End();
  bool shown() const { return style_ != ProgressStyle::kNone; }

 private:
  void PrintError(const std::string& line) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Draw() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ProgressStyle style_;
  const int frames_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  Mutex mutex_;
  int ended_ ABSL_GUARDED_BY(mutex_) = 0;
  int spectra_ ABSL_GUARDED_BY(mutex_) = 0;
  bool drawn_ ABSL_GUARDED_BY(mutex_) = false;
};

// The observer of one frame's job.
class FrameObserver : public JobObserver {
 public:
  // `name`: the beginning of lines about the frame.
  FrameObserver(BatchProgress* progress, std::string name) : progress_(progress), name_(std::move(name)) {}

  void OnAccepted(const std::string& job_id, int queue_position) override { accepted_ = true; }
  void OnBundle(const BundleSpectra& bundle, int done, int total) override { progress_->OnBundle(bundle); }
  void OnRetry(int attempt, const absl::Status& reason, std::chrono::milliseconds delay) override;
  // Whether a server took the frame, even if it lost it later.
  bool accepted() const { return accepted_; }

 private:
  BatchProgress* const progress_;
  const std::string name_;
  bool accepted_ = false;
};

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_BATCH_BATCH_PROGRESS_H_
