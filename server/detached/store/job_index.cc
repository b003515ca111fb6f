#include "server/detached/store/job_index.h"

#include <algorithm>

namespace spexd {

void JobIndex::Put(StoredJob job) {
  Erase(job.id);
  std::string().swap(job.header);  // frees the memory, too
  const std::string id = job.id;
  const StoredJob& kept = jobs_.emplace(id, std::move(job)).first->second;
  by_request_[{kept.owner, kept.request_id}] = &kept;
  by_number_[{kept.number, id}] = &kept;
  if (kept.has_ended()) expiries_.emplace(kept.expires, id);
  if (!kept.has_ended() && kept.deadline > 0) deadlines_.emplace(kept.deadline, id);
  ++counts_[static_cast<size_t>(kept.state)];
}

void JobIndex::Erase(const std::string& id) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return;
  const StoredJob& job = found->second;
  if (FindRequest(job.owner, job.request_id) == &job) by_request_.erase({job.owner, job.request_id});
  by_number_.erase({job.number, id});
  expiries_.erase({job.expires, id});
  deadlines_.erase({job.deadline, id});
  --counts_[static_cast<size_t>(job.state)];
  jobs_.erase(found);
}

const StoredJob* JobIndex::Find(const std::string& id) const {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : &found->second;
}

const StoredJob* JobIndex::FindRequest(const std::string& owner, const std::string& request_id) const {
  const auto found = by_request_.find({owner, request_id});
  return found == by_request_.end() ? nullptr : found->second;
}

std::vector<StoredJob> JobIndex::List(const Filter& filter, int max) const {
  std::vector<StoredJob> jobs;
  for (auto next = by_number_.lower_bound({filter.before, ""}); next != by_number_.begin();) {
    const StoredJob& job = *(--next)->second;
    if (static_cast<int>(jobs.size()) == max) break;
    if (!filter.owner.empty() && job.owner != filter.owner) continue;
    if (job.submitted < filter.submitted_after) continue;
    const auto& states = filter.states;
    if (!states.empty() && std::find(states.begin(), states.end(), job.state) == states.end()) continue;
    jobs.push_back(job);
  }
  return jobs;
}

std::vector<std::string> JobIndex::Until(const Times& times, double when, size_t max) {
  std::vector<std::string> ids;
  for (const auto& [time, id] : times) {
    if (time > when || ids.size() == max) break;
    ids.push_back(id);
  }
  return ids;
}

double JobIndex::First(const Times& times) {
  return times.empty() ? std::numeric_limits<double>::infinity() : times.begin()->first;
}

}  // namespace spexd
