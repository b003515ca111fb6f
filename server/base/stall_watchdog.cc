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
    : watchdog_(watchdog), cut_off_(std::move(cut_off)) {
  Armed one = {{Clock::time_point(), this}};
  spare_ = one.extract(one.begin());
}

StallWatchdog::Watch::~Watch() {
  MutexLock lock(&watchdog_->mutex_);
  Disarm();
}

void StallWatchdog::Watch::Arm(Clock::time_point deadline) noexcept {
  MutexLock lock(&watchdog_->mutex_);
  Disarm();
  spare_.key() = deadline;
  place_ = watchdog_->armed_.insert(std::move(spare_));
  if (deadline < watchdog_->looks_) watchdog_->changed_.NotifyOne();
}

void StallWatchdog::Watch::Disarm() {
  if (spare_.empty()) spare_ = watchdog_->armed_.extract(place_);
}

}  // namespace spexd
