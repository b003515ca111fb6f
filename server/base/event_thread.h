// The thread on which calls take their next step when something other than gRPC wakes them: a slot, an event
// of their job, or a time limit.
#ifndef SPEXD_SERVER_BASE_EVENT_THREAD_H_
#define SPEXD_SERVER_BASE_EVENT_THREAD_H_

#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "core/base/threads/mutex.h"

namespace spexd {

class EventThread {
 public:
  // A call's next step. It may be posted any number of times.
  class Step {
   public:
    // `run` must not block for long or throw.
    explicit Step(std::function<void()> run) : run_(std::move(run)) {}

   private:
    friend class EventThread;
    const std::function<void()> run_;
    bool posted_ = false;  // guarded by the thread's mutex
  };

  EventThread() : thread_([this] { Loop(); }) {}
  // Runs all posted steps, then ends the thread.
  ~EventThread();

  // Runs the step on the thread, in the order of posting. A step that is posted again before it begins runs
  // once. The caller may hold locks that the step takes. If there is no memory for the step, the process
  // ends: without the step, its call would wait for ever.
  void Post(std::shared_ptr<Step> step) noexcept ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Loop() ABSL_LOCKS_EXCLUDED(mutex_);

  Mutex mutex_;
  CondVar changed_;
  std::deque<std::shared_ptr<Step>> steps_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_BASE_EVENT_THREAD_H_
