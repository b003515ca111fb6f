#include "server/base/task_threads.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/threads/guard.h"
#include "server/base/retry.h"
#include "server/schedule/retry_delay.h"

namespace spexd {
namespace {

// The number of threads that are kept for the next task, since starting one takes as long as a small job.
// Other threads end with their task.
constexpr int kMaxIdle = 8;

}  // namespace

TaskThreads::~TaskThreads() {
  MutexLock lock(&mutex_);
  while (running_ > 0) changed_.Wait(&mutex_);
  ending_ = true;
  task_came_.NotifyAll();
  while (!threads_.empty()) changed_.Wait(&mutex_);
}

absl::Status TaskThreads::Start(std::function<void()> task) {
  Threads ended;  // joined after the lock is released
  MutexLock lock(&mutex_);
  ended.swap(ended_);
  if (running_ >= max_) {
    return Refuse(absl::ResourceExhaustedError(
                      absl::StrFormat("%d calls are at work, the server's limit is %d", running_, max_)),
                  "too_many_calls", kWhenTooMany);
  }
  if (static_cast<size_t>(idle_) > tasks_.size()) {
    tasks_.push_back(std::move(task));
    ++running_;
    task_came_.NotifyOne();
    return absl::OkStatus();
  }
  const auto thread = threads_.emplace(threads_.end());
  const absl::Status started = CatchExceptions([&] {
    *thread = std::jthread(
        [this, thread, task = std::move(task)]() mutable { Loop(thread, std::exchange(task, nullptr)); });
  });
  if (started.ok()) {
    ++running_;
    return started;
  }
  threads_.erase(thread);
  return Refuse(absl::Status(started.code(), absl::StrCat("no thread for the call beside those of ", running_,
                                                          " others: ", started.message())),
                "threads", kWhenTooMany);
}

void TaskThreads::Loop(Threads::iterator thread, std::function<void()> task) {
  for (;;) {
    task();
    task = nullptr;  // frees its captures before the destructor of TaskThreads may return
    MutexLock lock(&mutex_);
    --running_;
    changed_.NotifyAll();
    if (WaitForTask(&task)) continue;
    ended_.splice(ended_.end(), threads_, thread);
    changed_.NotifyAll();
    return;
  }
}

bool TaskThreads::WaitForTask(std::function<void()>* task) {
  if (idle_ == kMaxIdle) return false;
  ++idle_;
  while (tasks_.empty() && !ending_) task_came_.Wait(&mutex_);
  --idle_;
  if (tasks_.empty()) return false;
  *task = std::move(tasks_.front());
  tasks_.pop_front();
  return true;
}

}  // namespace spexd
