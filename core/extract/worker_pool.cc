#include "core/extract/worker_pool.h"

#include <utility>

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

void Shares::Take(int count) {
  MutexLock lock(&mutex_);
  const uint64_t ticket = next_ticket_++;
  while (serving_ != ticket || free_ < count) changed_.Wait(&mutex_);
  free_ -= count;
  ++serving_;
  changed_.NotifyAll();
}

void Shares::Return(int count) {
  MutexLock lock(&mutex_);
  free_ += count;
  changed_.NotifyAll();
}

}  // namespace spexd
