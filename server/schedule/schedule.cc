#include "server/schedule/schedule.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <utility>

namespace spexd {
namespace {

// The least device-seconds that a job costs, so that jobs that fail at once are not free.
constexpr double kMinCost = 0.001;
// The largest estimate of a job's device-seconds, 11 days, so that the earlier use of an identity is not lost
// in rounding when the estimate is corrected.
constexpr double kMaxCost = 1e6;
// The level below which an identity without jobs is forgotten.
constexpr double kForgottenLevel = 0.01;

double Seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

double Schedule::Urgency(const Job& job, Time now) {
  const double waited = job.state == State::kQueued ? Seconds(now - job.joined) : 0;
  return job.priority + waited / kLevelSeconds;
}

double Schedule::Taken(const Job& job, Time now) const {
  return job.taken + (job.state == State::kRunning ? clock_.At(now) - job.since : 0);
}

bool Schedule::MayRun(const Job& job, Time now) const {
  const int64_t held = job.reader->second.held;
  return now < job.deadline && (held == 0 || held <= limits_.results - held_);
}

bool Schedule::IsWarm(const Job& job) const {
  return job.psf != 0 && std::find(recent_psfs_.begin(), recent_psfs_.end(), job.psf) != recent_psfs_.end();
}

template <typename Visit>
void Schedule::ForEachHead(Time now, const Visit& visit) {
  for (auto& [name, account] : accounts_) account.seen = 0;
  for (auto job = queue_.begin(); job != queue_.end(); ++job) {
    const uint32_t bit = uint32_t{1} << (job->priority + kMaxPriority);
    uint32_t& seen = job->account->second.seen;
    if ((seen & bit) != 0 || !MayRun(*job, now)) continue;
    seen |= bit;
    visit(job);
  }
}

Schedule::JobIterator Schedule::ChooseBest(Time now) {
  for (auto& [name, account] : accounts_) {
    account.level = account.share.Level(now);
    account.max_urgency = -std::numeric_limits<double>::infinity();
  }
  JobIterator best = queue_.end();
  ForEachHead(now, [&](JobIterator job) {
    Account& account = job->account->second;
    const double urgency = Urgency(*job, now);
    const bool most_urgent = urgency > account.max_urgency;
    if (most_urgent) account.max_urgency = urgency;
    if (best == queue_.end() || account.level < best->account->second.level ||
        (most_urgent && job->account == best->account)) {
      best = job;
    }
  });
  return best;
}

Schedule::JobIterator Schedule::Choose(Time now) {
  const JobIterator best = ChooseBest(now);
  if (best == queue_.end() || IsWarm(*best)) return best;
  const double least = best->account->second.level;
  JobIterator chosen = best;
  ForEachHead(now, [&](JobIterator job) {
    if (chosen != best || !IsWarm(*job)) return;
    const Account& account = job->account->second;
    const bool near = account.level - least <= job->estimate / account.share.weight() &&
                      account.max_urgency - Urgency(*job, now) <= kNearLevels;
    if (near) chosen = job;
  });
  return chosen;
}

std::optional<Schedule::JobId> Schedule::Next(Time now) {
  if (running_ >= limits_.running) return std::nullopt;
  const JobIterator job = Choose(now);
  if (job == queue_.end()) return std::nullopt;
  GrantSlot(job, now);
  return job->id;
}

void Schedule::GrantSlot(JobIterator job, Time now) {
  Account& account = job->account->second;
  --account.queued;
  --account.waiting;
  account.bytes -= job->bytes;
  account.seconds -= job->guess;
  --waiting_;
  bytes_ -= job->bytes;
  seconds_ -= job->guess;
  ++account.running;
  ++running_;
  clock_.AddRunning(1, now);
  job->state = State::kRunning;
  job->since = clock_.At(now);
  Charge(&*job, job->estimate, now);
  others_.splice(others_.end(), queue_, job);
  if (job->psf == 0) return;
  recent_psfs_[next_psf_] = job->psf;
  next_psf_ = (next_psf_ + 1) % recent_psfs_.size();
}

// The estimated cost is charged when a job gets its slot. Otherwise one identity could get all free slots
// before it is charged for any.
void Schedule::Charge(Job* job, double seconds, Time now) {
  job->account->second.share.Charge(seconds, job->charged, job->charged_at, now);
  job->charged = seconds;
  job->charged_at = now;
}

double Schedule::LevelOfNewcomer(Time now) const {
  double highest = 0;
  for (const auto& [name, account] : accounts_) {
    if (account.queued + account.running > 0) highest = std::max(highest, account.share.Level(now));
  }
  return highest - kMaxAhead;
}

Schedule::Admitted Schedule::Admit(const JobClaim& claim, Time now) noexcept {
  std::erase_if(accounts_, [now](const auto& entry) {
    return entry.second.jobs == 0 && entry.second.share.Level(now) < kForgottenLevel;
  });
  const double guess = estimates_.Of(claim.identity, claim.kind).seconds;
  const int position = AheadOf(claim, guess, now).jobs + running_ - limits_.running + 1;
  Job& job = others_.emplace_back();
  job.account = accounts_.try_emplace(claim.identity).first;
  job.reader = readers_.try_emplace(claim.reader).first;
  job.priority = claim.priority;
  job.bytes = claim.bytes;
  job.products = claim.products;
  job.psf = claim.psf.empty() ? 0 : std::hash<std::string>()(claim.psf);
  job.kind = claim.kind;
  job.deadline = claim.deadline;
  job.guess = job.estimate = guess;
  job.id = ++last_id_;
  jobs_.emplace(job.id, std::prev(others_.end()));

  Account& account = job.account->second;
  account.share.set_weight(claim.shares.weight);
  ++account.jobs;
  ++account.waiting;
  account.bytes += job.bytes;
  account.seconds += job.guess;
  ++job.reader->second.jobs;
  ++waiting_;
  bytes_ += job.bytes;
  seconds_ += job.guess;
  return {job.id, std::max(0, position)};
}

void Schedule::Join(JobId id, Time now) {
  const JobIterator job = jobs_.at(id);
  Account& account = job->account->second;
  if (account.queued + account.running == 0) account.share.RaiseTo(LevelOfNewcomer(now), now);
  ++account.queued;
  job->state = State::kQueued;
  job->joined = now;
  queue_.splice(queue_.end(), others_, job);
}

void Schedule::SetEngineEstimate(JobId id, double seconds, Time now) {
  Job& job = *jobs_.at(id);
  // The condition is also false for NaN.
  if (!(seconds > 0) || (job.state != State::kRunning && job.state != State::kPaused)) return;
  job.engine_estimate = std::min(seconds, kMaxCost);
  job.estimate = std::clamp(Seconds(job.deadline - now), 0.0,
                            std::min(estimates_.Corrected(job.engine_estimate), kMaxCost));
  Charge(&job, job.estimate, now);
}

namespace {

std::string KindOfProducts(const std::string& kind, const std::string& products) {
  return kind + ", " + products;
}

}  // namespace

double Schedule::ProductSeconds(const std::string& identity, const std::string& kind,
                                const std::string& products) const {
  if (products.empty()) return 0;
  const CostEstimates::Guess guess = product_estimates_.Of(identity, KindOfProducts(kind, products));
  return guess.learned ? guess.seconds : 0;
}

double Schedule::ProductSeconds(JobId id) const {
  const Job& job = *jobs_.at(id);
  return ProductSeconds(job.account->first, job.kind, job.products);
}

void Schedule::LearnProducts(JobId id, double seconds) {
  const Job& job = *jobs_.at(id);
  product_estimates_.Learn(job.account->first, KindOfProducts(job.kind, job.products), 0, seconds);
}

void Schedule::DoubtProducts(JobId id) {
  constexpr double kLess = 0.8;
  LearnProducts(id, kLess * ProductSeconds(id));
}

void Schedule::Pause(JobId id, Time now) {
  Job& job = *jobs_.at(id);
  if (job.state != State::kRunning) return;
  job.taken = Taken(job, now);
  job.state = State::kPaused;
  clock_.AddRunning(-1, now);
}

void Schedule::Resume(JobId id, Time now) {
  Job& job = *jobs_.at(id);
  if (job.state != State::kPaused) return;
  job.state = State::kRunning;
  clock_.AddRunning(1, now);
  job.since = clock_.At(now);
}

void Schedule::Hold(JobId id, int64_t bytes) {
  Job& job = *jobs_.at(id);
  job.held += bytes;
  job.reader->second.held += bytes;
  held_ += bytes;
}

Schedule::Cost Schedule::ReleaseSlot(JobId id, bool completed, Time now) {
  Job& job = *jobs_.at(id);
  Pause(id, now);
  const Cost cost = {job.guess, std::max(job.taken, kMinCost)};
  if (job.state != State::kPaused) return cost;
  job.state = State::kEnded;
  --running_;
  --job.account->second.running;
  Charge(&job, cost.taken, now);
  if (completed) estimates_.Learn(job.account->first, job.kind, job.engine_estimate, cost.taken);
  return cost;
}

void Schedule::Remove(JobId id, Time now) {
  const auto found = jobs_.find(id);
  const JobIterator job = found->second;
  ReleaseSlot(id, false, now);
  Account& account = job->account->second;
  const bool queued = job->state == State::kQueued;
  if (Waits(*job)) {
    account.queued -= queued ? 1 : 0;
    --account.waiting;
    account.bytes -= job->bytes;
    account.seconds -= job->guess;
    --waiting_;
    bytes_ -= job->bytes;
    seconds_ -= job->guess;
  }
  --account.jobs;
  held_ -= job->held;
  Reader& reader = job->reader->second;
  reader.held -= job->held;
  if (--reader.jobs == 0) readers_.erase(job->reader);
  jobs_.erase(found);
  (queued ? queue_ : others_).erase(job);
}

Schedule::Stats Schedule::stats(Time now) const {
  Stats stats;
  stats.running = running_;
  stats.waiting = waiting_;
  stats.queued = static_cast<int>(queue_.size());
  for (const std::list<Job>* jobs : {&queue_, &others_}) {
    for (const Job& job : *jobs) {
      if (Waits(job)) ++stats.by_priority[job.priority < 0 ? 0 : job.priority == 0 ? 1 : 2];
    }
  }
  stats.bytes = bytes_;
  stats.device_seconds = waiting_ == 0 ? 0 : std::max(0.0, seconds_);
  if (!queue_.empty()) stats.oldest_seconds = Seconds(now - queue_.front().joined);
  return stats;
}

}  // namespace spexd
