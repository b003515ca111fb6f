#include "client/cli/batch/frame_task.h"

#include <condition_variable>
#include <mutex>
#include <utility>

namespace spexd::cli {

void Pause(std::chrono::milliseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, stop, time, [] { return false; });
}

std::optional<NumberedFrame> ListedFrames::Next(const std::stop_token& stop) {
  {
    const MutexLock lock(&mutex_);
    if (next_ < tasks_.size()) {
      const size_t k = next_++;
      return NumberedFrame{k, tasks_[k]};
    }
    if (later_.empty()) return std::nullopt;
    if (before_pause_ > 0) return TakeLater();
  }
  Pause(kLookAgain, stop);
  const MutexLock lock(&mutex_);
  if (later_.empty()) return std::nullopt;
  before_pause_ = later_.size();
  return TakeLater();
}

NumberedFrame ListedFrames::TakeLater() {
  --before_pause_;
  NumberedFrame frame = std::move(later_.back());
  later_.pop_back();
  return frame;
}

void ListedFrames::Later(NumberedFrame frame) {
  const MutexLock lock(&mutex_);
  later_.insert(later_.begin(), std::move(frame));
}

std::vector<NumberedFrame> ListedFrames::Rest() {
  const MutexLock lock(&mutex_);
  std::vector<NumberedFrame> rest = std::exchange(later_, {});
  for (; next_ < tasks_.size(); ++next_) rest.push_back({next_, tasks_[next_]});
  return rest;
}

std::vector<std::string> ListedFrames::Psfs() const {
  std::vector<std::string> psfs;
  for (const FrameTask& task : tasks_) psfs.push_back(task.job.psf);
  return psfs;
}

}  // namespace spexd::cli
