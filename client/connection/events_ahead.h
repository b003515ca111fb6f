// A reader of a job's events that reads ahead: its thread reads the next events from the socket while the
// caller works on earlier ones.
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
  // Nothing else may read the stream meanwhile. Throws std::system_error if no thread can be started.
  explicit EventsAhead(EventStream* stream) : stream_(stream), thread_([this] { ReadAll(); }) {}
  // Cancels the call if it has not ended.
  ~EventsAhead() {
    MutexLock lock(&mutex_);
    if (!ended_) stream_->Cancel();
    dropped_ = true;
    changed_.NotifyAll();
  }

  // Waits for the next event. Returns false if there are no more. Rethrows an exception of reading.
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
  static constexpr size_t kMaxAhead = 4;  // further events wait in the server

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
  std::jthread thread_;  // the last member, so that it begins after the others are constructed
};

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_CONNECTION_EVENTS_AHEAD_H_
