#include "server/detached/store/job_store.h"

#include <algorithm>
#include <chrono>
#include <climits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/base/threads/guard.h"
#include "server/base/files.h"
#include "server/base/retry.h"
#include "server/detached/store/journal/job_row.h"

namespace spexd {
namespace {

absl::Status NoSuchJob(const std::string& id) {
  return absl::NotFoundError(absl::StrFormat("no job \"%s\"", id));
}

}  // namespace

std::string JobStore::InputPath(const std::string& id, const std::string& input) const {
  return absl::StrCat(folder_, "/jobs/", id, ".", input);
}

std::string JobStore::SpoolPath(const std::string& id) const { return InputPath(id, "spool"); }

void JobStore::NoteDiskError(const absl::Status& status) {
  if (!absl::IsUnavailable(status) && !absl::IsDataLoss(status)) return;
  ++disk_errors_;
  log_->Failure("jobs_disk_error", status);
}

absl::Status JobStore::WriteInputs(const Submission& submission, const std::vector<std::string>& paths) {
  for (size_t k = 0; k < paths.size(); ++k) {
    SPEXD_RETURN_IF_ERROR(WriteWholeFile(paths[k], submission.inputs[k].second));
  }
  return absl::OkStatus();
}

void JobStore::RemoveInputs(const std::string& id) {
  for (const char* input : kInputNames) RemoveFile(InputPath(id, input));
}

absl::StatusOr<std::optional<JobStore::Submitted>> JobStore::FindSame(const JobRow& row) {
  SPEXD_ASSIGN_OR_RETURN(std::optional<JobRow> other, FindRequest(row.owner, row.request_id));
  if (!other.has_value()) return std::optional<Submitted>();
  if (other->digest == row.digest) return std::make_optional(Submitted{*std::move(other), true});
  return absl::AlreadyExistsError(absl::StrFormat(
      "request_id \"%s\" names job %s, which has another header or other input", row.request_id, other->id));
}

absl::StatusOr<JobStore::Submitted> JobStore::Add(Submission submission, DiskHold* disk) {
  JobRow& row = submission.row;
  row.id = NewJobId();
  row.submitted = SecondsSince1970();
  if (submission.deadline_seconds > 0)
    row.deadline = row.submitted + static_cast<double>(submission.deadline_seconds);
  row.input_bytes = static_cast<int64_t>(row.header.size());
  for (const auto& [input, bytes] : submission.inputs) row.input_bytes += static_cast<int64_t>(bytes.size());
  SPEXD_RETURN_IF_ERROR(CheckRoom());
  // Made before the row is on disk, as nothing may fail then.
  Submitted submitted{row, false};
  std::map<std::string, Active> active = {
      {row.id, {std::make_shared<LiveJob>(row.id, row.owner), DiskOf(row), DiskOf(row)}}};
  std::vector<std::string> paths;
  for (const auto& [input, bytes] : submission.inputs) paths.push_back(InputPath(row.id, input));
  const auto drop_inputs = [&paths] {
    for (const std::string& path : paths) RemoveFile(path);
  };
  const absl::Status written = CatchExceptions([&] { return WriteInputs(submission, paths); });
  if (!written.ok()) {
    drop_inputs();
    NoteDiskError(written);
    return written;
  }
  const absl::Status inserted = Insert(row, std::move(active), disk);
  if (inserted.ok()) return submitted;
  if (!absl::IsAlreadyExists(inserted)) {
    NoteDiskError(inserted);
    return inserted;
  }
  drop_inputs();
  SPEXD_ASSIGN_OR_RETURN(std::optional<Submitted> same, FindSame(row));
  if (same.has_value()) return *std::move(same);
  return absl::UnavailableError("a job of this request_id has just been removed; submit again");
}

absl::Status JobStore::Insert(const JobRow& row, std::map<std::string, Active> active, DiskHold* disk) {
  MutexLock lock(&mutex_);
  active_.merge(active);
  const absl::Status inserted = CatchExceptions([&] { return journal_->Insert(row); });
  if (inserted.ok()) ++CountOf(row.state);
  if (!inserted.ok()) active_.erase(row.id);
  if (!absl::IsAlreadyExists(inserted)) disk->Keep();
  return inserted;
}

absl::StatusOr<JobRow> JobStore::WithHeader(const std::string& id) {
  SPEXD_ASSIGN_OR_RETURN(std::optional<JobRow> row, journal_->Find(id));
  if (!row.has_value()) return NoSuchJob(id);
  return *std::move(row);
}

absl::StatusOr<JobRow> JobStore::Visible(const Identity& caller, const std::string& id) {
  SPEXD_ASSIGN_OR_RETURN(JobRow row, WithHeader(id));
  if (row.owner == caller.name || caller.roles.administer) return row;
  return Conceal(NoSuchJob(id),
                 absl::StrFormat("job %s belongs to \"%s\"; only its owner or an administrator may use it",
                                 row.id, row.owner));
}

absl::StatusOr<JobRow> JobStore::Get(const Identity& caller, const std::string& id) {
  return Visible(caller, id);
}

absl::StatusOr<JobRow> JobStore::Change(const std::string& id,
                                        const std::function<absl::Status(JobRow*)>& change) {
  v1::DetachedState before = v1::DETACHED_STATE_UNSPECIFIED;
  absl::StatusOr<JobRow> row = journal_->Change(id, [&](JobRow* changing) {
    before = changing->state;
    return change(changing);
  });
  NoteDiskError(row.status());
  if (row.ok()) {
    --CountOf(before);
    ++CountOf(row->state);
  }
  return row;
}

void JobStore::SetEnded(const JobRow& row) {
  const auto active = active_.find(row.id);
  if (active == active_.end()) return;
  active->second.live->Set([&](LiveJob::View* view) {
    view->ended = true;
    view->code = static_cast<absl::StatusCode>(row.code);
    CatchExceptions([&] {
      view->message = row.message;
    }).IgnoreError();  // without memory those who watch are told of the code alone
  });
}

absl::StatusOr<JobRow> JobStore::Cancel(const Identity& caller, const std::string& id, bool* cancelled) {
  *cancelled = false;
  SPEXD_RETURN_IF_ERROR(Visible(caller, id).status());
  MutexLock lock(&mutex_);
  SPEXD_ASSIGN_OR_RETURN(const JobRow row, Change(id, [&](JobRow* changing) {
                           if (changing->has_ended()) return absl::OkStatus();
                           EndRow(absl::CancelledError(absl::StrFormat("cancelled by \"%s\"", caller.name)),
                                  changing);
                           *cancelled = true;
                           return absl::OkStatus();
                         }));
  if (*cancelled) SetEnded(row);
  return row;
}

absl::StatusOr<JobRow> JobStore::Acknowledge(const Identity& caller, const std::string& id, uint64_t upto) {
  SPEXD_RETURN_IF_ERROR(Visible(caller, id).status());
  MutexLock lock(&mutex_);
  int64_t released = 0;
  SPEXD_ASSIGN_OR_RETURN(const JobRow row, Change(id, [&](JobRow* changing) {
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
    RemoveFile(SpoolPath(id));
    space_.Give(row.owner, released);
  }
  return row;
}

absl::StatusOr<JobStore::Watched> JobStore::Watch(const Identity& caller, const std::string& id,
                                                  uint64_t after) {
  std::shared_ptr<LiveJob> live = Live(id);
  SPEXD_ASSIGN_OR_RETURN(const JobRow row, Visible(caller, id));
  uint64_t version = 0;
  const uint64_t last = live == nullptr ? row.last_sequence : live->Look(&version).last_sequence;
  if (after > std::max(last, row.last_sequence))
    return absl::OutOfRangeError(absl::StrFormat("after is %d, the last event is %d", after, last));
  if (after < row.acknowledged) {
    return absl::OutOfRangeError(
        absl::StrFormat("after is %d, events up to %d were acknowledged", after, row.acknowledged));
  }
  if (live == nullptr) {
    live = std::make_shared<LiveJob>(row.id, row.owner);
    live->Set([&](LiveJob::View* view) {
      view->last_sequence = row.result_bytes > 0 ? row.last_sequence : after;
      view->bundles_done = static_cast<int>(row.bundles_done);
      view->bundles_total = static_cast<int>(row.bundles_total);
      view->ended = true;
      view->code = static_cast<absl::StatusCode>(row.code);
      view->message = row.message;
    });
  }
  return Watched{std::move(live), SpoolReader(SpoolPath(id), id, after)};
}

absl::StatusOr<JobRow> JobStore::Started(const std::string& id) {
  MutexLock lock(&mutex_);
  return Change(id, [](JobRow* row) {
    SPEXD_RETURN_IF_ERROR(CheckNotEnded(*row));
    row->state = v1::DETACHED_STATE_RUNNING;
    row->started = SecondsSince1970();
    ++row->runs;
    return absl::OkStatus();
  });
}

absl::Status JobStore::CheckRoom() {
  absl::Status filled = journal_->FillReserve();
  NoteDiskError(filled);
  return filled;
}

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

absl::Status JobStore::Show(const std::string& id, const SpoolContent& content, int bundles_total) {
  MutexLock lock(&mutex_);
  SPEXD_RETURN_IF_ERROR(Change(id, [&](JobRow* row) {
                          SPEXD_RETURN_IF_ERROR(CheckNotEnded(*row));
                          // The server must not die once for each result: deaths stay.
                          if (content.last_sequence > row->last_sequence)
                            row->setbacks -= row->device_failures();
                          row->last_sequence = content.last_sequence;
                          row->result_bytes = content.bytes;
                          row->bundles_done = static_cast<int64_t>(content.bundles.size());
                          if (bundles_total > 0) row->bundles_total = bundles_total;
                          return absl::OkStatus();
                        }).status());
  const auto active = active_.find(id);
  if (active == active_.end()) return absl::OkStatus();
  active->second.live->Set([&](LiveJob::View* view) {
    view->last_sequence = content.last_sequence;
    view->bundles_done = static_cast<int>(content.bundles.size());
    if (bundles_total > 0) view->bundles_total = bundles_total;
  });
  return absl::OkStatus();
}

absl::StatusOr<JobRow> JobStore::WaitAgain(const std::string& id, Setback setback) {
  MutexLock lock(&mutex_);
  SPEXD_ASSIGN_OR_RETURN(const JobRow row, Change(id, [&](JobRow* changing) {
                           SPEXD_RETURN_IF_ERROR(CheckNotEnded(*changing));
                           changing->state = v1::DETACHED_STATE_QUEUED;
                           if (setback == Setback::kDeviceFailed) changing->setbacks += 1;
                           if (setback == Setback::kServerDied) changing->setbacks += JobRow::kDeath;
                           changing->setbacks = std::min<int64_t>(changing->setbacks, INT_MAX);
                           const absl::Status again = CheckSetbacks(*changing);
                           if (!again.ok()) EndRow(again, changing);
                           return absl::OkStatus();
                         }));
  if (row.has_ended()) {
    SetEnded(row);
  } else if (const auto active = active_.find(id); active != active_.end()) {
    active->second.live->Set([](LiveJob::View* view) { view->state = "queued"; });
  }
  return row;
}

absl::StatusOr<JobRow> JobStore::End(const std::string& id, const absl::Status& result) {
  MutexLock lock(&mutex_);
  SPEXD_ASSIGN_OR_RETURN(JobRow row, Change(id, [&](JobRow* changing) {
                           SPEXD_RETURN_IF_ERROR(CheckNotEnded(*changing));
                           EndRow(result, changing);
                           return absl::OkStatus();
                         }));
  SetEnded(row);
  return row;
}

absl::StatusOr<std::vector<JobRow>> JobStore::EndLate(int most) {
  absl::StatusOr<std::vector<JobRow>> late = journal_->Late(SecondsSince1970(), most);
  NoteDiskError(late.status());
  SPEXD_RETURN_IF_ERROR(late.status());
  std::vector<JobRow> ended;
  for (const JobRow& row : *late) {
    const absl::Status passed =
        absl::DeadlineExceededError(absl::StrCat("the job had not ended ", row.deadline - row.submitted,
                                                 " seconds after it was submitted, its deadline"));
    absl::StatusOr<JobRow> end = End(row.id, passed);
    if (absl::IsAborted(end.status()) || absl::IsNotFound(end.status())) continue;  // it ended meanwhile
    // Those before must be left all the same; the next call tries again.
    if (!end.ok() && ended.empty()) return end.status();
    if (!end.ok()) break;
    ended.push_back(*std::move(end));
  }
  return ended;
}

absl::StatusOr<double> JobStore::SecondsToDeadline() {
  SPEXD_ASSIGN_OR_RETURN(const double next, journal_->NextDeadline());
  return next - SecondsSince1970();
}

void JobStore::Leave(const std::string& id) {
  MutexLock lock(&mutex_);
  const auto active = active_.find(id);
  if (active == active_.end()) return;
  active->second.left = true;  // RemoveExpired tries again if this fails
  const absl::StatusOr<std::optional<JobRow>> row = journal_->Find(id);
  NoteDiskError(row.status());
  if (!row.ok()) return;
  active->second.left = row->has_value() && (*row)->has_ended();
  if (!active->second.left) return;
  RemoveInputs(id);
  if ((*row)->result_bytes == 0) RemoveFile(SpoolPath(id));
  space_.Give((*row)->owner, active->second.charged - DiskOf(**row));
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

void JobStore::LeaveAgain() {
  std::vector<std::string> left;
  {
    MutexLock lock(&mutex_);
    for (const auto& [id, active] : active_) {
      if (active.left) left.push_back(id);
    }
  }
  for (const std::string& id : left) Leave(id);
}

double JobStore::RemoveExpired() {
  constexpr int kAtOnce = 100;
  constexpr double kMostSeconds = 60;
  journal_->FillReserve().IgnoreError();  // there may be room again
  LeaveAgain();
  int in_use = 0;  // expired jobs that are about to be left
  for (bool more = true; more;) {
    MutexLock lock(&mutex_);
    const int most = kAtOnce + in_use;
    const absl::StatusOr<std::vector<JobRow>> rows = journal_->Expired(SecondsSince1970(), most);
    NoteDiskError(rows.status());
    if (!rows.ok()) return kMostSeconds;
    more = rows->size() == static_cast<size_t>(most);
    in_use = 0;
    for (const JobRow& row : *rows) {
      if (active_.count(row.id) > 0) {
        ++in_use;
        continue;
      }
      const std::string spool = SpoolPath(row.id);
      if (const absl::Status removed = journal_->Delete(row.id); !removed.ok()) {
        NoteDiskError(removed);
        return kMostSeconds;
      }
      RemoveFile(spool);
      space_.GiveJob(row.owner, DiskOf(row));
      --CountOf(row.state);
      ++expired_;
      JsonFields fields = LogFieldsOf(row);
      fields["identity"] = row.owner;
      log_->Info("job_expired", fields);
    }
  }
  if (in_use > 0) return 1;
  const absl::StatusOr<double> next = journal_->NextExpiry();
  const double left = next.ok() ? std::max(0.0, *next - SecondsSince1970()) : kMostSeconds;
  constexpr double kNever = 1e9;  // 30 years; where a clock was set wrong, more than a Time can hold may come
  space_.SetNextExpiry(left < kNever ? DiskSpace::Now() + std::chrono::ceil<std::chrono::milliseconds>(
                                                              std::chrono::duration<double>(left))
                                     : DiskSpace::Time::max());
  return std::min(left, kMostSeconds);
}

StoreStats JobStore::stats() const {
  StoreStats stats;
  for (size_t state = 0; state < counts_.size(); ++state) stats.jobs[state] = counts_[state];
  stats.disk_bytes = space_.used();
  stats.disk_limit_bytes = space_.limit();
  stats.disk_full = !journal_->reserve_is_whole();
  stats.swept = swept_;
  stats.expired = expired_;
  stats.recovered = recovered_;
  stats.damaged_journals = damaged_journals_;
  stats.damaged_jobs = damaged_jobs_;
  stats.disk_errors = disk_errors_;
  return stats;
}

}  // namespace spexd
