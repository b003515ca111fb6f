#include "core/extract/cpu/worker_pool.h"

#include <utility>

#include "core/base/threads/deadline.h"

namespace spexd {

WorkerPool::WorkerPool(int threads) {
  workers_.reserve(threads);
  try {
    for (int worker = 0; worker < threads; ++worker) workers_.emplace_back([this, worker] { Work(worker); });
  } catch (...) {
    StopAndJoin();
    throw;
  }
}

WorkerPool::~WorkerPool() { StopAndJoin(); }

void WorkerPool::StopAndJoin() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  for (std::thread& worker : workers_) worker.join();
}

void WorkerPool::Run(Task task) {
  MutexLock lock(&mutex_);
  tasks_.push_back(std::move(task));
  changed_.NotifyOne();
}

void WorkerPool::Work(int worker) {
  while (true) {
    Task task;
    {
      MutexLock lock(&mutex_);
      while (tasks_.empty() && !stopping_) changed_.Wait(&mutex_);
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task(worker);
  }
}

bool Shares::Take(int count, const std::stop_token& stop) {
  const WakeOnStop wake(stop, &mutex_, &changed_);
  MutexLock lock(&mutex_);
  const auto waiter = waiters_.insert(waiters_.end(), count);
  while ((waiter != waiters_.begin() || free_ < count) && !stop.stop_requested()) changed_.Wait(&mutex_);
  waiters_.erase(waiter);
  const bool taken = !stop.stop_requested();
  if (taken) free_ -= count;
  changed_.NotifyAll();
  return taken;
}

void Shares::Return(int count) {
  MutexLock lock(&mutex_);
  free_ += count;
  changed_.NotifyAll();
}

}  // namespace spexd
