// Detached jobs: their files in a folder (see JobsFolder), and what callers ask and runs change of them.
//
// A job exists once its folder has its name in jobs/. An answer is given once what it tells is on disk. What
// a start reads, and how it takes up jobs, is in job_store_start.cc.
#ifndef SPEXD_SERVER_DETACHED_STORE_JOB_STORE_H_
#define SPEXD_SERVER_DETACHED_STORE_JOB_STORE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/base/threads/mutex.h"
#include "server/base/log.h"
#include "server/detached/store/disk_space.h"
#include "server/detached/store/event_log.h"
#include "server/detached/store/index_file.h"
#include "server/detached/store/job_index.h"
#include "server/detached/store/jobs_folder.h"
#include "server/detached/store/live_job.h"
#include "server/detached/store/stored_job.h"
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
    // Jobs that have ended whose files a start may read before they are listed in the index.
    size_t min_unlisted = 1000;
  };
  // Opens the folder, or makes it, and reads all jobs; what is damaged goes to quarantine/. `log` is not
  // owned. Unavailable: another server uses the folder, or the disk cannot be read or written.
  // FailedPrecondition: a newer version of spexd wrote a job.
  static absl::StatusOr<std::unique_ptr<JobStore>> Open(const Settings& settings, Logger* log);

  // Jobs that had not ended when the folder was opened, oldest first, with their headers. Those that were
  // running when the server's process died once too often have ended since.
  std::vector<StoredJob> TakeRecovered() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<StoredJob> WithHeader(const std::string& id) ABSL_LOCKS_EXCLUDED(mutex_);

  // --- Submission ---

  struct Submission {
    StoredJob job;  // what was submitted, but for its id, number and times
    std::vector<std::pair<std::string, std::string>> inputs;  // of job.inputs: name and bytes
    int64_t deadline_seconds = 0;                             // from now; 0: none
  };
  struct Submitted {
    StoredJob job;
    bool existed = false;
  };
  // Disk that a submission takes.
  static int64_t BytesOf(const std::string& header, int64_t input_bytes) {
    return kJobBytes + static_cast<int64_t>(header.size()) + input_bytes;
  }
  // The owner's job of that request_id.
  std::optional<StoredJob> FindRequest(const std::string& owner, const std::string& request_id) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The job that this submission brought before, if there is one. AlreadyExists: the owner has a job of this
  // request_id and another digest.
  absl::StatusOr<std::optional<Submitted>> FindSame(const StoredJob& job) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The job is on disk when this returns. AlreadyExists: the owner has a job of this request_id and another
  // digest. Unavailable: the disk is full, or cannot be written; nothing is left of the job. `disk`: its
  // bytes, which are kept with a new job.
  absl::StatusOr<Submitted> Add(Submission submission, DiskHold* disk) ABSL_LOCKS_EXCLUDED(mutex_);

  // --- What callers ask for ---

  absl::StatusOr<StoredJob> Get(const Identity& caller, const std::string& id) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Newest first, without headers.
  std::vector<StoredJob> List(const JobIndex::Filter& filter, int max) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The job; `cancelled` tells whether this call ended it. Then CleanUp must follow, after the run that it
  // may have.
  absl::StatusOr<StoredJob> Cancel(const Identity& caller, const std::string& id, bool* cancelled)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // OutOfRange: `upto` is beyond the last event.
  absl::StatusOr<StoredJob> Acknowledge(const Identity& caller, const std::string& id, uint64_t upto)
      ABSL_LOCKS_EXCLUDED(mutex_);
  struct Watched {
    std::shared_ptr<LiveJob> job;  // one that ended stays as it is
    EventLogReader reader;
  };
  // OutOfRange: `after` is beyond the last event, or before what was acknowledged.
  absl::StatusOr<Watched> Watch(const Identity& caller, const std::string& id, uint64_t after)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // What a watcher is told where its reader failed. NotFound: the results were removed meanwhile
  // (acknowledged, cancelled). Counts and logs what the disk has done.
  absl::Status ReadingFailed(const std::string& id, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  // --- A job's run. Aborted: the job has ended meanwhile (it was cancelled) ---

  // The job runs now. Returns it with its header. DataLoss: its header is damaged or missing.
  absl::StatusOr<StoredJob> Started(const std::string& id) ABSL_LOCKS_EXCLUDED(mutex_);
  // DataLoss: an upload is damaged or missing. Cancelled: `stop` was requested.
  absl::Status CheckInputs(const StoredJob& job, std::stop_token stop = {});
  // Unavailable: the disk has not so many bytes to spare. To be asked before they are written.
  absl::Status CheckRoom(int64_t bytes);
  // More of the results may be taken from `space` by the job.
  absl::Status ReserveForResults(const std::string& id, int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Shows what the event log holds to those who watch. REQUIRES: it was committed.
  absl::Status Show(const std::string& id, const EventLogContent& content, int bundles_total)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // What ended a run before the job's end, where the job may be the cause.
  enum class Failure { kNone, kDeviceFailed, kServerDied };
  // The job waits for another run, or ends after too many failures. Returns it.
  absl::StatusOr<StoredJob> WaitAgain(const std::string& id, Failure failure) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<StoredJob> End(const std::string& id, const absl::Status& result)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends jobs whose deadline has passed, at most `max`, and returns them; for each CleanUp must follow, after
  // the run that it may have.
  absl::StatusOr<std::vector<StoredJob>> EndLate(int max) ABSL_LOCKS_EXCLUDED(mutex_);
  // Seconds until the next deadline of a job that has not ended; infinite if there is none.
  double SecondsToDeadline() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Nothing uses the files of a job that has ended any more: removes those that it does not need. To be
  // called once or more.
  void CleanUp(const std::string& id) ABSL_LOCKS_EXCLUDED(mutex_);
  // The job as those see it who watch; null after CleanUp.
  std::shared_ptr<LiveJob> Live(const std::string& id) const ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::shared_ptr<LiveJob>> AllLive() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Removes jobs whose time to live has passed, some at a time, and looks whether the disk is full; returns
  // the seconds until it should be called again, at most a minute.
  double RemoveExpired() ABSL_LOCKS_EXCLUDED(mutex_);

  // Writes another index (see index_file.h) if the one on disk lacks many jobs: a tenth of them and at least
  // min_unlisted. To be called now and then, by one thread at a time.
  void RenewIndex() ABSL_LOCKS_EXCLUDED(mutex_);

  const JobsFolder& folder() const { return folder_; }
  DiskSpace& space() { return space_; }

  // Counts and logs an error of the disk; other statuses are none.
  void NoteDiskError(const absl::Status& status);
  StoreStats stats() const;

 private:
  struct Active {
    std::shared_ptr<LiveJob> live;
    int64_t charged = 0;         // taken from `space`
    int64_t before_results = 0;  // of that, what it took before its results
  };

  JobStore(const Settings& settings, JobsFolder folder, Logger* log)
      : folder_(std::move(folder)),
        space_(settings.disk, DiskSpace::Now(), settings.folder),
        min_unlisted_(settings.min_unlisted),
        log_(log) {}

  absl::Status ReadJobs() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status ReadJob(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Quarantine(const std::string& name, const absl::Status& damage);
  // A job that is in its folder.
  void Take(StoredJob job) ABSL_LOCKS_EXCLUDED(mutex_);
  void Recover(StoredJob job) ABSL_LOCKS_EXCLUDED(mutex_);
  // The job, if the caller may see it; otherwise the error conceals that it was denied, see Conceal.
  absl::StatusOr<StoredJob> Visible(const Identity& caller, const std::string& id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::optional<Submitted>> FindSameLocked(const StoredJob& job) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Publishes a job that was written, and returns none; or else returns what FindSame returns.
  absl::StatusOr<std::optional<Submitted>> PublishUnlessSame(const StoredJob& job)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Changes what happened to a job, on disk and in the index. An error of `change` is returned, and nothing
  // changed.
  absl::StatusOr<StoredJob> Change(const std::string& id, absl::FunctionRef<absl::Status(StoredJob*)> change)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ShowToWatchers(const StoredJob& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns false where the job could not be moved.
  bool Expire(const std::string& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status WriteIndex() ABSL_LOCKS_EXCLUDED(mutex_);

  // The status, after NoteDiskError.
  absl::Status Noted(absl::Status status) {
    NoteDiskError(status);
    return status;
  }
  // Tells `stats` how many jobs there are of each state.
  void CountStates() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const JobsFolder folder_;
  DiskSpace space_;
  const size_t min_unlisted_;
  Logger* const log_;
  mutable Mutex mutex_;
  std::vector<StoredJob> recovered_jobs_ ABSL_GUARDED_BY(mutex_);
  JobIndex index_ ABSL_GUARDED_BY(mutex_);
  IndexFile index_file_ ABSL_GUARDED_BY(mutex_);
  // Ids of jobs that have ended and that a start reads from their files all the same.
  std::unordered_set<std::string> unlisted_ ABSL_GUARDED_BY(mutex_);
  int64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Active> active_ ABSL_GUARDED_BY(mutex_);  // not ended, or before CleanUp
  std::array<std::atomic<int64_t>, v1::DetachedState_ARRAYSIZE> counts_ = {};
  std::atomic<int64_t> expired_ = 0, recovered_ = 0, quarantined_ = 0, disk_errors_ = 0;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_STORE_JOB_STORE_H_
