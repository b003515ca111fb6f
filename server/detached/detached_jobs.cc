#include "server/detached/detached_jobs.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "core/base/status_macros.h"
#include "server/base/retry.h"

namespace spexd {
absl::StatusOr<std::unique_ptr<DetachedJobs>> DetachedJobs::Open(const ServerParts& parts) {
  std::unique_ptr<DetachedJobs> jobs(new DetachedJobs(parts));
  const ServerOptions& options = *parts.options;
  const DiskSpace::Limits limits = {
      .bytes = options.jobs_disk_bytes,
      .jobs = options.jobs_max_kept,
      .share_of = [access = parts.access](const std::string& owner) { return access->SharesOf(owner).disk; }};
  SPEXD_ASSIGN_OR_RETURN(jobs->store_, JobStore::Open({options.jobs_dir, limits}, parts.log));
  jobs->runner_ = std::make_unique<JobRunner>(
      parts, jobs->store_.get(), [open = jobs.get()](const std::string& id) { open->CleanUp(id); });
  for (const StoredJob& job : jobs->store_->TakeRecovered()) {
    if (job.has_ended()) {
      NoteDetachedEnd(parts, job);
    } else {
      jobs->runner_->Add(job);
    }
  }
  jobs->disk_.front().Post(jobs->keep_order_);
  return jobs;
}

DetachedJobs::DetachedJobs(const ServerParts& parts)
    : parts_(parts),
      watched_("results being watched", parts.options->max_result_bytes),
      keep_order_(std::make_shared<EventThread::Step>([this] { KeepOrder(); })),
      timer_(std::make_unique<StallWatchdog::Watch>(parts.watchdog,
                                                    [this] { disk_.front().Post(keep_order_); })) {}

DetachedJobs::~DetachedJobs() {
  if (runner_ != nullptr) runner_->StopRuns();
  MutexLock lock(&mutex_);
  timer_.reset();
}

void DetachedJobs::OnDisk(std::function<void()> step) {
  disk_[next_disk_++ % disk_.size()].Post(std::make_shared<EventThread::Step>(std::move(step)));
}

void DetachedJobs::CleanUp(const std::string& id) {
  OnDisk([this, id] {
    store_->CleanUp(id);
    // The job's expiry may be the next time to pass. Only one thread runs KeepOrder, so that the timer is
    // armed by the latest look at the store.
    disk_.front().Post(keep_order_);
  });
}

void DetachedJobs::KeepOrder() {
  MutexLock lock(&mutex_);        // the destructor waits for this function, which posts to the threads
  if (timer_ == nullptr) return;  // the server ends
  const double late = EndLate();
  const std::chrono::duration<double> left(std::min(store_->RemoveExpired(), late));
  store_->RenewIndex();
  timer_->Arm(std::chrono::steady_clock::now() + std::chrono::ceil<std::chrono::milliseconds>(left));
}

double DetachedJobs::EndLate() {
  constexpr int kAtOnce = 100;
  constexpr double kTryAgain = 1;  // seconds, after the disk could not be written
  size_t ended = kAtOnce;
  while (ended == kAtOnce) {
    const absl::StatusOr<std::vector<StoredJob>> late = store_->EndLate(kAtOnce);
    if (!late.ok()) return kTryAgain;
    ended = late->size();
    for (const StoredJob& job : *late) {
      runner_->Remove(job.id);
      NoteDetachedEnd(parts_, job);
    }
  }
  const double next = store_->SecondsToDeadline();
  return next > 0 ? next : kTryAgain;
}

absl::StatusOr<JobStore::Submitted> DetachedJobs::Submit(JobStore::Submission submission, DiskHold* disk) {
  SPEXD_ASSIGN_OR_RETURN(JobStore::Submitted submitted, store_->Add(std::move(submission), disk));
  if (!submitted.existed) runner_->Add(submitted.job);
  if (!submitted.existed && submitted.job.deadline > 0)
    disk_.front().Post(keep_order_);  // the job's deadline may be the next one
  return submitted;
}

absl::StatusOr<StoredJob> DetachedJobs::Cancel(const Identity& caller, const std::string& id) {
  bool cancelled = false;
  SPEXD_ASSIGN_OR_RETURN(StoredJob job, store_->Cancel(caller, id, &cancelled));
  if (!cancelled) return job;
  runner_->Remove(id);
  parts_.metrics->CountDetachedEnd(absl::StatusCode::kCancelled, SecondsToEnd(job));
  JsonFields fields = LogFieldsOf(job);
  fields["identity"] = caller.name;
  fields["owner"] = job.owner;
  parts_.log->Info("job_cancelled", fields);
  return job;
}

void DetachedJobs::StartDraining() {
  draining_ = true;
  runner_->StartDraining();
}

void DetachedJobs::Stop() {
  StartDraining();
  runner_->StopRuns();
  for (const std::shared_ptr<LiveJob>& job : store_->AllLive()) {
    job->Set([](LiveJob::View* view) { view->server_stops = true; });
  }
}

}  // namespace spexd
