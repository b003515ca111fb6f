#include "server/detached/store/job_store.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "server/base/files.h"
#include "server/base/retry.h"

namespace spexd {
namespace {

absl::Status NoSuchJob(const std::string& id) {
  return absl::NotFoundError(absl::StrFormat("no job \"%s\"", id));
}

}  // namespace

absl::StatusOr<std::unique_ptr<JobStore>> JobStore::Open(const Settings& settings, Logger* log) {
  SPEXD_ASSIGN_OR_RETURN(JobsFolder folder, JobsFolder::Open(settings.folder));
  // This fails if the folder belongs to another user. Its files are closed to others all the same.
  if (chmod(settings.folder.c_str(), 0700) != 0) {
    const absl::Status failed = DiskError(settings.folder, "cannot be given the mode 0700");
    log->Warning("jobs_dir_open", {{"message", std::string(failed.message())}});
  }
  std::unique_ptr<JobStore> store(new JobStore(settings, std::move(folder), log));
  SPEXD_RETURN_IF_ERROR(store->ReadJobs());
  return store;
}

void JobStore::CountStates() {
  const auto counts = index_.counts();
  for (size_t state = 0; state < counts.size(); ++state) counts_[state] = counts[state];
}

void JobStore::NoteDiskError(const absl::Status& status) {
  if (!absl::IsUnavailable(status) && !absl::IsDataLoss(status)) return;
  ++disk_errors_;
  log_->Failure("jobs_disk_error", status);
}

std::vector<StoredJob> JobStore::TakeRecovered() {
  MutexLock lock(&mutex_);
  return std::exchange(recovered_jobs_, {});
}

absl::StatusOr<StoredJob> JobStore::WithHeader(const std::string& id) {
  StoredJob job;
  {
    MutexLock lock(&mutex_);
    const StoredJob* const found = index_.Find(id);
    if (found == nullptr) return NoSuchJob(id);
    job = *found;
  }
  absl::StatusOr<std::string> header = folder_.ReadHeader(id);
  if (!header.ok()) {
    MutexLock lock(&mutex_);
    if (index_.Find(id) == nullptr) return NoSuchJob(id);  // the job has expired meanwhile
  }
  SPEXD_RETURN_IF_ERROR(Noted(header.status()));
  job.header = *std::move(header);
  return job;
}

std::optional<StoredJob> JobStore::FindRequest(const std::string& owner,
                                               const std::string& request_id) const {
  MutexLock lock(&mutex_);
  const StoredJob* const job = index_.FindRequest(owner, request_id);
  return job == nullptr ? std::nullopt : std::make_optional(*job);
}

absl::StatusOr<std::optional<JobStore::Submitted>> JobStore::FindSame(const StoredJob& job) const {
  MutexLock lock(&mutex_);
  return FindSameLocked(job);
}

absl::StatusOr<std::optional<JobStore::Submitted>> JobStore::FindSameLocked(const StoredJob& job) const {
  const StoredJob* const other = index_.FindRequest(job.owner, job.request_id);
  if (other == nullptr) return std::optional<Submitted>();
  if (other->digest == job.digest) return std::make_optional(Submitted{*other, true});
  return absl::AlreadyExistsError(absl::StrFormat(
      "request_id \"%s\" names job %s, which has another header or other input", job.request_id, other->id));
}

absl::StatusOr<JobStore::Submitted> JobStore::Add(Submission submission, DiskHold* disk) {
  StoredJob& job = submission.job;
  job.id = NewJobId();
  job.submitted = SecondsSince1970();
  if (submission.deadline_seconds > 0)
    job.deadline = job.submitted + static_cast<double>(submission.deadline_seconds);
  job.header_bytes = static_cast<int64_t>(job.header.size());
  {
    MutexLock lock(&mutex_);
    job.number = ++last_number_;
  }
  SPEXD_RETURN_IF_ERROR(CheckRoom(DiskOf(job)));
  SPEXD_RETURN_IF_ERROR(Noted(folder_.Write(job, submission.inputs)));

  std::string header = std::exchange(job.header, {});
  const absl::StatusOr<std::optional<Submitted>> same = PublishUnlessSame(job);
  if (!same.ok() || same->has_value()) folder_.Discard(job.id);
  SPEXD_RETURN_IF_ERROR(same.status());
  if (same->has_value()) return **same;
  disk->Keep();
  job.header = std::move(header);
  return Submitted{std::move(job), false};
}

absl::StatusOr<std::optional<JobStore::Submitted>> JobStore::PublishUnlessSame(const StoredJob& job) {
  MutexLock lock(&mutex_);
  SPEXD_ASSIGN_OR_RETURN(std::optional<Submitted> same, FindSameLocked(job));
  if (same.has_value()) return same;
  active_[job.id] = {std::make_shared<LiveJob>(job), DiskOf(job), DiskOf(job)};
  index_.Put(job);
  if (const absl::Status published = Noted(folder_.Publish(job.id)); !published.ok()) {
    index_.Erase(job.id);
    active_.erase(job.id);
    return published;
  }
  CountStates();
  return same;
}

absl::StatusOr<StoredJob> JobStore::Visible(const Identity& caller, const std::string& id) const {
  const StoredJob* const job = index_.Find(id);
  if (job == nullptr) return NoSuchJob(id);
  if (job->owner == caller.name || caller.roles.administer) return *job;
  return Conceal(NoSuchJob(id),
                 absl::StrFormat("job %s belongs to \"%s\"; only its owner or an administrator may use it",
                                 job->id, job->owner));
}

absl::StatusOr<StoredJob> JobStore::Get(const Identity& caller, const std::string& id) const {
  MutexLock lock(&mutex_);
  return Visible(caller, id);
}

std::vector<StoredJob> JobStore::List(const JobIndex::Filter& filter, int max) const {
  MutexLock lock(&mutex_);
  return index_.List(filter, max);
}

absl::StatusOr<StoredJob> JobStore::Change(const std::string& id,
                                           absl::FunctionRef<absl::Status(StoredJob*)> change) {
  const StoredJob* const found = index_.Find(id);
  if (found == nullptr) return NoSuchJob(id);
  StoredJob job = *found;
  SPEXD_RETURN_IF_ERROR(change(&job));
  ++job.changes;
  if (found->has_ended() && unlisted_.count(id) == 0) SPEXD_RETURN_IF_ERROR(Noted(index_file_.Forget({id})));
  SPEXD_RETURN_IF_ERROR(Noted(folder_.WriteState(job)));
  if (job.has_ended()) unlisted_.insert(id);
  index_.Put(job);
  CountStates();
  return job;
}

void JobStore::ShowToWatchers(const StoredJob& job) const {
  if (const auto active = active_.find(job.id); active != active_.end()) active->second.live->Follow(job);
}

absl::StatusOr<StoredJob> JobStore::Cancel(const Identity& caller, const std::string& id, bool* cancelled) {
  MutexLock lock(&mutex_);
  SPEXD_ASSIGN_OR_RETURN(StoredJob job, Visible(caller, id));
  *cancelled = !job.has_ended();
  if (!*cancelled) return job;
  const absl::Status why = absl::CancelledError(absl::StrFormat("cancelled by \"%s\"", caller.name));
  SPEXD_ASSIGN_OR_RETURN(job, Change(id, [&](StoredJob* changing) {
                           EndJob(why, changing);
                           return absl::OkStatus();
                         }));
  ShowToWatchers(job);
  return job;
}

absl::StatusOr<StoredJob> JobStore::Acknowledge(const Identity& caller, const std::string& id,
                                                uint64_t upto) {
  MutexLock lock(&mutex_);
  SPEXD_ASSIGN_OR_RETURN(StoredJob job, Visible(caller, id));
  if (upto <= job.acknowledged) return job;
  int64_t released = 0;
  SPEXD_ASSIGN_OR_RETURN(job, Change(id, [&](StoredJob* changing) {
                           if (upto > changing->last_sequence) {
                             return absl::OutOfRangeError(absl::StrFormat("upto is %d, the last event is %d",
                                                                          upto, changing->last_sequence));
                           }
                           changing->acknowledged = std::max(changing->acknowledged, upto);
                           if (changing->has_ended() && changing->acknowledged == changing->last_sequence)
                             released = std::exchange(changing->result_bytes, 0);
                           return absl::OkStatus();
                         }));
  if (released > 0 && active_.count(id) == 0) {
    folder_.RemoveUnneeded(job);
    space_.Give(job.owner, released);
  }
  return job;
}

absl::StatusOr<JobStore::Watched> JobStore::Watch(const Identity& caller, const std::string& id,
                                                  uint64_t after) {
  MutexLock lock(&mutex_);
  SPEXD_ASSIGN_OR_RETURN(const StoredJob job, Visible(caller, id));
  if (after > job.last_sequence)
    return absl::OutOfRangeError(
        absl::StrFormat("after is %d, the last event is %d", after, job.last_sequence));
  if (after < job.acknowledged) {
    return absl::OutOfRangeError(
        absl::StrFormat("after is %d, events up to %d were acknowledged", after, job.acknowledged));
  }
  EventLogReader reader(folder_.EventsPath(id), id, after);
  if (const auto active = active_.find(id); active != active_.end())
    return Watched{active->second.live, std::move(reader)};
  auto live = std::make_shared<LiveJob>(job);
  if (job.result_bytes == 0) live->Set([&](LiveJob::View* view) { view->last_sequence = after; });
  return Watched{std::move(live), std::move(reader)};
}

absl::Status JobStore::ReadingFailed(const std::string& id, const absl::Status& status) {
  {
    MutexLock lock(&mutex_);
    const StoredJob* const job = index_.Find(id);
    if (job == nullptr || job->result_bytes == 0)
      return absl::NotFoundError("the job's results were removed");
  }
  return Noted(status);
}

absl::StatusOr<StoredJob> JobStore::Started(const std::string& id) {
  {
    MutexLock lock(&mutex_);
    SPEXD_RETURN_IF_ERROR(Change(id, [](StoredJob* job) {
                            SPEXD_RETURN_IF_ERROR(CheckNotEnded(*job));
                            job->state = v1::DETACHED_STATE_RUNNING;
                            job->started = SecondsSince1970();
                            ++job->runs;
                            return absl::OkStatus();
                          }).status());
  }
  return WithHeader(id);
}

absl::Status JobStore::CheckInputs(const StoredJob& job, std::stop_token stop) {
  return Noted(folder_.CheckInputs(job, std::move(stop)));
}

absl::Status JobStore::CheckRoom(int64_t bytes) { return Noted(space_.CheckDisk(bytes)); }

absl::Status JobStore::ReserveForResults(const std::string& id, int64_t bytes) {
  MutexLock lock(&mutex_);
  const auto active = active_.find(id);
  if (active == active_.end()) return absl::AbortedError("the job has ended");
  Active& job = active->second;
  const int64_t more = job.before_results + bytes - job.charged;
  if (more <= 0) return absl::OkStatus();  // an earlier run reserved them
  SPEXD_RETURN_IF_ERROR(space_.Take(job.live->owner(), more, job.charged));
  job.charged += more;
  return absl::OkStatus();
}

absl::Status JobStore::Show(const std::string& id, const EventLogContent& content, int bundles_total) {
  MutexLock lock(&mutex_);
  SPEXD_ASSIGN_OR_RETURN(const StoredJob shown, Change(id, [&](StoredJob* job) {
                           SPEXD_RETURN_IF_ERROR(CheckNotEnded(*job));
                           // Deaths are not reset: otherwise the server could die once for each result.
                           if (content.last_sequence > job->last_sequence) job->device_failures = 0;
                           job->last_sequence = content.last_sequence;
                           job->result_bytes = content.bytes;
                           job->bundles_done = static_cast<int64_t>(content.bundles.size());
                           if (bundles_total > 0) job->bundles_total = bundles_total;
                           return absl::OkStatus();
                         }));
  ShowToWatchers(shown);
  return absl::OkStatus();
}

absl::StatusOr<StoredJob> JobStore::WaitAgain(const std::string& id, Failure failure) {
  MutexLock lock(&mutex_);
  SPEXD_ASSIGN_OR_RETURN(StoredJob job, Change(id, [&](StoredJob* changing) {
                           SPEXD_RETURN_IF_ERROR(CheckNotEnded(*changing));
                           changing->state = v1::DETACHED_STATE_QUEUED;
                           if (failure == Failure::kDeviceFailed) ++changing->device_failures;
                           if (failure == Failure::kServerDied) ++changing->deaths;
                           const absl::Status again = CheckFailures(*changing);
                           if (!again.ok()) EndJob(again, changing);
                           return absl::OkStatus();
                         }));
  if (job.has_ended()) {
    ShowToWatchers(job);
  } else if (const auto active = active_.find(id); active != active_.end()) {
    active->second.live->Set([](LiveJob::View* view) { view->state = "queued"; });
  }
  return job;
}

absl::StatusOr<StoredJob> JobStore::End(const std::string& id, const absl::Status& result) {
  MutexLock lock(&mutex_);
  SPEXD_ASSIGN_OR_RETURN(StoredJob job, Change(id, [&](StoredJob* changing) {
                           SPEXD_RETURN_IF_ERROR(CheckNotEnded(*changing));
                           EndJob(result, changing);
                           return absl::OkStatus();
                         }));
  ShowToWatchers(job);
  return job;
}

absl::StatusOr<std::vector<StoredJob>> JobStore::EndLate(int max) {
  std::vector<StoredJob> late;
  {
    MutexLock lock(&mutex_);
    for (const std::string& id : index_.LateAt(SecondsSince1970(), static_cast<size_t>(max)))
      late.push_back(*index_.Find(id));
  }
  std::vector<StoredJob> ended;
  for (const StoredJob& job : late) {
    const absl::Status passed =
        absl::DeadlineExceededError(absl::StrCat("the job had not ended ", job.deadline - job.submitted,
                                                 " seconds after it was submitted, its deadline"));
    absl::StatusOr<StoredJob> end = End(job.id, passed);
    if (absl::IsAborted(end.status()) || absl::IsNotFound(end.status())) continue;  // the job ended meanwhile
    // After an error, jobs that were ended before it are still returned, because they need CleanUp. The next
    // call tries again.
    if (!end.ok() && ended.empty()) return end.status();
    if (!end.ok()) break;
    ended.push_back(*std::move(end));
  }
  return ended;
}

double JobStore::SecondsToDeadline() const {
  MutexLock lock(&mutex_);
  return index_.next_deadline() - SecondsSince1970();
}

void JobStore::CleanUp(const std::string& id) {
  MutexLock lock(&mutex_);
  const auto active = active_.find(id);
  const StoredJob* const job = index_.Find(id);
  if (active == active_.end() || job == nullptr || !job->has_ended()) return;
  folder_.RemoveUnneeded(*job);
  space_.Give(job->owner, active->second.charged - DiskOf(*job));
  active_.erase(active);
}

std::shared_ptr<LiveJob> JobStore::Live(const std::string& id) const {
  MutexLock lock(&mutex_);
  const auto active = active_.find(id);
  return active == active_.end() ? nullptr : active->second.live;
}

std::vector<std::shared_ptr<LiveJob>> JobStore::AllLive() const {
  MutexLock lock(&mutex_);
  std::vector<std::shared_ptr<LiveJob>> all;
  for (const auto& [id, active] : active_) all.push_back(active.live);
  return all;
}

bool JobStore::Expire(const std::string& id) {
  if (!Noted(folder_.MoveToRemoved(id)).ok()) return false;
  const StoredJob job = *index_.Find(id);
  index_.Erase(id);
  unlisted_.erase(id);
  CountStates();
  space_.GiveJob(job.owner, DiskOf(job));
  ++expired_;
  JsonFields fields = LogFieldsOf(job);
  fields["identity"] = job.owner;
  log_->Info("job_expired", fields);
  return true;
}

double JobStore::RemoveExpired() {
  constexpr size_t kAtOnce = 100;
  constexpr int kMaxRounds = 10;
  constexpr double kMaxSeconds = 60, kSoon = 1;
  space_.CheckDisk(0).IgnoreError();  // callers who need room get the error from CheckRoom
  double left = space_.disk_full() ? kSoon : kMaxSeconds;
  size_t in_use = 0;
  bool more = true, failed = false;
  for (int round = 0; more && !failed && round < kMaxRounds; ++round) {
    std::vector<std::string> removed;
    {
      MutexLock lock(&mutex_);
      const std::vector<std::string> ids = index_.ExpiringUntil(SecondsSince1970(), kAtOnce + in_use);
      more = ids.size() == kAtOnce + in_use;
      in_use = 0;
      for (const std::string& id : ids) {
        if (active_.count(id) > 0) {
          ++in_use;
        } else if (Expire(id)) {
          removed.push_back(id);
        } else {
          failed = true;
          break;
        }
      }
    }
    if (!removed.empty() && !Noted(folder_.DeleteRemoved(removed)).ok()) failed = true;
    if (in_use > 0) left = kSoon;  // CleanUp will follow soon
  }
  if (failed) return left;
  MutexLock lock(&mutex_);
  const double next = index_.next_expiry() - SecondsSince1970();
  constexpr double kNever = 1e9;  // 30 years; with a clock that was set wrong, a Time could overflow
  space_.SetNextExpiry(next < kNever ? DiskSpace::Now() + std::chrono::ceil<std::chrono::milliseconds>(
                                                              std::chrono::duration<double>(next))
                                     : DiskSpace::Time::max());
  if (more && in_use == 0) return 0;
  return left == kSoon ? kSoon : std::clamp(next, 0.0, left);
}

void JobStore::RenewIndex() {
  constexpr int64_t kRecordBytes = 1024;  // approximate size of a record
  size_t jobs = 0;
  {
    MutexLock lock(&mutex_);
    jobs = index_.size();
    const size_t unlisted = index_file_.exists() ? unlisted_.size() : jobs;
    if (unlisted < std::max(min_unlisted_, jobs / 10)) return;
  }
  if (!space_.CheckDisk(static_cast<int64_t>(jobs) * kRecordBytes).ok()) return;
  if (!Noted(WriteIndex()).ok()) IndexFile::Discard(folder_.path());
}

absl::Status JobStore::WriteIndex() {
  constexpr int kAtOnce = 1000;
  SPEXD_ASSIGN_OR_RETURN(IndexFile next, IndexFile::Create(folder_.path()));
  JobIndex::Filter filter;
  for (bool first = true, more = true; more; first = false) {
    std::vector<StoredJob> listed;
    {
      MutexLock lock(&mutex_);
      if (first) unlisted_.clear();
      std::vector<StoredJob> jobs = index_.List(filter, kAtOnce);
      more = static_cast<int>(jobs.size()) == kAtOnce;
      if (more) filter.before = jobs.back().number;
      for (StoredJob& job : jobs) {
        if (!job.has_ended()) continue;
        if (active_.count(job.id) == 0) {
          listed.push_back(std::move(job));
        } else {
          unlisted_.insert(job.id);  // a start may have to remove files of the job
        }
      }
    }
    SPEXD_RETURN_IF_ERROR(next.Add(listed));
  }
  SPEXD_RETURN_IF_ERROR(next.Sync());  // writes most of the data while others may use the store
  MutexLock lock(&mutex_);
  SPEXD_RETURN_IF_ERROR(next.Forget({unlisted_.begin(), unlisted_.end()}));
  return next.Publish(&index_file_);
}

StoreStats JobStore::stats() const {
  StoreStats stats;
  for (size_t state = 0; state < counts_.size(); ++state) stats.jobs[state] = counts_[state];
  stats.disk_bytes = space_.used();
  stats.disk_limit_bytes = space_.limit();
  stats.disk_full = space_.disk_full();
  stats.expired = expired_;
  stats.recovered = recovered_;
  stats.quarantined = quarantined_;
  stats.disk_errors = disk_errors_;
  return stats;
}

}  // namespace spexd
