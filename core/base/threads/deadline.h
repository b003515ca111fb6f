// Requests to stop work. std::stop_token is the only way in this project to ask for a stop. This file adds
// what the standard library lacks: a stop at a given time, several reasons for one stop, and waits that a
// stop ends.
#ifndef SPEXD_CORE_BASE_THREADS_DEADLINE_H_
#define SPEXD_CORE_BASE_THREADS_DEADLINE_H_

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "core/base/threads/mutex.h"

namespace spexd {

// Requests a stop of `source` at `when`, unless it is destroyed before. A thread waits for that time; without
// a time there is no thread. Throws std::system_error if the thread cannot be started.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  Deadline(std::stop_source source, std::optional<Clock::time_point> when);
  // Measures the time left until `when` on construction. Later changes of the system's clock do not matter.
  Deadline(std::stop_source source, std::optional<std::chrono::system_clock::time_point> when);
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  bool passed() const { return when_.has_value() && Clock::now() >= *when_; }

 private:
  const std::optional<Clock::time_point> when_;
  std::jthread thread_;
};

// Requests a stop of `source` when a stop of `reason` is requested, as long as this object lives; at once if
// there was a request already.
class ForwardStop {
 public:
  ForwardStop(std::stop_token reason, std::stop_source source)
      : callback_(std::move(reason), Request{std::move(source)}) {}

 private:
  struct Request {
    std::stop_source source;
    void operator()() { source.request_stop(); }
  };
  std::stop_callback<Request> callback_;
};

// Wakes all threads that wait for `condition` under `mutex` when a stop is requested, as long as this object
// lives. Construct it before the mutex is taken. Whoever requests the stop must not hold the mutex.
class WakeOnStop {
 public:
  WakeOnStop(std::stop_token stop, Mutex* mutex, CondVar* condition)
      : callback_(std::move(stop), Wake{mutex, condition}) {}

 private:
  struct Wake {
    Mutex* mutex;
    CondVar* condition;
    void operator()() {
      MutexLock lock(mutex);  // no waiter is between its look at the token and its wait
      condition->NotifyAll();
    }
  };
  std::stop_callback<Wake> callback_;
};

// Cancelled if a stop was requested, else OK.
absl::Status CheckStop(const std::stop_token& stop);

// Sleeps for `duration` or until a stop is requested. Returns whether one was.
bool SleepUnlessStopped(std::chrono::nanoseconds duration, std::stop_token stop);

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_THREADS_DEADLINE_H_
