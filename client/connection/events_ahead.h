// The events of a call that runs a job, read by a thread of their own: the next ones come from the socket
// while this side is busy with earlier ones.
#ifndef SPEXD_CLIENT_CONNECTION_EVENTS_AHEAD_H_
#define SPEXD_CLIENT_CONNECTION_EVENTS_AHEAD_H_

#include <cstddef>
#include <deque>
#include <exception>
#include <thread>
#include <utility>

#include "client/connection/connection.h"
#include "core/base/threads/mutex.h"

namespace spexd::client {

class EventsAhead {
 public:
  // Nobody else reads the stream meanwhile. Throws std::system_error if no thread can be started.
  explicit EventsAhead(EventStream* stream) : stream_(stream), thread_([this] { ReadAll(); }) {}
  // Cancels the call unless it has ended.
  ~EventsAhead() {
    MutexLock lock(&mutex_);
    if (!ended_) stream_->Cancel();
    dropped_ = true;
    changed_.NotifyAll();
  }

  // Waits for the next event; false: no more events. Throws what reading threw.
  bool Next(v1::ExtractEvent* event) {
    MutexLock lock(&mutex_);
    while (events_.empty() && !ended_) changed_.Wait(&mutex_);
    if (events_.empty() && error_ != nullptr) std::rethrow_exception(error_);
    if (events_.empty()) return false;
    *event = std::move(events_.front());
    events_.pop_front();
    changed_.NotifyAll();
    return true;
  }

 private:
  static constexpr size_t kMaxAhead = 4;  // more wait in the server

  void ReadAll() {
    try {
      for (v1::ExtractEvent event; stream_->Read(&event);) {
        MutexLock lock(&mutex_);
        while (events_.size() == kMaxAhead && !dropped_) changed_.Wait(&mutex_);
        if (dropped_) continue;
        events_.push_back(std::move(event));
        changed_.NotifyAll();
      }
    } catch (...) {
      error_ = std::current_exception();
    }
    MutexLock lock(&mutex_);
    ended_ = true;
    changed_.NotifyAll();
  }

  EventStream* const stream_;
  std::exception_ptr error_;  // set before ended_
  Mutex mutex_;
  CondVar changed_;
  std::deque<v1::ExtractEvent> events_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool dropped_ ABSL_GUARDED_BY(mutex_) = false;
  std::jthread thread_;  // the last, so that it begins when all else is there
};

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_CONNECTION_EVENTS_AHEAD_H_
