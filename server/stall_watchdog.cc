#include "server/stall_watchdog.h"

#include <algorithm>
#include <utility>

namespace spexd {
namespace {

using std::chrono::steady_clock;

constexpr steady_clock::time_point kNever = steady_clock::time_point::max();

}  // namespace

StallWatchdog::StallWatchdog(std::chrono::duration<double> patience)
    : patience_(std::chrono::duration_cast<steady_clock::duration>(patience)), thread_([this] { Loop(); }) {}

StallWatchdog::~StallWatchdog() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
  }
  stop_changed_.NotifyAll();
  thread_.join();
}

void StallWatchdog::Loop() {
  MutexLock lock(&mutex_);
  while (!stop_) {
    const auto now = steady_clock::now();
    auto next = now + patience_;  // deadlines set from now on are later than this
    for (Entry& entry : entries_) {
      if (entry.stalled) continue;
      if (entry.deadline <= now) {
        entry.stalled = true;
        entry.cut_off();
      } else {
        next = std::min(next, entry.deadline);
      }
    }
    stop_changed_.WaitUntil(&mutex_, next);
  }
}

StallWatchdog::Watch::Watch(StallWatchdog* watchdog, std::function<void()> cut_off) : watchdog_(watchdog) {
  MutexLock lock(&watchdog_->mutex_);
  entry_ = watchdog_->entries_.insert(watchdog_->entries_.end(), Entry{std::move(cut_off), kNever});
}

StallWatchdog::Watch::~Watch() {
  MutexLock lock(&watchdog_->mutex_);
  watchdog_->entries_.erase(entry_);
}

void StallWatchdog::Watch::Arm() {
  MutexLock lock(&watchdog_->mutex_);
  entry_->deadline = steady_clock::now() + watchdog_->patience_;
}

void StallWatchdog::Watch::Disarm() {
  MutexLock lock(&watchdog_->mutex_);
  entry_->deadline = kNever;
}

bool StallWatchdog::Watch::stalled() const {
  MutexLock lock(&watchdog_->mutex_);
  return entry_->stalled;
}

}  // namespace spexd
