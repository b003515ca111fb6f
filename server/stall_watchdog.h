// Cuts off clients that take too long: gRPC's synchronous reads and writes have no time limit of their own,
// nor have connections to the HTTP port.
#ifndef SPEXD_SERVER_STALL_WATCHDOG_H_
#define SPEXD_SERVER_STALL_WATCHDOG_H_

#include <chrono>
#include <functional>
#include <list>
#include <thread>

#include "core/base/mutex.h"

namespace spexd {

class StallWatchdog {
 private:
  struct Entry {
    std::function<void()> cut_off;
    std::chrono::steady_clock::time_point deadline;  // max(): not waiting for the client
    bool stalled = false;
  };

 public:
  explicit StallWatchdog(std::chrono::duration<double> patience);
  ~StallWatchdog();

  // Watches one call or connection for as long as it lives.
  class Watch {
   public:
    // `cut_off` is called at most once, from the watchdog's thread, and must not block.
    Watch(StallWatchdog* watchdog, std::function<void()> cut_off);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    // Runs a blocking read or write, and returns its result.
    template <typename Body>
    auto Waiting(const Body& body) {
      Arm();
      const auto result = body();
      Disarm();
      return result;
    }
    // The time begins: unless the watch ends before, it is cut off when the time is over.
    void Arm();
    bool stalled() const;

   private:
    void Disarm();
    StallWatchdog* const watchdog_;
    std::list<Entry>::iterator entry_;
  };

 private:
  void Loop();

  const std::chrono::steady_clock::duration patience_;
  mutable Mutex mutex_;
  CondVar stop_changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::list<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_STALL_WATCHDOG_H_
