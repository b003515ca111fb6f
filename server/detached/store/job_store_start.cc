// The start of the store: it reads the jobs folder and recovers the jobs in it.
#include <algorithm>

#include "core/base/status_macros.h"
#include "core/base/threads/parallel.h"
#include "server/detached/store/job_store.h"

namespace spexd {
namespace {

// The number of threads that read jobs, most of which wait for the disk.
constexpr int kReadingThreads = 128;

}  // namespace

absl::Status JobStore::ReadJobs() {
  SPEXD_ASSIGN_OR_RETURN(const std::vector<std::string> names, folder_.List());
  std::vector<StoredJob> listed;
  absl::Status unusable;
  SPEXD_ASSIGN_OR_RETURN(IndexFile index, IndexFile::Open(folder_.path(), &listed, &unusable));
  if (!unusable.ok()) log_->Info("jobs_index_ignored", {{"message", std::string(unusable.message())}});
  std::unordered_set<std::string> unread(names.begin(), names.end());
  for (StoredJob& job : listed) {
    if (unread.erase(job.id) > 0) Take(std::move(job));
  }
  const std::vector<std::string> others(unread.begin(), unread.end());
  SPEXD_RETURN_IF_ERROR(ParallelFor(static_cast<int64_t>(others.size()), kReadingThreads,
                                    [&](int64_t k) { return ReadJob(others[static_cast<size_t>(k)]); }));
  std::vector<StoredJob> jobs;
  {
    MutexLock lock(&mutex_);
    index_file_ = std::move(index);
    CountStates();
    last_number_ = index_.last_number();
    jobs.swap(recovered_jobs_);
  }
  std::sort(jobs.begin(), jobs.end(),
            [](const StoredJob& a, const StoredJob& b) { return a.number < b.number; });
  for (StoredJob& job : jobs) Recover(std::move(job));
  return absl::OkStatus();
}

absl::Status JobStore::ReadJob(const std::string& name) {
  absl::StatusOr<StoredJob> job = folder_.Read(name);
  if (absl::IsDataLoss(job.status())) return Quarantine(name, job.status());
  SPEXD_RETURN_IF_ERROR(job.status());
  // A server may have died before it removed the files.
  if (job->has_ended()) folder_.RemoveUnneeded(*job);
  {
    MutexLock lock(&mutex_);
    if (job->has_ended()) unlisted_.insert(name);
    if (!job->has_ended()) recovered_jobs_.push_back(*job);
  }
  Take(*std::move(job));
  return absl::OkStatus();
}

void JobStore::Take(StoredJob job) {
  space_.CountJob(job.owner, DiskOf(job));
  MutexLock lock(&mutex_);
  index_.Put(std::move(job));
}

absl::Status JobStore::Quarantine(const std::string& name, const absl::Status& damage) {
  SPEXD_ASSIGN_OR_RETURN(const std::string moved, folder_.Quarantine(name));
  ++quarantined_;
  log_->Error("job_quarantined",
              {{"job", name}, {"message", std::string(damage.message())}, {"moved_to", moved}});
  return absl::OkStatus();
}

void JobStore::Recover(StoredJob job) {
  ++recovered_;
  JsonFields fields = LogFieldsOf(job);
  fields["state"] = job.state == v1::DETACHED_STATE_RUNNING ? "running" : "queued";
  fields["runs"] = job.runs;
  fields["events"] = job.last_sequence;
  log_->Info("job_recovered", fields);
  {
    MutexLock lock(&mutex_);
    active_[job.id] = {std::make_shared<LiveJob>(job), DiskOf(job), DiskOf(job) - job.result_bytes};
  }
  if (job.state == v1::DETACHED_STATE_RUNNING) {
    std::string header = std::move(job.header);
    absl::StatusOr<StoredJob> waiting = WaitAgain(job.id, Failure::kServerDied);
    if (waiting.ok()) {
      job = *std::move(waiting);
      if (job.has_ended()) CleanUp(job.id);
    } else {
      // The state cannot be written at present. The next state that is written includes this death.
      job.state = v1::DETACHED_STATE_QUEUED;
      ++job.deaths;
      MutexLock lock(&mutex_);
      index_.Put(job);
      CountStates();
    }
    job.header = std::move(header);
  }
  MutexLock lock(&mutex_);
  recovered_jobs_.push_back(std::move(job));
}

}  // namespace spexd
