// Threads for the parts of calls that may block or compute: gRPC's own threads must do neither.
#ifndef SPEXD_SERVER_BASE_TASK_THREADS_H_
#define SPEXD_SERVER_BASE_TASK_THREADS_H_

#include <deque>
#include <functional>
#include <list>
#include <thread>

#include "absl/status/status.h"
#include "core/base/threads/mutex.h"

namespace spexd {

class TaskThreads {
 public:
  // `max`: maximum number of tasks at once.
  explicit TaskThreads(int max) : max_(max) {}
  // Waits for all tasks. REQUIRES: a stop of each was requested, or it ends by itself.
  ~TaskThreads();

  // Runs `task` on a thread that it has to itself. It must not throw. ResourceExhausted with a retry delay,
  // and the task will not run: too many tasks, or no thread available.
  absl::Status Start(std::function<void()> task) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Threads = std::list<std::jthread>;

  void Loop(Threads::iterator thread, std::function<void()> task) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for another task, unless enough threads do. False: the thread is to end.
  bool WaitForTask(std::function<void()>* task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int max_;
  Mutex mutex_;
  CondVar changed_, task_came_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;  // tasks that have not ended
  int idle_ ABSL_GUARDED_BY(mutex_) = 0;  // threads that wait for one: a new thread costs a small job's time
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);  // of idle threads, not yet taken
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  Threads threads_ ABSL_GUARDED_BY(mutex_);
  Threads ended_ ABSL_GUARDED_BY(mutex_);  // about to return: joined when the next task comes
};

}  // namespace spexd

#endif  // SPEXD_SERVER_BASE_TASK_THREADS_H_
