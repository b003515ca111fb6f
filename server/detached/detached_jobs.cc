#include "server/detached/detached_jobs.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "server/base/retry.h"

namespace spexd {
namespace {

// Delay after memory ran out.
constexpr std::chrono::seconds kWithoutMemory(1);

}  // namespace

absl::StatusOr<std::unique_ptr<DetachedJobs>> DetachedJobs::Open(const ServerParts& parts) {
  std::unique_ptr<DetachedJobs> jobs(new DetachedJobs(parts));
  const ServerOptions& options = *parts.options;
  const auto part = [](int64_t of_owner, int64_t of_all) { return of_owner == 0 ? of_all : of_owner; };
  const DiskSpace::Limits limits = {
      .bytes = options.jobs_disk_bytes,
      .bytes_of_owner = part(options.jobs_disk_bytes_per_identity, options.jobs_disk_bytes),
      .jobs = options.jobs_max_kept,
      .jobs_of_owner = part(options.jobs_max_kept_per_identity, options.jobs_max_kept)};
  SPEXD_ASSIGN_OR_RETURN(jobs->store_, JobStore::Open({options.jobs_dir, limits}, parts.log));
  JobRunner::Callbacks callbacks;
  callbacks.leave = [open = jobs.get()](const std::string& id) { open->Leave(id); };
  callbacks.lost = [open = jobs.get()] { open->NoteLostJob(); };
  jobs->runner_ = std::make_unique<JobRunner>(parts, jobs->store_.get(), std::move(callbacks));
  for (const JobRow& row : jobs->store_->TakeRecovered()) {
    if (row.has_ended()) {
      jobs->NoteEnd(row);
      continue;
    }
    SPEXD_ASSIGN_OR_RETURN(const JobRow whole, jobs->store_->WithHeader(row.id));
    jobs->runner_->Add(whole);
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

void DetachedJobs::OnDisk(size_t key, std::function<void()> step) {
  disk_[key % disk_.size()].Post(std::make_shared<EventThread::Step>([this, step = std::move(step)] {
    const absl::Status status = CatchExceptions(step);
    if (!status.ok()) LogFailure(status);
  }));
}

void DetachedJobs::LogFailure(const absl::Status& failure) {
  parts_.log->Failure("jobs_step_failed", failure);
}

void DetachedJobs::Leave(const std::string& id) {
  OnDisk([this, id] {
    store_->Leave(id);
    // Its own time may be the next to pass. On one thread: else who looked first might arm the timer last.
    disk_.front().Post(keep_order_);
  });
}

void DetachedJobs::KeepOrder() {
  std::chrono::duration<double> left = kWithoutMemory;
  const absl::Status status = CatchExceptions([&] {
    FindLostJobs();
    const double late = EndLate();
    left = std::chrono::duration<double>(std::min(store_->RemoveExpired(), late));
  });
  if (!status.ok()) LogFailure(status);
  MutexLock lock(&mutex_);
  if (lost_) left = kWithoutMemory;
  const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(left);
  if (timer_ != nullptr) timer_->Arm(std::chrono::steady_clock::now() + rounded);
}

double DetachedJobs::EndLate() {
  constexpr int kAtOnce = 100;
  constexpr double kTryAgain = 1;  // where the journal could not be written
  size_t ended = kAtOnce;
  while (ended == kAtOnce) {
    const absl::StatusOr<std::vector<JobRow>> rows = store_->EndLate(kAtOnce);
    if (!rows.ok()) return kTryAgain;
    ended = rows->size();
    for (const JobRow& row : *rows) {
      runner_->Remove(row.id);
      NoteEnd(row);
    }
  }
  const absl::StatusOr<double> next = store_->SecondsToDeadline();
  return next.ok() && *next > 0 ? *next : kTryAgain;
}

void DetachedJobs::NoteEnd(const JobRow& row) {
  const auto code = static_cast<absl::StatusCode>(row.code);
  parts_.metrics->CountDetachedEnd(code, SecondsToEnd(row));
  JsonFields fields = LogFieldsOf(row);
  fields["code"] = CodeLabel(code);
  fields["message"] = row.message;
  parts_.log->Write(code == absl::StatusCode::kInternal ? LogLevel::kError : LogLevel::kInfo,
                    "detached_job_ended", fields);
}

void DetachedJobs::NoteLostJob() noexcept {
  lost_ = true;
  MutexLock lock(&mutex_);
  if (timer_ != nullptr) timer_->Arm(std::chrono::steady_clock::now() + kWithoutMemory);
}

void DetachedJobs::FindLostJobs() {
  if (draining_ || !lost_.exchange(false)) return;
  const absl::Status found = CatchExceptions([&]() -> absl::Status {
    for (const std::shared_ptr<LiveJob>& job : store_->AllLive()) {
      if (runner_->Knows(job->id())) continue;
      SPEXD_ASSIGN_OR_RETURN(const JobRow row, store_->WithHeader(job->id()));
      if (row.has_ended()) {
        store_->Leave(row.id);
      } else {
        runner_->Add(row);
      }
    }
    return absl::OkStatus();
  });
  if (found.ok()) return;
  lost_ = true;
  LogFailure(found);
}

absl::StatusOr<JobStore::Submitted> DetachedJobs::Submit(JobStore::Submission submission, DiskHold* disk) {
  SPEXD_ASSIGN_OR_RETURN(JobStore::Submitted submitted, store_->Add(std::move(submission), disk));
  if (!submitted.existed) runner_->Add(submitted.row);
  if (!submitted.existed && submitted.row.deadline > 0)
    disk_.front().Post(keep_order_);  // it may be the next
  return submitted;
}

absl::StatusOr<JobRow> DetachedJobs::Cancel(const Identity& caller, const std::string& id) {
  bool cancelled = false;
  SPEXD_ASSIGN_OR_RETURN(JobRow row, store_->Cancel(caller, id, &cancelled));
  if (!cancelled) return row;
  runner_->Remove(id);
  parts_.metrics->CountDetachedEnd(absl::StatusCode::kCancelled, SecondsToEnd(row));
  JsonFields fields = LogFieldsOf(row);
  fields["identity"] = caller.name;
  fields["owner"] = row.owner;
  parts_.log->Info("job_cancelled", fields);
  return row;
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
