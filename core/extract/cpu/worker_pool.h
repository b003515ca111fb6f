// Threads that run tasks in the order given, and shares of memory for them.
#ifndef SPEXD_CORE_EXTRACT_CPU_WORKER_POOL_H_
#define SPEXD_CORE_EXTRACT_CPU_WORKER_POOL_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <stop_token>
#include <thread>
#include <vector>

#include "core/base/threads/mutex.h"

namespace spexd {

class WorkerPool {
 public:
  // A task gets the number of the worker that runs it, 0..threads-1, so that it can use that worker's memory.
  // It must not throw.
  using Task = std::function<void(int worker)>;

  // Throws std::system_error, with no thread left running, if a thread cannot be started.
  explicit WorkerPool(int threads);
  // Runs the queued tasks, then joins the threads.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()); }
  void Run(Task task) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void StopAndJoin() ABSL_LOCKS_EXCLUDED(mutex_);
  void Work(int worker) ABSL_LOCKS_EXCLUDED(mutex_);

  Mutex mutex_;
  CondVar changed_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> workers_;
};

// A number of equal shares. Callers take several at a time and are served in the order of their calls.
class Shares {
 public:
  explicit Shares(int count) : free_(count) {}

  // Blocks until `count` shares are free and all earlier callers have theirs. Returns false, with nothing
  // taken, once a stop is requested. REQUIRES: count <= the total.
  bool Take(int count, const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mutex_);
  void Return(int count) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Mutex mutex_;
  CondVar changed_;
  int free_ ABSL_GUARDED_BY(mutex_);
  std::list<int> waiters_
      ABSL_GUARDED_BY(mutex_);  // number of shares that each waiter wants, in the order of arrival
};

}  // namespace spexd

#endif  // SPEXD_CORE_EXTRACT_CPU_WORKER_POOL_H_
