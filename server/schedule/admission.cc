// The part of Schedule that refuses jobs, with its estimates for new jobs.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "server/schedule/retry_delay.h"
#include "server/schedule/schedule.h"

namespace spexd {

using std::chrono::milliseconds;
double Schedule::RunningSeconds(Time now) const {
  double left = 0;
  for (const Job& job : others_) {
    if (job.state == State::kRunning || job.state == State::kPaused)
      left += std::max(0.0, job.estimate - Taken(job, now));
  }
  return left;
}

// Returns the work that is expected to come before a job that joins now: the identity's own jobs that go
// first, and, for each other identity, as much by its weight plus what it has used less so far.
Schedule::Ahead Schedule::AheadOf(const JobClaim& claim, double estimate, Time now) const {
  const auto own = accounts_.find(claim.identity);
  Ahead ahead;
  for (const std::list<Job>* jobs : {&queue_, &others_}) {
    for (const Job& job : *jobs) {
      if (job.account != own || !Waits(job) || Urgency(job, now) < claim.priority) continue;
      ++ahead.jobs;
      ahead.seconds += job.guess;
    }
  }
  double level = own == accounts_.end() ? 0 : own->second.share.Level(now);
  if (own == accounts_.end() || own->second.queued + own->second.running == 0)
    level = std::max(level, LevelOfNewcomer(now));
  const double levels = (ahead.seconds + estimate) / claim.shares.weight + level;  // level after this job
  for (auto other = accounts_.begin(); other != accounts_.end(); ++other) {
    const Account& account = other->second;
    if (other == own || account.waiting == 0) continue;
    const double seconds = std::clamp((levels - account.share.Level(now)) * account.share.weight(), 0.0,
                                      std::max(0.0, account.seconds));
    ahead.seconds += seconds;
    ahead.jobs += static_cast<int>(std::ceil(account.waiting * seconds / std::max(1e-9, account.seconds)));
  }
  return ahead;
}

milliseconds Schedule::DelayOfAll(double part, Time now) const {
  return RetryDelayFor(part * (RunningSeconds(now) + seconds_) / clock_.devices());
}

milliseconds Schedule::DelayOf(const Account& account, double part) const {
  double weights = 0;
  for (const auto& [name, other] : accounts_) {
    if (other.waiting + other.running > 0) weights += other.share.weight();
  }
  const double share = weights > 0 ? account.share.weight() / weights : 1;
  return RetryDelayFor(part * account.seconds / (share * clock_.devices()));
}

std::optional<Schedule::Refusal> Schedule::OverJobs(const JobClaim& claim, const Account& account,
                                                    Time now) const {
  const int free = std::max(0, limits_.running - running_);
  if (waiting_ >= limits_.queued + free) {
    return Refusal{
        absl::ResourceExhaustedError(absl::StrFormat("the queue is full: %d jobs run and %d wait, the limits "
                                                     "are %d and %d",
                                                     running_, waiting_, limits_.running, limits_.queued)),
        "queue_full", DelayOfAll(1.0 / std::max(1, running_ + waiting_), now)};
  }
  const int64_t own = ShareOf(limits_.queued, claim.shares.queue);
  if (account.waiting - free < own) return std::nullopt;
  return Refusal{absl::ResourceExhaustedError(absl::StrFormat(
                     "%d jobs of \"%s\" wait, the limit of its queue-share of --max-queued-jobs is %d",
                     account.waiting, claim.identity, own)),
                 "identity_share", DelayOf(account, 1.0 / std::max(1, account.waiting))};
}

std::optional<Schedule::Refusal> Schedule::OverBytes(const JobClaim& claim, const Account& account,
                                                     Time now) const {
  const auto refuse = [&](int64_t used, const char* whose, const char* flag, int64_t limit,
                          const char* reason) -> Refusal {
    Refusal refusal{absl::ResourceExhaustedError(absl::StrFormat(
                        "the job brings %d bytes and jobs that wait%s hold %d, the limit of %s is %d",
                        claim.bytes, whose, used, flag, limit)),
                    reason, std::nullopt};
    const double part = static_cast<double>(used - (limit - claim.bytes)) / static_cast<double>(used);
    if (claim.bytes <= limit)
      refusal.retry_delay = used == bytes_ ? DelayOfAll(part, now) : DelayOf(account, part);
    return refusal;
  };
  const int64_t own = ShareOf(limits_.bytes, claim.shares.queue);
  const bool ever = claim.bytes <= own || own == limits_.bytes;
  if (ever && claim.bytes > limits_.bytes - bytes_)
    return refuse(bytes_, "", "--max-queued-bytes", limits_.bytes, "queue_bytes");
  if (claim.bytes <= own - account.bytes) return std::nullopt;
  return refuse(account.bytes, " for this identity", "its queue-share of --max-queued-bytes", own,
                "identity_share");
}

std::optional<Schedule::Refusal> Schedule::OverSeconds(const JobClaim& claim, const Account& account,
                                                       Time now) const {
  const CostEstimates::Guess guess = estimates_.Of(claim.identity, claim.kind);
  if (!guess.learned) return std::nullopt;
  const double estimate = guess.seconds;
  const auto message = [&](double used, const char* whose, const char* flag, double limit) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("the job is estimated to take %.3g device-seconds and jobs that wait%s %.3g, the "
                        "limit of %s is %.3g",
                        estimate, whose, used, flag, limit));
  };
  const auto part = [&](double used, double limit) {
    return std::min(1.0, (used + estimate - limit) / used);
  };
  if (waiting_ > 0 && seconds_ + estimate > limits_.seconds) {
    return Refusal{message(seconds_, "", "--max-queued-seconds", limits_.seconds), "queue_seconds",
                   DelayOfAll(part(seconds_, limits_.seconds), now)};
  }
  const double own = limits_.seconds * claim.shares.queue;
  if (account.waiting == 0 || account.seconds + estimate <= own) return std::nullopt;
  return Refusal{
      message(account.seconds, " for this identity", "its queue-share of --max-queued-seconds", own),
      "identity_share", DelayOf(account, part(account.seconds, own))};
}

std::optional<Schedule::Refusal> Schedule::PastDeadline(const JobClaim& claim, Time now) const {
  const CostEstimates::Guess guess = estimates_.Of(claim.identity, claim.kind);
  if (!guess.learned || claim.deadline == Time::max()) return std::nullopt;
  const Ahead ahead = AheadOf(claim, guess.seconds, now);
  // A job that begins at once is not refused here. The engine's estimate, which is better, judges it.
  // Besides, an outdated learned estimate would otherwise keep all such jobs out, and nothing would correct
  // it.
  if (ahead.jobs + running_ < std::min(limits_.running, clock_.devices())) return std::nullopt;
  const double wait = (RunningSeconds(now) + ahead.seconds) / clock_.devices();
  const double left = std::chrono::duration<double>(claim.deadline - now).count();
  const double products = ProductSeconds(claim.identity, claim.kind, claim.products);
  if (wait + guess.seconds + products <= left) return std::nullopt;
  const std::string then = products > 0 ? absl::StrFormat(" and %.3g for its products", products) : "";
  return Refusal{absl::DeadlineExceededError(absl::StrFormat(
                     "the job is estimated to wait %.3g seconds and to take %.3g%s, %.3g are left", wait,
                     guess.seconds, then, left)),
                 "deadline", std::nullopt};
}

std::optional<Schedule::Refusal> Schedule::WhyNot(const JobClaim& claim, Time now) const {
  Account newcomer;
  newcomer.share.set_weight(claim.shares.weight);
  const auto found = accounts_.find(claim.identity);
  const Account& account = found == accounts_.end() ? newcomer : found->second;
  if (auto refusal = OverJobs(claim, account, now); refusal.has_value()) return refusal;
  if (auto refusal = OverBytes(claim, account, now); refusal.has_value()) return refusal;
  if (auto refusal = OverSeconds(claim, account, now); refusal.has_value()) return refusal;
  return PastDeadline(claim, now);
}

}  // namespace spexd
