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
  steps_.push_back(std::move(step));
  changed_.NotifyOne();
}

void EventThread::Loop() {
  for (;;) {
    std::shared_ptr<Step> step;
    {
      MutexLock lock(&mutex_);
      while (steps_.empty() && !ending_) changed_.Wait(&mutex_);
      if (steps_.empty()) return;
      step = std::move(steps_.front());
      steps_.pop_front();
      step->posted_ = false;
    }
    step->run_();
  }
}

}  // namespace spexd
