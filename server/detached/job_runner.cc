#include "server/detached/job_runner.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "server/base/retry.h"
#include "server/jobs/job_claims.h"

namespace spexd {
namespace {

using std::chrono::steady_clock;

// Delay before a job that found the queue full, or no thread, is brought again, if the refusal names none.
constexpr std::chrono::milliseconds kWhenRefused(1000);

double SecondsOf(steady_clock::time_point when) {
  return std::chrono::duration<double>(when.time_since_epoch()).count();
}

}  // namespace

JobRunner::JobRunner(const ServerParts& parts, JobStore* store, Leave leave)
    : parts_(parts),
      store_(store),
      leave_(std::move(leave)),
      most_turns_(static_cast<size_t>(parts.options->max_running_jobs) + 1),
      feed_(std::make_shared<EventThread::Step>([this] {
        MutexLock lock(&mutex_);
        Feed();
      })),
      timer_(parts.watchdog, [this] { steps_.Post(feed_); }) {}

JobRunner::~JobRunner() { StopRuns(); }

void JobRunner::Add(const StoredJob& stored) {
  // A death of the server is put down to all jobs that were running. A job that has one try left gets it
  // without other detached jobs, so that none of these can be what ends it.
  TurnLine::Job job = {stored.id, stored.owner,     static_cast<int>(stored.priority), 0, stored.number, "",
                       "",        IsLastTry(stored)};
  // A header that is damaged ends the job in its turn.
  CatchExceptions([&] {
    v1::JobHeader header;
    if (!header.ParseFromString(stored.header)) return;
    JobClaim claim = ClaimOf(header);
    job.psf = std::move(claim.psf);
    job.kind = std::move(claim.kind);
  }).IgnoreError();
  MutexLock lock(&mutex_);
  if (Holds(stored.id)) return;
  job.submitted = SubmittedAt(stored);
  line_.Add(job);
  MakeWayFor(job);
  Feed();
}

double JobRunner::SubmittedAt(const StoredJob& stored) {
  const double age = std::max(0.0, SecondsSince1970() - stored.submitted);
  last_submitted_ = std::max(last_submitted_, SecondsOf(steady_clock::now()) - age);
  return last_submitted_;
}

bool JobRunner::Holds(const std::string& id) const {
  return line_.Has(id) || turns_.count(id) > 0 ||
         std::any_of(later_.begin(), later_.end(),
                     [&](const auto& waiting) { return waiting.second.id == id; });
}

int JobRunner::Position(const std::string& id) const {
  MutexLock lock(&mutex_);
  return line_.Position(id);
}

void JobRunner::Remove(const std::string& id) {
  MutexLock lock(&mutex_);
  line_.Remove(id);
  std::erase_if(later_, [&](const auto& waiting) { return waiting.second.id == id; });
  if (const auto turn = turns_.find(id); turn != turns_.end()) {
    if (turn->second->run != nullptr) {
      turn->second->removed = true;
      turn->second->run->Stop(DetachedRun::Why::kCancelled);
      return;
    }
    turns_.erase(turn);
  }
  leave_(id);
  Feed();
}

void JobRunner::Feed() {
  if (draining_) return;
  const steady_clock::time_point now = steady_clock::now();
  while (!later_.empty() && later_.begin()->first <= now) {
    line_.Add(later_.begin()->second);
    later_.erase(later_.begin());
  }
  ask_again_ = steady_clock::time_point::max();
  std::set<std::string> refused;  // owners
  const auto may_enter = [&](const std::string& owner) {
    return HasPlaceFor(owner) && refused.count(owner) == 0;
  };
  while (const std::optional<TurnLine::Job> job = line_.Next(may_enter)) {
    auto turn = std::make_unique<Turn>();
    turn->job = *job;
    turn->number = ++last_turn_;
    const absl::Status entered = EnterQueue(turn.get());
    if (entered.ok()) {
      turns_.emplace(job->id, std::move(turn));
      continue;
    }
    line_.Add(*job);
    refused.insert(job->owner);  // another owner's limits may leave room
    ask_again_ = std::min(ask_again_, now + RetryDelayOf(entered).value_or(kWhenRefused));
  }
  ArmTimer();
}

bool JobRunner::HasPlaceFor(const std::string& owner) const {
  const bool alone = line_.HasAlone() || std::any_of(turns_.begin(), turns_.end(),
                                                     [](const auto& turn) { return turn.second->job.alone; });
  if (alone) return turns_.empty();
  return turns_.size() < most_turns_ || std::none_of(turns_.begin(), turns_.end(), [&](const auto& turn) {
           return turn.second->job.owner == owner && turn.second->run == nullptr;
         });
}

void JobRunner::MakeWayFor(const TurnLine::Job& job) {
  if (HasPlaceFor(job.owner)) return;
  auto last = turns_.end();
  for (auto turn = turns_.begin(); turn != turns_.end(); ++turn) {
    const Turn& other = *turn->second;
    if (other.job.owner != job.owner || other.run != nullptr || !TurnLine::Before(job, other.job)) continue;
    if (last == turns_.end() || TurnLine::Before(last->second->job, other.job)) last = turn;
  }
  if (last == turns_.end()) return;
  line_.Add(last->second->job);
  turns_.erase(last);
}

void JobRunner::ArmTimer() {
  if (draining_) return;
  const steady_clock::time_point next =
      later_.empty() ? ask_again_ : std::min(ask_again_, later_.begin()->first);
  if (next != steady_clock::time_point::max()) timer_.Arm(next);
}

absl::Status JobRunner::EnterQueue(Turn* turn) {
  const TurnLine::Job& job = turn->job;
  JobClaim claim;
  claim.identity = job.owner;
  claim.shares = parts_.access->SharesOf(job.owner);
  claim.reader = job.owner + " on disk";  // the event log keeps up, whoever reads it
  claim.priority = job.priority;
  claim.psf = job.psf;
  claim.kind = job.kind;
  SPEXD_ASSIGN_OR_RETURN(JobQueue::Ticket ticket, parts_.queue->Admit(claim));
  turn->ticket.emplace(std::move(ticket));
  turn->joined = steady_clock::now();
  turn->ticket->Join([this, turn_came = std::make_shared<EventThread::Step>(
                                [this, id = job.id, number = turn->number] { TurnCame(id, number); })] {
    steps_.Post(turn_came);
  });
  return absl::OkStatus();
}

void JobRunner::WaitThenAdd(const TurnLine::Job& job, std::chrono::milliseconds delay) {
  later_.emplace(steady_clock::now() + delay, job);
  ArmTimer();
}

void JobRunner::TurnCame(const std::string& id, uint64_t number) {
  MutexLock lock(&mutex_);
  const auto found = turns_.find(id);
  if (found == turns_.end()) return;  // cancelled, or the server drains
  Turn& turn = *found->second;
  if (turn.number != number) return;  // it had made way for another job, and is in the queue again
  parts_.metrics->ObserveStage("queue",
                               std::chrono::duration<double>(steady_clock::now() - turn.joined).count());
  if (const absl::Status started = StartRun(&turn); !started.ok()) {
    WaitThenAdd(turn.job, RetryDelayOf(started).value_or(kWhenRefused));
    turns_.erase(found);
  }
  Feed();
}

// The ticket stays where it is until RunEnded.
absl::Status JobRunner::StartRun(Turn* turn) {
  const std::string& id = turn->job.id;
  turn->clock = std::make_unique<StallWatchdog::Watch>(
      parts_.watchdog, [this, time_passed = std::make_shared<EventThread::Step>(
                                  [this, id] { TimePassed(id); })] { steps_.Post(time_passed); });
  turn->clock->Arm(steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(
                                             std::chrono::duration<double>(parts_.options->max_job_seconds)));
  const auto run = std::make_shared<DetachedRun>(parts_, store_, id, &*turn->ticket);
  SPEXD_RETURN_IF_ERROR(parts_.tasks->Start(
      [this, turn, run, ended = std::make_shared<EventThread::Step>([this, id] { RunEnded(id); })] {
        turn->outcome = run->Run();
        steps_.Post(ended);
      }));
  turn->run = run;
  return absl::OkStatus();
}

void JobRunner::TimePassed(const std::string& id) {
  MutexLock lock(&mutex_);
  if (const auto turn = turns_.find(id); turn != turns_.end() && turn->second->run != nullptr)
    turn->second->run->Stop(DetachedRun::Why::kTimePassed);
}

void JobRunner::RunEnded(const std::string& id) {
  MutexLock lock(&mutex_);
  const auto found = turns_.find(id);
  const std::unique_ptr<Turn> turn = std::move(found->second);
  const DetachedRun::Outcome outcome = turn->outcome;
  turns_.erase(found);
  changed_.NotifyAll();
  if (!outcome.again || turn->removed) {
    leave_(id);
  } else if (outcome.delay.count() > 0) {
    WaitThenAdd(turn->job, outcome.delay);
  } else {
    line_.Add(turn->job);
  }
  turn->ticket.reset();
  Feed();
}

void JobRunner::StartDraining() {
  MutexLock lock(&mutex_);
  draining_ = true;
  std::erase_if(turns_, [](const auto& turn) { return turn.second->run == nullptr; });
}

void JobRunner::StopRuns() {
  StartDraining();
  MutexLock lock(&mutex_);
  for (const auto& [id, turn] : turns_) turn->run->Stop(DetachedRun::Why::kServerStops);
  while (!turns_.empty()) changed_.Wait(&mutex_);
}

}  // namespace spexd
