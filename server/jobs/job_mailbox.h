// Passes events from a job's thread to the thread that talks to the client. The engine never waits here: the
// memory that results may take was reserved before the job began.
#ifndef SPEXD_SERVER_JOBS_JOB_MAILBOX_H_
#define SPEXD_SERVER_JOBS_JOB_MAILBOX_H_

#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "core/base/threads/mutex.h"
#include "server/messages/job_event.h"

namespace spexd {

class JobMailbox {
 public:
  enum class Got { kEvent, kNothing, kEnd };

  // `wake` is called after kNothing, once there is another event. No lock is held then: the reader that it
  // wakes may already have taken everything and destroyed the mailbox. It must neither block nor throw.
  explicit JobMailbox(std::function<void()> wake)
      : wake_(std::make_shared<const std::function<void()>>(std::move(wake))) {}

  void Push(JobEvent event) {
    Wake([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { events_.push_back(std::move(event)); });
  }
  void Close() {
    Wake([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { closed_ = true; });
  }
  // The next event, kEnd once all were taken from a closed mailbox. Does not wait.
  Got Next(JobEvent* event) {
    MutexLock lock(&mutex_);
    if (!events_.empty()) {
      *event = std::move(events_.front());
      events_.pop_front();
      return Got::kEvent;
    }
    asleep_ = !closed_;
    return closed_ ? Got::kEnd : Got::kNothing;
  }

 private:
  // Makes the change and wakes who waits for one. Nothing of the mailbox is touched once the lock is
  // released.
  template <typename Change>
  void Wake(const Change& change) {
    std::shared_ptr<const std::function<void()>> wake;
    {
      MutexLock lock(&mutex_);
      change();
      if (std::exchange(asleep_, false)) wake = wake_;
    }
    if (wake != nullptr) (*wake)();
  }

  const std::shared_ptr<const std::function<void()>> wake_;
  Mutex mutex_;
  std::deque<JobEvent> events_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool asleep_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_JOBS_JOB_MAILBOX_H_
