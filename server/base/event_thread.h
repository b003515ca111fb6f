// A thread on which calls take their next step after something other than gRPC woke them: a turn in the
// queue, an event of their job, a time that passed.
#ifndef SPEXD_SERVER_BASE_EVENT_THREAD_H_
#define SPEXD_SERVER_BASE_EVENT_THREAD_H_

#include <functional>
#include <memory>
#include <thread>

#include "core/base/threads/mutex.h"

namespace spexd {

class EventThread {
 public:
  // Made before it is needed, so that posting it takes no memory and cannot fail.
  class Step {
   public:
    // `run` must not block for long, nor throw.
    explicit Step(std::function<void()> run) : run_(std::move(run)) {}

   private:
    friend class EventThread;
    const std::function<void()> run_;
    bool posted_ = false;         // guarded by the thread's mutex, as is the next
    std::shared_ptr<Step> next_;  // in the order of posting
  };

  EventThread() : thread_([this] { Loop(); }) {}
  // Runs what was posted, then ends.
  ~EventThread();

  // Runs the step on the thread, in the order of these calls; once, if it is posted again before it begins.
  // The caller may hold locks that the step takes.
  void Post(std::shared_ptr<Step> step) noexcept ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Loop() ABSL_LOCKS_EXCLUDED(mutex_);

  Mutex mutex_;
  CondVar changed_;
  std::shared_ptr<Step> first_ ABSL_GUARDED_BY(mutex_);
  Step* last_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_BASE_EVENT_THREAD_H_
