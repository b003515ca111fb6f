// How a server finds its folder, and puts it in order.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "server/base/files.h"
#include "server/detached/store/job_store.h"
#include "server/detached/store/journal/disk_reserve.h"
#include "server/detached/store/journal/job_row.h"
#include "server/detached/store/journal/journal_rescue.h"

namespace spexd {

absl::StatusOr<std::unique_ptr<JobStore>> JobStore::Open(const Settings& settings, Logger* log) {
  std::unique_ptr<JobStore> store(new JobStore(settings, log));
  SPEXD_RETURN_IF_ERROR(MakeFolder(store->folder_));
  store->CloseToOthers();
  SPEXD_RETURN_IF_ERROR(store->Lock());
  SPEXD_RETURN_IF_ERROR(store->OpenJournal());
  SPEXD_RETURN_IF_ERROR(MakeFolder(store->folder_ + "/jobs"));
  SPEXD_RETURN_IF_ERROR(SyncFolder(store->folder_));
  SPEXD_RETURN_IF_ERROR(store->Recover());
  return store;
}

// A folder that somebody else made may belong to another user: its files are closed all the same.
void JobStore::CloseToOthers() {
  if (chmod(folder_.c_str(), 0700) == 0) return;
  log_->Warning("jobs_dir_open",
                {{"message", std::string(DiskError(folder_, "cannot be given the mode 0700").message())}});
}

absl::Status JobStore::Lock() {
  const std::string path = folder_ + "/lock";
  lock_ = FileDescriptor(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (lock_.get() < 0) return DiskError(path, "cannot be made");
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
  if (errno == EWOULDBLOCK)
    return absl::UnavailableError(absl::StrCat(folder_, ": another spexd keeps its jobs here"));
  return DiskError(path, "cannot be locked");
}

absl::Status JobStore::OpenJournal() {
  const std::string path = folder_ + "/journal.db";
  SPEXD_RETURN_IF_ERROR(FinishRescue(path, "a server ended while it rescued the jobs of a damaged journal"));
  SPEXD_RETURN_IF_ERROR(KeepFilesWithoutJournal(path));
  absl::StatusOr<std::unique_ptr<Journal>> journal = Journal::Open(path);
  if (absl::IsDataLoss(journal.status())) {
    SPEXD_RETURN_IF_ERROR(Rescue(path, std::string(journal.status().message())));
    journal = Journal::Open(path);
  }
  if (!journal.ok()) {
    return absl::Status(journal.status().code(), absl::StrCat("--jobs-dir: ", journal.status().message()));
  }
  journal_ = *std::move(journal);
  return absl::OkStatus();
}

namespace {

// A journal with the intact jobs of a damaged one lies here, whole, until it takes the place of that one.
std::string RescuedPath(const std::string& journal) { return journal + "-rescued"; }

absl::Status Rename(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  return DiskError(from, "cannot be moved");
}

}  // namespace

absl::Status JobStore::Rescue(const std::string& journal, const std::string& damage) {
  const std::string unfinished = journal + "-rescue";
  DiskReserve reserve(journal + "-reserve");  // for a disk that is full
  absl::StatusOr<RescuedJournal> rescued = RescueJournal(journal, unfinished);
  while (absl::IsUnavailable(rescued.status()) && reserve.GiveUpPart())
    rescued = RescueJournal(journal, unfinished);
  SPEXD_RETURN_IF_ERROR(rescued.status());
  for (const RescuedJournal::DamagedJob& job : rescued->damaged) {
    ++damaged_jobs_;
    log_->Error("job_damaged", {{"job", job.id}, {"number", job.number}, {"message", job.why}});
  }
  SPEXD_RETURN_IF_ERROR(Rename(unfinished, RescuedPath(journal)));
  SPEXD_RETURN_IF_ERROR(SyncFolder(folder_));
  return FinishRescue(journal, damage);
}

// Each step may be the last one of this server: the next one begins here again, until the rescued journal has
// its name.
absl::Status JobStore::FinishRescue(const std::string& journal, const std::string& why) {
  const std::string rescued = RescuedPath(journal);
  if (access(rescued.c_str(), F_OK) != 0) return absl::OkStatus();
  SPEXD_ASSIGN_OR_RETURN(const std::set<std::string> intact, IdsOfRescued(rescued));
  SPEXD_ASSIGN_OR_RETURN(const std::string aside, MoveDamagedAside(intact));
  SPEXD_RETURN_IF_ERROR(Rename(rescued, journal));
  SPEXD_RETURN_IF_ERROR(SyncFolder(folder_));
  ++damaged_journals_;
  log_->Error("journal_damaged",
              {{"message", why}, {"moved_to", aside}, {"intact_jobs", static_cast<int64_t>(intact.size())}});
  return absl::OkStatus();
}

// Files of jobs beside no journal are not swept: somebody may want them.
absl::Status JobStore::KeepFilesWithoutJournal(const std::string& journal) {
  if (access(journal.c_str(), F_OK) == 0 || errno != ENOENT) return absl::OkStatus();
  const std::string jobs = folder_ + "/jobs";
  if (access(jobs.c_str(), F_OK) != 0) return absl::OkStatus();
  SPEXD_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(jobs));
  if (names.empty()) return absl::OkStatus();
  SPEXD_ASSIGN_OR_RETURN(const std::string aside, MoveDamagedAside({}));
  ++damaged_journals_;
  log_->Error("journal_missing", {{"message", absl::StrCat(journal, " is not there, but files of jobs are")},
                                  {"moved_to", aside}});
  return absl::OkStatus();
}

absl::StatusOr<std::string> JobStore::MoveDamagedAside(const std::set<std::string>& intact) {
  const std::string aside = absl::StrFormat(
      "%s/damaged-%d-%s", folder_, static_cast<int64_t>(SecondsSince1970()), NewJobId().substr(0, 8));
  const std::string jobs = folder_ + "/jobs";
  SPEXD_RETURN_IF_ERROR(MakeFolder(aside));
  SPEXD_RETURN_IF_ERROR(MakeFolder(aside + "/jobs"));
  // The jobs' files go first: a start that found no journal, but files, would take none of them for needed.
  if (access(jobs.c_str(), F_OK) == 0) {
    SPEXD_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(jobs));
    for (const std::string& name : names) {
      if (intact.count(name.substr(0, name.find('.'))) > 0) continue;
      log_->Error("job_file_damaged", {{"file", name}, {"moved_to", aside}});
      SPEXD_RETURN_IF_ERROR(Rename(absl::StrCat(jobs, "/", name), absl::StrCat(aside, "/jobs/", name)));
    }
    SPEXD_RETURN_IF_ERROR(SyncFolder(aside + "/jobs"));  // where they are now: first
    SPEXD_RETURN_IF_ERROR(SyncFolder(jobs));
  }
  for (const char* name : {"journal.db", "journal.db-wal", "journal.db-shm"}) {
    const std::string from = absl::StrCat(folder_, "/", name);
    if (std::rename(from.c_str(), absl::StrCat(aside, "/", name).c_str()) != 0 && errno != ENOENT)
      return DiskError(from, "is damaged and cannot be moved aside");
  }
  SPEXD_RETURN_IF_ERROR(SyncFolder(aside));
  SPEXD_RETURN_IF_ERROR(SyncFolder(folder_));
  return aside;
}

absl::Status JobStore::Recover() {
  std::map<std::string, JobRow> rows;
  SPEXD_RETURN_IF_ERROR(journal_->ForEach([&](const JobRow& row) {
    ++CountOf(row.state);
    space_.CountJob(row.owner, DiskOf(row));
    rows[row.id] = row;
  }));
  SPEXD_RETURN_IF_ERROR(Sweep(rows));
  for (auto& [id, row] : rows) {
    if (!row.has_ended()) SPEXD_RETURN_IF_ERROR(RecoverJob(std::move(row)));
  }
  std::sort(recovered_jobs_.begin(), recovered_jobs_.end(),
            [](const JobRow& a, const JobRow& b) { return a.number < b.number; });
  RemoveExpired();
  return absl::OkStatus();
}

absl::Status JobStore::RecoverJob(JobRow row) {
  ++recovered_;
  JsonFields fields = LogFieldsOf(row);
  fields["state"] = row.state == v1::DETACHED_STATE_RUNNING ? "running" : "queued";
  fields["runs"] = row.runs;
  fields["events"] = static_cast<int64_t>(row.last_sequence);
  log_->Info("job_recovered", fields);
  auto live = std::make_shared<LiveJob>(row.id, row.owner);
  live->Set([&](LiveJob::View* view) {
    view->last_sequence = row.last_sequence;
    view->bundles_done = static_cast<int>(row.bundles_done);
    view->bundles_total = static_cast<int>(row.bundles_total);
  });
  {
    MutexLock lock(&mutex_);
    active_[row.id] = {std::move(live), DiskOf(row), DiskOf(row) - row.result_bytes};
  }
  if (row.state == v1::DETACHED_STATE_RUNNING) {
    SPEXD_ASSIGN_OR_RETURN(row, WaitAgain(row.id, Setback::kServerDied));
    if (row.has_ended()) Leave(row.id);
  }
  row.header.clear();
  recovered_jobs_.push_back(std::move(row));
  return absl::OkStatus();
}

absl::Status JobStore::Sweep(const std::map<std::string, JobRow>& rows) {
  const std::string folder = folder_ + "/jobs";
  SPEXD_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(folder));
  for (const std::string& name : names) {
    const size_t dot = name.find('.');
    const auto row = rows.find(name.substr(0, dot));
    const std::string kind = dot == std::string::npos ? "" : name.substr(dot + 1);
    const bool input = std::find(kInputNames.begin(), kInputNames.end(), kind) != kInputNames.end();
    const bool needed = row != rows.end() &&
                        ((kind == "spool" && (!row->second.has_ended() || row->second.result_bytes > 0)) ||
                         (input && !row->second.has_ended()));
    if (needed) continue;
    RemoveFile(absl::StrCat(folder, "/", name));
    ++swept_;
    log_->Info("job_file_swept", {{"file", name}});
  }
  return absl::OkStatus();
}

}  // namespace spexd
