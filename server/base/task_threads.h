// The threads for work of calls that may block or compute, which gRPC's own threads must not do.
#ifndef SPEXD_SERVER_BASE_TASK_THREADS_H_
#define SPEXD_SERVER_BASE_TASK_THREADS_H_

#include <deque>
#include <functional>
#include <list>
#include <thread>

#include "absl/status/status.h"
#include "core/base/threads/mutex.h"

namespace spexd {

// Safe to use from many threads.
class TaskThreads {
 public:
  // `max`: the maximum number of tasks at once.
  explicit TaskThreads(int max) : max_(max) {}
  // Waits for all tasks. REQUIRES: all tasks end soon, by themselves or because they were asked to stop.
  ~TaskThreads();

  // Runs `task` on a thread of its own. It must not throw. ResourceExhausted with a retry delay: there are
  // too many tasks, or the system starts no thread; the task will not run.
  absl::Status Start(std::function<void()> task) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Threads = std::list<std::jthread>;

  void Loop(Threads::iterator thread, std::function<void()> task) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for another task, unless enough threads wait already. Returns false if the thread should end.
  bool WaitForTask(std::function<void()>* task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int max_;
  Mutex mutex_;
  CondVar changed_, task_came_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;  // tasks that have not ended
  int idle_ ABSL_GUARDED_BY(mutex_) = 0;     // threads that wait for a task
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);  // for idle threads, not yet taken
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  Threads threads_ ABSL_GUARDED_BY(mutex_);
  Threads ended_ ABSL_GUARDED_BY(mutex_);  // threads that are about to return; the next Start joins them
};

}  // namespace spexd

#endif  // SPEXD_SERVER_BASE_TASK_THREADS_H_
