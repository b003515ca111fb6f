// A thread on which calls take their next step after something other than gRPC woke them: a slot granted by
// the queue, an event of their job, a time that passed.
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
  // What a call does once it is woken; may be posted any number of times.
  class Step {
   public:
    // `run` must not block for long, nor throw.
    explicit Step(std::function<void()> run) : run_(std::move(run)) {}

   private:
    friend class EventThread;
    const std::function<void()> run_;
    bool posted_ = false;  // guarded by the thread's mutex
  };

  EventThread() : thread_([this] { Loop(); }) {}
  // Runs what was posted, then ends.
  ~EventThread();

  // Runs the step on the thread, in the order of these calls; once, if it is posted again before it begins.
  // The caller may hold locks that the step takes. A step that is lost would leave its call waiting for ever:
  // the process ends if there is no memory for it.
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
