// Tells calls and connections that a time has passed: gRPC's reads and writes have no time limit of their
// own, nor have connections to the HTTP port.
#ifndef SPEXD_SERVER_BASE_STALL_WATCHDOG_H_
#define SPEXD_SERVER_BASE_STALL_WATCHDOG_H_

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <thread>

#include "core/base/threads/mutex.h"

namespace spexd {

class StallWatchdog {
 public:
  using Clock = std::chrono::steady_clock;

  StallWatchdog() : thread_([this] { Loop(); }) {}
  ~StallWatchdog();

  // Watches one call or connection for as long as it lives.
  class Watch {
   public:
    // `cut_off` is called from the watchdog's thread, under its lock: it must neither block nor use a watch.
    Watch(StallWatchdog* watchdog, std::function<void()> cut_off);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    // `cut_off` is called once `deadline` has passed, unless this is called again before, or the watch ends.
    void Arm(Clock::time_point deadline);

   private:
    friend class StallWatchdog;
    using Armed = std::multimap<Clock::time_point, Watch*>;
    void Disarm();  // REQUIRES: the watchdog's mutex is held

    StallWatchdog* const watchdog_;
    const std::function<void()> cut_off_;
    std::optional<Armed::iterator> entry_;  // while it is armed
  };

 private:
  void Loop();

  Mutex mutex_;
  CondVar changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  // When the thread looks again: it is woken for earlier deadlines alone, as most are put off before they
  // pass.
  Clock::time_point looks_ ABSL_GUARDED_BY(mutex_) = Clock::time_point::min();
  Watch::Armed armed_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_BASE_STALL_WATCHDOG_H_
