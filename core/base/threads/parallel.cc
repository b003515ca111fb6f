#include "core/base/threads/parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/threads/deadline.h"
#include "core/base/threads/guard.h"
#include "core/base/threads/mutex.h"

namespace spexd {
namespace {

// The pieces of one loop, taken in turn by any free thread, and the error of the least index.
class Pieces {
 public:
  Pieces(int64_t count, const std::function<absl::Status(int64_t)>& body)
      : count_(count), body_(body), error_index_(count) {}

  void Work() ABSL_LOCKS_EXCLUDED(mutex_) {
    while (!failed_.load(std::memory_order_relaxed)) {
      const int64_t index = next_.fetch_add(1, std::memory_order_relaxed);
      if (index >= count_) return;
      absl::Status status = CatchExceptions([&] { return body_(index); });
      if (status.ok()) continue;
      failed_.store(true, std::memory_order_relaxed);
      MutexLock lock(&mutex_);
      if (index >= error_index_) continue;
      error_ = std::move(status);
      error_index_ = index;
    }
  }
  absl::Status error() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return error_;
  }

 private:
  const int64_t count_;
  const std::function<absl::Status(int64_t)>& body_;
  std::atomic<int64_t> next_{0};
  std::atomic<bool> failed_{false};
  Mutex mutex_;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
  int64_t error_index_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::Status ParallelFor(int64_t count, int threads, const std::function<absl::Status(int64_t)>& body) {
  constexpr int64_t kMaxThreads = 64;
  Pieces pieces(count, body);
  {
    std::vector<std::jthread> helpers;
    const int64_t workers = std::min({int64_t{threads}, count, kMaxThreads});
    try {
      helpers.reserve(static_cast<size_t>(std::max<int64_t>(workers - 1, 0)));
      for (int64_t k = 1; k < workers; ++k) helpers.emplace_back([&pieces] { pieces.Work(); });
    } catch (...) {
      // No more threads, or no memory for them: the running threads do the work.
    }
    pieces.Work();
  }
  return pieces.error();
}

absl::Status ParallelFor(int64_t count, const Workers& workers,
                         const std::function<absl::Status(int64_t)>& body) {
  return ParallelFor(count, workers.threads, [&](int64_t index) {
    const absl::Status stopped = CheckStop(workers.stop);
    return stopped.ok() ? body(index) : stopped;
  });
}

}  // namespace spexd
