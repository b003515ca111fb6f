// Time limits of calls and connections. gRPC's reads and writes, and connections to the HTTP port, have no
// time limits of their own.
#ifndef SPEXD_SERVER_BASE_STALL_WATCHDOG_H_
#define SPEXD_SERVER_BASE_STALL_WATCHDOG_H_

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <thread>

#include "core/base/threads/mutex.h"

namespace spexd {

// A thread that calls back when a time has passed. Safe to use from many threads.
class StallWatchdog {
 public:
  using Clock = std::chrono::steady_clock;

  StallWatchdog() : thread_([this] { Loop(); }) {}
  ~StallWatchdog();

  // The time limit of one call or connection.
  class Watch {
   public:
    // `cut_off` is called by the watchdog's thread, under its lock. It must not block or use a watch.
    Watch(StallWatchdog* watchdog, std::function<void()> cut_off);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    // Calls `cut_off` when `deadline` has passed, unless Arm is called again or the watch is destroyed
    // before.
    void Arm(Clock::time_point deadline);

   private:
    friend class StallWatchdog;
    using Armed = std::multimap<Clock::time_point, Watch*>;
    void Disarm();  // REQUIRES: the watchdog's mutex is held

    StallWatchdog* const watchdog_;
    const std::function<void()> cut_off_;
    std::optional<Armed::iterator> entry_;  // set while the watch is armed
  };

 private:
  void Loop();

  Mutex mutex_;
  CondVar changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  // When the thread wakes next. Arm wakes it only for earlier deadlines, because most deadlines are postponed
  // before they pass.
  Clock::time_point looks_ ABSL_GUARDED_BY(mutex_) = Clock::time_point::min();
  Watch::Armed armed_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_BASE_STALL_WATCHDOG_H_
