#include "server/admission/job_queue.h"

#include <utility>

#include "server/base/retry.h"

namespace spexd {
namespace {

Schedule::Time Now() { return std::chrono::steady_clock::now(); }

}  // namespace

JobQueue::Ticket::Ticket(Ticket&& other) noexcept
    : queue_(std::exchange(other.queue_, nullptr)), id_(other.id_), position_(other.position_) {}

JobQueue::Ticket::~Ticket() {
  if (queue_ == nullptr) return;
  MutexLock lock(&queue_->mutex_);
  queue_->on_slot_.erase(id_);
  queue_->schedule_.Remove(id_, Now());
  --queue_->admitted_;
  queue_->GrantSlots();
  queue_->changed_.NotifyAll();
}

void JobQueue::Ticket::Join(std::function<void()> on_slot) {
  MutexLock lock(&queue_->mutex_);
  queue_->on_slot_[id_] = std::move(on_slot);
  queue_->schedule_.Join(id_, Now());
  queue_->GrantSlots();
}

Schedule::Cost JobQueue::Ticket::ReleaseSlot(bool completed) {
  MutexLock lock(&queue_->mutex_);
  const Schedule::Cost cost = queue_->schedule_.ReleaseSlot(id_, completed, Now());
  queue_->GrantSlots();
  return cost;
}

void JobQueue::Ticket::SetEngineEstimate(double seconds) {
  MutexLock lock(&queue_->mutex_);
  queue_->schedule_.SetEngineEstimate(id_, seconds, Now());
}

double JobQueue::Ticket::ProductSeconds() const {
  MutexLock lock(&queue_->mutex_);
  return queue_->schedule_.ProductSeconds(id_);
}

void JobQueue::Ticket::LearnProducts(double seconds) {
  MutexLock lock(&queue_->mutex_);
  queue_->schedule_.LearnProducts(id_, seconds);
}

void JobQueue::Ticket::DoubtProducts() {
  MutexLock lock(&queue_->mutex_);
  queue_->schedule_.DoubtProducts(id_);
}

void JobQueue::Ticket::HoldResults(int64_t bytes) {
  MutexLock lock(&queue_->mutex_);
  queue_->schedule_.Hold(id_, bytes);
}

void JobQueue::Pause(Schedule::JobId id) {
  MutexLock lock(&mutex_);
  schedule_.Pause(id, Now());
}

void JobQueue::Resume(Schedule::JobId id) {
  MutexLock lock(&mutex_);
  schedule_.Resume(id, Now());
}

void JobQueue::GrantSlots() {
  while (const std::optional<Schedule::JobId> next = schedule_.Next(Now())) {
    on_slot_.extract(*next).mapped()();
  }
}

absl::StatusOr<JobQueue::Ticket> JobQueue::Admit(const JobClaim& claim) {
  MutexLock lock(&mutex_);
  if (draining_) return RefuseWhileDraining();
  if (auto refusal = schedule_.WhyNot(claim, Now()); refusal.has_value())
    return Refuse(std::move(refusal->status), refusal->reason, refusal->retry_delay);
  const Schedule::Admitted admitted = schedule_.Admit(claim, Now());
  ++admitted_;
  return Ticket(this, admitted);
}

absl::Status JobQueue::CheckDeadline(const JobClaim& claim) const {
  MutexLock lock(&mutex_);
  auto refusal = schedule_.PastDeadline(claim, Now());
  return refusal.has_value() ? Refuse(std::move(refusal->status), refusal->reason) : absl::OkStatus();
}

void JobQueue::SetDevices(int devices) {
  MutexLock lock(&mutex_);
  schedule_.SetDevices(devices, Now());
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
  return {schedule_.stats(Now()), draining_};
}

}  // namespace spexd
