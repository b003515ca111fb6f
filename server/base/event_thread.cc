#include "server/base/event_thread.h"

#include <utility>

namespace spexd {

EventThread::~EventThread() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void EventThread::Post(std::shared_ptr<Step> step) noexcept {
  MutexLock lock(&mutex_);
  if (std::exchange(step->posted_, true)) return;
  Step* const last = std::exchange(last_, step.get());
  (last == nullptr ? first_ : last->next_) = std::move(step);
  changed_.NotifyOne();
}

void EventThread::Loop() {
  for (;;) {
    std::shared_ptr<Step> step;
    {
      MutexLock lock(&mutex_);
      while (first_ == nullptr && !ending_) changed_.Wait(&mutex_);
      if (first_ == nullptr) return;
      step = std::exchange(first_, std::move(first_->next_));
      if (first_ == nullptr) last_ = nullptr;
      step->posted_ = false;
    }
    step->run_();
  }
}

}  // namespace spexd
