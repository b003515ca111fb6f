#include "server/detached/job_runner.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "server/base/retry.h"
#include "server/inputs/job_claims.h"

namespace spexd {
namespace {

using std::chrono::steady_clock;

// The delay before a new try for a job that found the queue full or no thread, if the refusal has no delay.
constexpr std::chrono::milliseconds kWhenRefused(1000);

double SecondsOf(steady_clock::time_point when) {
  return std::chrono::duration<double>(when.time_since_epoch()).count();
}

}  // namespace

JobRunner::JobRunner(const ServerParts& parts, JobStore* store, CleanUp clean_up)
    : parts_(parts),
      store_(store),
      clean_up_(std::move(clean_up)),
      max_entries_(static_cast<size_t>(parts.options->max_running_jobs) + 1),
      feed_(std::make_shared<EventThread::Step>([this] {
        MutexLock lock(&mutex_);
        Feed();
      })),
      timer_(parts.watchdog, [this] { steps_.Post(feed_); }) {}

JobRunner::~JobRunner() { StopRuns(); }

void JobRunner::Add(const StoredJob& stored) {
  // A death of the server counts for all jobs that were running. A job's last try therefore excludes other
  // detached jobs, so that none of these can end it.
  WaitingJobs::Job job = {stored.id, stored.owner,     static_cast<int>(stored.priority),
                          0,         stored.number,    "",
                          "",        IsLastTry(stored)};
  // A job with a damaged header ends when it runs.
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
  waiting_.Add(job);
  MakeWayFor(job);
  Feed();
}

double JobRunner::SubmittedAt(const StoredJob& stored) {
  const double age = std::max(0.0, SecondsSince1970() - stored.submitted);
  last_submitted_ = std::max(last_submitted_, SecondsOf(steady_clock::now()) - age);
  return last_submitted_;
}

bool JobRunner::Holds(const std::string& id) const {
  return waiting_.Has(id) || entries_.count(id) > 0 ||
         std::any_of(later_.begin(), later_.end(),
                     [&](const auto& waiting) { return waiting.second.id == id; });
}

int JobRunner::Position(const std::string& id) const {
  MutexLock lock(&mutex_);
  return waiting_.Position(id);
}

void JobRunner::Remove(const std::string& id) {
  MutexLock lock(&mutex_);
  waiting_.Remove(id);
  std::erase_if(later_, [&](const auto& waiting) { return waiting.second.id == id; });
  if (const auto entry = entries_.find(id); entry != entries_.end()) {
    if (entry->second->run != nullptr) {
      entry->second->removed = true;
      entry->second->run->Stop(DetachedRun::Why::kCancelled);
      return;
    }
    entries_.erase(entry);
  }
  clean_up_(id);
  Feed();
}

void JobRunner::Feed() {
  if (draining_) return;
  const steady_clock::time_point now = steady_clock::now();
  while (!later_.empty() && later_.begin()->first <= now) {
    waiting_.Add(later_.begin()->second);
    later_.erase(later_.begin());
  }
  ask_again_ = steady_clock::time_point::max();
  std::set<std::string> refused;  // owners whose job the queue has refused
  const auto may_enter = [&](const std::string& owner) {
    return HasRoomFor(owner) && refused.count(owner) == 0;
  };
  while (const std::optional<WaitingJobs::Job> job = waiting_.Next(may_enter)) {
    auto entry = std::make_unique<Entry>();
    entry->job = *job;
    entry->number = ++last_entry_;
    const absl::Status entered = EnterQueue(entry.get());
    if (entered.ok()) {
      entries_.emplace(job->id, std::move(entry));
      continue;
    }
    waiting_.Add(*job);
    refused.insert(job->owner);  // the limits of other owners may leave room
    ask_again_ = std::min(ask_again_, now + RetryDelayOf(entered).value_or(kWhenRefused));
  }
  ArmTimer();
}

bool JobRunner::HasRoomFor(const std::string& owner) const {
  const bool alone =
      waiting_.HasAlone() || std::any_of(entries_.begin(), entries_.end(),
                                         [](const auto& entry) { return entry.second->job.alone; });
  if (alone) return entries_.empty();
  return entries_.size() < max_entries_ ||
         std::none_of(entries_.begin(), entries_.end(), [&](const auto& entry) {
           return entry.second->job.owner == owner && entry.second->run == nullptr;
         });
}

void JobRunner::MakeWayFor(const WaitingJobs::Job& job) {
  if (HasRoomFor(job.owner)) return;
  auto last = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    const Entry& other = *entry->second;
    if (other.job.owner != job.owner || other.run != nullptr || !WaitingJobs::Before(job, other.job))
      continue;
    if (last == entries_.end() || WaitingJobs::Before(last->second->job, other.job)) last = entry;
  }
  if (last == entries_.end()) return;
  waiting_.Add(last->second->job);
  entries_.erase(last);
}

void JobRunner::ArmTimer() {
  if (draining_) return;
  const steady_clock::time_point next =
      later_.empty() ? ask_again_ : std::min(ask_again_, later_.begin()->first);
  if (next != steady_clock::time_point::max()) timer_.Arm(next);
}

absl::Status JobRunner::EnterQueue(Entry* entry) {
  const WaitingJobs::Job& job = entry->job;
  JobClaim claim;
  claim.identity = job.owner;
  claim.shares = parts_.access->SharesOf(job.owner);
  claim.reader = job.owner + " on disk";  // the event log is never a slow reader
  claim.priority = job.priority;
  claim.psf = job.psf;
  claim.kind = job.kind;
  SPEXD_ASSIGN_OR_RETURN(JobQueue::Ticket ticket, parts_.queue->Admit(claim));
  entry->ticket.emplace(std::move(ticket));
  entry->joined = steady_clock::now();
  entry->ticket->Join([this, slot_granted = std::make_shared<EventThread::Step>(
                                 [this, id = job.id, number = entry->number] { SlotGranted(id, number); })] {
    steps_.Post(slot_granted);
  });
  return absl::OkStatus();
}

void JobRunner::WaitThenAdd(const WaitingJobs::Job& job, std::chrono::milliseconds delay) {
  later_.emplace(steady_clock::now() + delay, job);
  ArmTimer();
}

void JobRunner::SlotGranted(const std::string& id, uint64_t number) {
  MutexLock lock(&mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;  // cancelled, or the server drains
  Entry& entry = *found->second;
  if (entry.number != number) return;  // the slot was for an earlier entry of the job
  parts_.metrics->ObserveStage("queue",
                               std::chrono::duration<double>(steady_clock::now() - entry.joined).count());
  if (const absl::Status started = StartRun(&entry); !started.ok()) {
    WaitThenAdd(entry.job, RetryDelayOf(started).value_or(kWhenRefused));
    entries_.erase(found);
  }
  Feed();
}

// entry->ticket does not move before RunEnded.
absl::Status JobRunner::StartRun(Entry* entry) {
  const std::string& id = entry->job.id;
  entry->clock = std::make_unique<StallWatchdog::Watch>(
      parts_.watchdog, [this, time_passed = std::make_shared<EventThread::Step>(
                                  [this, id] { TimePassed(id); })] { steps_.Post(time_passed); });
  entry->clock->Arm(steady_clock::now() +
                    std::chrono::duration_cast<steady_clock::duration>(
                        std::chrono::duration<double>(parts_.options->max_job_seconds)));
  const auto run = std::make_shared<DetachedRun>(parts_, store_, id, &*entry->ticket);
  SPEXD_RETURN_IF_ERROR(parts_.tasks->Start(
      [this, entry, run, ended = std::make_shared<EventThread::Step>([this, id] { RunEnded(id); })] {
        entry->outcome = run->Run();
        steps_.Post(ended);
      }));
  entry->run = run;
  return absl::OkStatus();
}

void JobRunner::TimePassed(const std::string& id) {
  MutexLock lock(&mutex_);
  if (const auto entry = entries_.find(id); entry != entries_.end() && entry->second->run != nullptr)
    entry->second->run->Stop(DetachedRun::Why::kTimePassed);
}

void JobRunner::RunEnded(const std::string& id) {
  MutexLock lock(&mutex_);
  const auto found = entries_.find(id);
  const std::unique_ptr<Entry> entry = std::move(found->second);
  const DetachedRun::Outcome outcome = entry->outcome;
  entries_.erase(found);
  changed_.NotifyAll();
  if (!outcome.again || entry->removed) {
    clean_up_(id);
  } else if (outcome.delay.count() > 0) {
    WaitThenAdd(entry->job, outcome.delay);
  } else {
    waiting_.Add(entry->job);
  }
  entry->ticket.reset();
  Feed();
}

void JobRunner::StartDraining() {
  MutexLock lock(&mutex_);
  draining_ = true;
  std::erase_if(entries_, [](const auto& entry) { return entry.second->run == nullptr; });
}

void JobRunner::StopRuns() {
  StartDraining();
  MutexLock lock(&mutex_);
  for (const auto& [id, entry] : entries_) entry->run->Stop(DetachedRun::Why::kServerStops);
  while (!entries_.empty()) changed_.Wait(&mutex_);
}

}  // namespace spexd
