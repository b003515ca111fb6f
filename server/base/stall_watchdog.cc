#include "server/base/stall_watchdog.h"

#include <utility>

namespace spexd {

StallWatchdog::~StallWatchdog() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void StallWatchdog::Loop() {
  MutexLock lock(&mutex_);
  while (!stop_) {
    looks_ = Clock::time_point::max();
    if (armed_.empty()) {
      changed_.Wait(&mutex_);
      continue;
    }
    const auto [deadline, watch] = *armed_.begin();
    if (deadline > Clock::now()) {
      looks_ = deadline;
      changed_.WaitUntil(&mutex_, deadline);
      continue;
    }
    watch->Disarm();
    watch->cut_off_();
  }
}

StallWatchdog::Watch::Watch(StallWatchdog* watchdog, std::function<void()> cut_off)
    : watchdog_(watchdog), cut_off_(std::move(cut_off)) {}

StallWatchdog::Watch::~Watch() {
  MutexLock lock(&watchdog_->mutex_);
  Disarm();
}

void StallWatchdog::Watch::Arm(Clock::time_point deadline) {
  MutexLock lock(&watchdog_->mutex_);
  Disarm();
  entry_ = watchdog_->armed_.emplace(deadline, this);
  if (deadline < watchdog_->looks_) watchdog_->changed_.NotifyOne();
}

void StallWatchdog::Watch::Disarm() {
  if (entry_.has_value()) watchdog_->armed_.erase(*entry_);
  entry_.reset();
}

}  // namespace spexd
