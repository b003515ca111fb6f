#include "server/job_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/deadline.h"
#include "server/retry.h"

namespace spexd {

JobQueue::Ticket::Ticket(Ticket&& other) noexcept
    : queue_(std::exchange(other.queue_, nullptr)),
      id_(other.id_),
      position_(other.position_),
      running_(std::exchange(other.running_, false)),
      started_(other.started_) {}

JobQueue::Ticket::~Ticket() {
  if (queue_ == nullptr) return;
  MutexLock lock(&queue_->mutex_);
  const bool ended = !running_ && started_ != std::chrono::steady_clock::time_point();
  if (running_) {
    queue_->EndTurn(this);
    --queue_->sending_;
  } else if (ended) {
    --queue_->sending_;
  }
  --queue_->admitted_;
  queue_->changed_.NotifyAll();
}

absl::Status JobQueue::Ticket::WaitForTurn(const std::stop_token& stop) {
  const WakeOnStop wake(stop, &queue_->mutex_, &queue_->changed_);
  MutexLock lock(&queue_->mutex_);
  queue_->line_.push_back(id_);
  while (queue_->line_.front() != id_ || queue_->running_ >= queue_->limits_.running) {
    if (stop.stop_requested()) {
      queue_->line_.remove(id_);
      queue_->changed_.NotifyAll();
      return absl::CancelledError("the job was cancelled while it waited in the queue");
    }
    queue_->changed_.Wait(&queue_->mutex_);
  }
  queue_->line_.pop_front();
  ++queue_->running_;
  running_ = true;
  started_ = std::chrono::steady_clock::now();
  queue_->changed_.NotifyAll();
  return absl::OkStatus();
}

void JobQueue::Ticket::EndTurn() {
  MutexLock lock(&queue_->mutex_);
  if (running_) queue_->EndTurn(this);
}

void JobQueue::EndTurn(Ticket* ticket) {
  constexpr double kWeight = 0.2;
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - ticket->started_).count();
  recent_seconds_ += kWeight * (seconds - recent_seconds_);
  ticket->running_ = false;
  --running_;
  ++sending_;
  changed_.NotifyAll();
}

absl::StatusOr<JobQueue::Ticket> JobQueue::Admit() {
  MutexLock lock(&mutex_);
  if (draining_) return absl::UnavailableError("the server is draining; use another");
  if (admitted_ >= limits_.running + limits_.queued) {
    return WithRetryDelay(absl::ResourceExhaustedError(absl::StrFormat(
                              "the queue is full: %d jobs run and %d wait, the limits are %d and %d",
                              running_, admitted_ - running_, limits_.running, limits_.queued)),
                          RetryDelay());
  }
  const int before = std::max(0, admitted_ - sending_ - limits_.running + 1);
  ++admitted_;
  return Ticket(this, next_id_++, before);
}

std::chrono::milliseconds JobQueue::RetryDelay() const {
  const double rounds = static_cast<double>(admitted_) / limits_.running;
  const double seconds = std::clamp(0.5 * rounds * recent_seconds_, 0.5, 60.0);
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

void JobQueue::StartDraining() {
  MutexLock lock(&mutex_);
  draining_ = true;
}

bool JobQueue::WaitUntilEmpty(std::chrono::steady_clock::time_point deadline) {
  MutexLock lock(&mutex_);
  while (admitted_ > 0) {
    if (!changed_.WaitUntil(&mutex_, deadline) && std::chrono::steady_clock::now() >= deadline) {
      return admitted_ == 0;
    }
  }
  return true;
}

JobQueue::Stats JobQueue::stats() const {
  MutexLock lock(&mutex_);
  return {running_, admitted_ - running_ - sending_, static_cast<int>(line_.size()), draining_};
}

}  // namespace spexd
