// A bounded number of threads for work that has time: who needs some waits in line for them.
#ifndef SPEXD_SERVER_BASE_THREAD_LINE_H_
#define SPEXD_SERVER_BASE_THREAD_LINE_H_

#include <algorithm>
#include <list>
#include <stop_token>
#include <utility>

#include "absl/status/statusor.h"
#include "core/base/threads/deadline.h"
#include "core/base/threads/mutex.h"

namespace spexd {

// First come, first served. Safe to use from many threads; outlives its parts.
class ThreadLine {
 public:
  explicit ThreadLine(int all) : free_(std::max(all, 1)), all_(free_) {}

  // Threads that its holder may use, as long as it lives.
  class Part {
   public:
    Part(Part&& other) noexcept : of_(std::exchange(other.of_, nullptr)), threads_(other.threads_) {}
    Part& operator=(Part&&) = delete;
    ~Part() {
      if (of_ != nullptr) of_->GiveBack(threads_);
    }
    int threads() const { return threads_; }  // at least 1

   private:
    friend class ThreadLine;
    Part(ThreadLine* of, int threads) : of_(of), threads_(threads) {}
    ThreadLine* of_;
    const int threads_;
  };

  // Takes at most `most` threads, or all if there are fewer. Cancelled when a stop is requested.
  absl::StatusOr<Part> WaitFor(int most, const std::stop_token& stop) {
    const int threads = std::clamp(most, 1, all_);
    const WakeOnStop wake(stop, &mutex_, &changed_);
    MutexLock lock(&mutex_);
    const auto place = line_.insert(line_.end(), threads);
    while ((place != line_.begin() || threads > free_) && !stop.stop_requested()) changed_.Wait(&mutex_);
    line_.erase(place);
    changed_.NotifyAll();
    if (stop.stop_requested())
      return absl::CancelledError("the job was cancelled while it waited for threads");
    free_ -= threads;
    return Part(this, threads);
  }

 private:
  void GiveBack(int threads) {
    MutexLock lock(&mutex_);
    free_ += threads;
    changed_.NotifyAll();
  }

  Mutex mutex_;
  CondVar changed_;
  std::list<int> line_ ABSL_GUARDED_BY(mutex_);  // threads that are waited for, next first
  int free_ ABSL_GUARDED_BY(mutex_);
  const int all_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_BASE_THREAD_LINE_H_
