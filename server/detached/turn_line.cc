#include "server/detached/turn_line.h"

#include <iterator>
#include <utility>

namespace spexd {

void TurnLine::Add(const Job& job) {
  Remove(job.id);
  jobs_[job.id] = job;
  owners_[job.owner].insert(PlaceOf(job));
}

void TurnLine::Remove(const std::string& id) {
  const auto job = jobs_.find(id);
  if (job == jobs_.end()) return;
  const auto owner = owners_.find(job->second.owner);
  owner->second.erase(PlaceOf(job->second));
  if (owner->second.empty()) owners_.erase(owner);
  jobs_.erase(job);
}

std::optional<TurnLine::Job> TurnLine::Next(absl::FunctionRef<bool(const std::string& owner)> may_enter) {
  auto owner = owners_.upper_bound(last_owner_);
  for (size_t asked = 0; asked < owners_.size(); ++asked, ++owner) {
    if (owner == owners_.end()) owner = owners_.begin();
    if (!may_enter(owner->first)) continue;
    last_owner_ = owner->first;
    const Job next = jobs_[owner->second.begin()->id];
    Remove(next.id);
    return next;
  }
  return std::nullopt;
}

int TurnLine::Position(const std::string& id) const {
  const auto job = jobs_.find(id);
  if (job == jobs_.end()) return 0;
  const std::set<Place>& places = owners_.at(job->second.owner);
  return static_cast<int>(std::distance(places.begin(), places.find(PlaceOf(job->second))));
}

}  // namespace spexd
