// Detached jobs on disk: the journal, their uploads and their results.
//
//   FOLDER/lock               held while a server uses the folder
//   FOLDER/journal.db         see Journal
//   FOLDER/journal.db-reserve room for the journal on a full disk, see DiskReserve
//   FOLDER/jobs/ID.image      an upload as it came; also .psf and .fibermap
//   FOLDER/jobs/ID.spool      results, see spool_format.h
//   FOLDER/damaged-TIME-ID/   a damaged journal, with the files of the jobs that were damaged in it: never
//   removed by spexd
//
// A job exists once its row is in the journal. Files are written before it, and removed after what makes them
// needless is there; what a crash leaves over is swept at the next start.
#ifndef SPEXD_SERVER_DETACHED_STORE_JOB_STORE_H_
#define SPEXD_SERVER_DETACHED_STORE_JOB_STORE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/file_descriptor.h"
#include "core/base/threads/mutex.h"
#include "server/base/log.h"
#include "server/detached/store/disk_space.h"
#include "server/detached/store/journal/job_row.h"
#include "server/detached/store/journal/journal.h"
#include "server/detached/store/live_job.h"
#include "server/detached/store/spool.h"
#include "server/operation/store_stats.h"
#include "server/security/identity.h"

namespace spexd {

// Safe to use from many threads. Everything may block for the disk, but for stats. Jobs of other identities
// do not exist for a caller who does not administer. Errors: NotFound, no such job; Unavailable, the disk
// cannot be read or written, naming the file.
class JobStore {
 public:
  struct Settings {
    std::string folder;
    DiskSpace::Limits disk;
  };
  // Opens the folder, or makes it: sweeps and removes what is of no use. `log` is not owned. Unavailable:
  // another server uses the folder, or it cannot be written. FailedPrecondition: it was written by a newer
  // version.
  static absl::StatusOr<std::unique_ptr<JobStore>> Open(const Settings& settings, Logger* log);

  // Jobs that had not ended when the folder was opened, oldest first, without headers. Those that were
  // running when the server's process died once too often have ended since.
  std::vector<JobRow> TakeRecovered() { return std::exchange(recovered_jobs_, {}); }
  absl::StatusOr<JobRow> WithHeader(const std::string& id);

  // --- Submission ---

  struct Submission {
    JobRow row;  // owner, request_id, header, digest, trace_id, keep_seconds, priority
    std::vector<std::pair<std::string, std::string>> inputs;  // "image", "psf" or "fibermap", with the bytes
    int64_t deadline_seconds = 0;                             // from now; 0: none
  };
  struct Submitted {
    JobRow row;
    bool existed = false;
  };
  // Disk that a submission takes.
  static int64_t BytesOf(const std::string& header, int64_t input_bytes) {
    return kRowBytes + static_cast<int64_t>(header.size()) + input_bytes;
  }
  // The owner's job of that request_id.
  absl::StatusOr<std::optional<JobRow>> FindRequest(const std::string& owner, const std::string& request_id) {
    return journal_->FindRequest(owner, request_id);
  }
  // The job that this submission brought before, if there is one. AlreadyExists: the owner has a job of this
  // request_id and another digest.
  absl::StatusOr<std::optional<Submitted>> FindSame(const JobRow& row);
  // The job is on disk when this returns. AlreadyExists: the owner has a job of this request_id and another
  // digest. `disk`: its bytes, which are kept with a new job. They are also kept where its
  // files stay until the next start: the journal failed while it took the row, which may yet be there.
  absl::StatusOr<Submitted> Add(Submission submission, DiskHold* disk) ABSL_LOCKS_EXCLUDED(mutex_);

  // --- What callers ask for ---

  absl::StatusOr<JobRow> Get(const Identity& caller, const std::string& id);
  absl::StatusOr<std::vector<JobRow>> List(const Journal::Filter& filter, int most) {
    return journal_->List(filter, most);
  }
  // The job's row; `cancelled` tells whether this call ended it. Then Leave must follow, after the run that
  // it may have.
  absl::StatusOr<JobRow> Cancel(const Identity& caller, const std::string& id, bool* cancelled)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // OutOfRange: `upto` is beyond the last event.
  absl::StatusOr<JobRow> Acknowledge(const Identity& caller, const std::string& id, uint64_t upto)
      ABSL_LOCKS_EXCLUDED(mutex_);
  struct Watched {
    std::shared_ptr<LiveJob> job;  // one that ended stays as it is
    SpoolReader reader;
  };
  // OutOfRange: `after` is beyond the last event, or before what was acknowledged.
  absl::StatusOr<Watched> Watch(const Identity& caller, const std::string& id, uint64_t after)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // --- A job's run. Aborted: the job has ended meanwhile (it was cancelled) ---

  absl::StatusOr<JobRow> Started(const std::string& id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ok as long as the disk has room beside what the journal keeps for itself: to be asked before results are
  // written.
  absl::Status CheckRoom();
  // More of the results may be taken from `space` by the job.
  absl::Status ReserveForResults(const std::string& id, int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Shows what the spool holds to those who watch. REQUIRES: it was committed.
  absl::Status Show(const std::string& id, const SpoolContent& content, int bundles_total)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // What ended a run before the job's end, where the job may be the cause: see JobRow::setbacks.
  enum class Setback { kNone, kDeviceFailed, kServerDied };
  // The job waits for another run, or ends after too many setbacks. Returns the row.
  absl::StatusOr<JobRow> WaitAgain(const std::string& id, Setback setback) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<JobRow> End(const std::string& id, const absl::Status& result) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends jobs whose deadline has passed, at most `most`, and returns their rows; for each Leave must follow,
  // after the run that it may have.
  absl::StatusOr<std::vector<JobRow>> EndLate(int most) ABSL_LOCKS_EXCLUDED(mutex_);
  // Seconds until the next deadline of a job that has not ended; infinite if there is none.
  absl::StatusOr<double> SecondsToDeadline();
  // Nothing uses the files of a job that has ended any more: removes those that it does not need. To be
  // called once or more.
  void Leave(const std::string& id) ABSL_LOCKS_EXCLUDED(mutex_);
  // The job as those see it who watch; null once it was left.
  std::shared_ptr<LiveJob> Live(const std::string& id) const ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::shared_ptr<LiveJob>> AllLive() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Removes jobs whose time to live has passed, and takes the journal's reserve again; returns the seconds
  // until the next one's does, at most a minute.
  double RemoveExpired() ABSL_LOCKS_EXCLUDED(mutex_);

  std::string InputPath(const std::string& id, const std::string& input) const;
  std::string SpoolPath(const std::string& id) const;
  DiskSpace& space() { return space_; }

  // Counts and logs an error of the disk; other statuses are none.
  void NoteDiskError(const absl::Status& status);
  StoreStats stats() const;

 private:
  struct Active {
    std::shared_ptr<LiveJob> live;
    int64_t charged = 0;         // taken from `space`
    int64_t before_results = 0;  // of that, what its row, header and inputs take
    bool left = false;           // Leave was called, and has not come to its end
  };

  JobStore(const Settings& settings, Logger* log)
      : folder_(settings.folder), space_(settings.disk), log_(log) {}

  void CloseToOthers();
  absl::Status Lock();
  absl::Status OpenJournal();
  absl::Status KeepFilesWithoutJournal(const std::string& journal);
  // The journal is damaged: a new one gets its intact jobs, and takes its place.
  absl::Status Rescue(const std::string& journal, const std::string& damage);
  // Puts the new one in its place, if there is one.
  absl::Status FinishRescue(const std::string& journal, const std::string& why);
  // Moves the journal aside, with the files of all but the intact jobs; returns the folder where they are
  // now.
  absl::StatusOr<std::string> MoveDamagedAside(const std::set<std::string>& intact);
  absl::Status Recover() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status RecoverJob(JobRow row) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Sweep(const std::map<std::string, JobRow>& rows);
  absl::Status WriteInputs(const Submission& submission, const std::vector<std::string>& paths);
  void RemoveInputs(const std::string& id);
  // `active`: the job's, alone.
  absl::Status Insert(const JobRow& row, std::map<std::string, Active> active, DiskHold* disk)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The row, if the caller may see it; otherwise the error conceals that it was denied, see Conceal.
  absl::StatusOr<JobRow> Visible(const Identity& caller, const std::string& id);
  absl::StatusOr<JobRow> Change(const std::string& id, const std::function<absl::Status(JobRow*)>& change)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetEnded(const JobRow& row) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Tries again what Leave could not do.
  void LeaveAgain() ABSL_LOCKS_EXCLUDED(mutex_);
  std::atomic<int64_t>& CountOf(v1::DetachedState state) { return counts_[static_cast<size_t>(state)]; }

  const std::string folder_;
  DiskSpace space_;
  Logger* const log_;
  FileDescriptor lock_{-1};
  std::unique_ptr<Journal> journal_;
  std::vector<JobRow> recovered_jobs_;
  mutable Mutex mutex_;
  std::map<std::string, Active> active_ ABSL_GUARDED_BY(mutex_);  // not ended, or not left
  std::array<std::atomic<int64_t>, v1::DetachedState_ARRAYSIZE> counts_ = {};
  std::atomic<int64_t> swept_ = 0, expired_ = 0, recovered_ = 0, damaged_journals_ = 0, damaged_jobs_ = 0,
                       disk_errors_ = 0;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_STORE_JOB_STORE_H_
