#include "server/detached/waiting_jobs.h"

#include <iterator>
#include <utility>

namespace spexd {

void WaitingJobs::Add(const Job& job) noexcept {
  Remove(job.id);
  owners_[job.owner].insert(RankOf(job));
  jobs_.emplace(job.id, job);
  alone_ += job.alone ? 1 : 0;
}

void WaitingJobs::Remove(const std::string& id) {
  const auto job = jobs_.find(id);
  if (job == jobs_.end()) return;
  const auto owner = owners_.find(job->second.owner);
  owner->second.erase(RankOf(job->second));
  if (owner->second.empty()) owners_.erase(owner);
  alone_ -= job->second.alone ? 1 : 0;
  jobs_.erase(job);
}

std::optional<WaitingJobs::Job> WaitingJobs::Next(
    absl::FunctionRef<bool(const std::string& owner)> may_enter) {
  const Job* first = nullptr;
  auto owner = owners_.upper_bound(last_owner_);
  for (size_t asked = 0; asked < owners_.size(); ++asked, ++owner) {
    if (owner == owners_.end()) owner = owners_.begin();
    if (!may_enter(owner->first)) continue;
    const Job& job = jobs_.at(owner->second.begin()->id);
    if (first == nullptr || job.alone) first = &job;
    if (first->alone || !HasAlone()) break;
  }
  if (first == nullptr) return std::nullopt;
  std::optional<Job> next = *first;
  last_owner_ = next->owner;
  Remove(next->id);
  return next;
}

int WaitingJobs::Position(const std::string& id) const {
  const auto job = jobs_.find(id);
  if (job == jobs_.end()) return 0;
  const std::set<Rank>& ranks = owners_.at(job->second.owner);
  return static_cast<int>(std::distance(ranks.begin(), ranks.find(RankOf(job->second))));
}

}  // namespace spexd
