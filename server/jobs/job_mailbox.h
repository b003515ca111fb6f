// The mailbox between a job's thread and the thread that sends to the client. The engine never waits for the
// client, because the memory for all results was reserved before extraction.
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

  // `wake` is called after Next returned kNothing, when there is another event or the end. It must not block
  // or throw. No lock is held during the call, because the reader may already have taken everything and
  // destroyed the mailbox.
  explicit JobMailbox(std::function<void()> wake)
      : wake_(std::make_shared<const std::function<void()>>(std::move(wake))) {}

  void Push(JobEvent event) {
    Wake([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { events_.push_back(std::move(event)); });
  }
  void Close() {
    Wake([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { closed_ = true; });
  }
  // Takes the next event without waiting. kEnd: the mailbox is closed and all events were taken.
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
  // Makes the change and wakes the reader if it waits. Does not use the mailbox after the lock is released.
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
