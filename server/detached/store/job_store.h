// The store of detached jobs: their files in a folder (see JobsFolder), and the operations of callers and
// runs on them.
//
// A job exists as soon as its folder is in jobs/. A function returns only when the change that it reports is
// on disk. job_store_start.cc has the start, which reads the folder.
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

// Safe to use from many threads. All functions except stats may wait for the disk. For a caller that is no
// administrator, jobs of other identities do not exist. Errors of all functions: NotFound, there is no such
// job; Unavailable, the disk cannot be read or written (the message names the file).
class JobStore {
 public:
  struct Settings {
    std::string folder;
    DiskSpace::Limits disk;
    // The number of ended jobs that may be missing in the index; a start reads their files.
    size_t min_unlisted = 1000;
  };
  // Opens or creates the folder and reads all jobs. Damaged jobs are moved to quarantine/. `log` is not
  // owned. Unavailable: another server uses the folder, or the disk cannot be read or written.
  // FailedPrecondition: a newer version of spexd wrote a job.
  static absl::StatusOr<std::unique_ptr<JobStore>> Open(const Settings& settings, Logger* log);

  // Returns the jobs that had not ended when the folder was opened, oldest first, with their headers. This
  // includes jobs that Open has ended because the server's process died too often while they ran. Call it
  // once.
  std::vector<StoredJob> TakeRecovered() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns a job with its header.
  absl::StatusOr<StoredJob> WithHeader(const std::string& id) ABSL_LOCKS_EXCLUDED(mutex_);

  // --- Submission ---

  struct Submission {
    StoredJob job;  // the fields of what was submitted, without id, number and times
    std::vector<std::pair<std::string, std::string>> inputs;  // name and bytes of each of job.inputs
    int64_t deadline_seconds = 0;                             // from the submission; 0: none
  };
  struct Submitted {
    StoredJob job;
    bool existed = false;  // an earlier call submitted the job
  };
  // Returns the disk space that a submission takes, in bytes.
  static int64_t BytesOf(const std::string& header, int64_t input_bytes) {
    return kJobBytes + static_cast<int64_t>(header.size()) + input_bytes;
  }
  // Returns the owner's job of that request_id; nullopt: there is none.
  std::optional<StoredJob> FindRequest(const std::string& owner, const std::string& request_id) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the job of an equal earlier submission; nullopt: there is none. AlreadyExists: the owner has a
  // job of this request_id with another digest.
  absl::StatusOr<std::optional<Submitted>> FindSame(const StoredJob& job) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds a job, or returns that of an equal earlier submission. The job is on disk when this returns. `disk`:
  // the reserved bytes, which a new job keeps. AlreadyExists: as in FindSame. Unavailable: the disk is full
  // or cannot be written; nothing is left of the job.
  absl::StatusOr<Submitted> Add(Submission submission, DiskHold* disk) ABSL_LOCKS_EXCLUDED(mutex_);

  // --- Requests of callers ---

  absl::StatusOr<StoredJob> Get(const Identity& caller, const std::string& id) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns at most `max` jobs, newest first, without headers.
  std::vector<StoredJob> List(const JobIndex::Filter& filter, int max) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Cancels a job unless it has ended, and returns it. Sets `cancelled` to whether this call ended it; the
  // caller must then call CleanUp, after the job's run has ended if there is one.
  absl::StatusOr<StoredJob> Cancel(const Identity& caller, const std::string& id, bool* cancelled)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Acknowledges a job's events up to a sequence number, and returns the job. OutOfRange: `upto` is beyond
  // the last event.
  absl::StatusOr<StoredJob> Acknowledge(const Identity& caller, const std::string& id, uint64_t upto)
      ABSL_LOCKS_EXCLUDED(mutex_);
  struct Watched {
    std::shared_ptr<LiveJob> job;  // does not change if the job has ended
    EventLogReader reader;
  };
  // Begins to watch a job after a sequence number. OutOfRange: `after` is beyond the last event, or before
  // the last acknowledged one.
  absl::StatusOr<Watched> Watch(const Identity& caller, const std::string& id, uint64_t after)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the status for a watcher whose reader failed with `status`. NotFound: the results were removed
  // meanwhile (acknowledged or cancelled). Counts and logs an error of the disk.
  absl::Status ReadingFailed(const std::string& id, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  // --- Runs of jobs. Aborted: the job has ended meanwhile, because it was cancelled or is too late ---

  // Begins a run and returns the job with its header. DataLoss: the header is damaged or missing.
  absl::StatusOr<StoredJob> Started(const std::string& id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Checks the SHA-256 of the uploads. DataLoss: one is damaged or missing. Cancelled: a stop was requested.
  absl::Status CheckInputs(const StoredJob& job, std::stop_token stop = {});
  // Checks that the disk has room for `bytes` before they are written. Unavailable: it has not.
  absl::Status CheckRoom(int64_t bytes);
  // Reserves disk space for all results of a job, of `bytes` in all. Errors as in DiskSpace::Take.
  absl::Status ReserveForResults(const std::string& id, int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Stores and shows to watchers what the event log holds. REQUIRES: it was committed.
  absl::Status Show(const std::string& id, const EventLogContent& content, int bundles_total)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // What ended a run before the job's end, if the job may be the cause.
  enum class Failure { kNone, kDeviceFailed, kServerDied };
  // Lets the job wait for another run, or ends it after too many failures. Returns the job.
  absl::StatusOr<StoredJob> WaitAgain(const std::string& id, Failure failure) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends a job with `result` and returns it.
  absl::StatusOr<StoredJob> End(const std::string& id, const absl::Status& result)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends at most `max` jobs whose deadlines have passed, and returns them. The caller must call CleanUp for
  // each, after its run has ended if there is one.
  absl::StatusOr<std::vector<StoredJob>> EndLate(int max) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the seconds until the next deadline of a job that has not ended; infinite if there is none.
  double SecondsToDeadline() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes the files that an ended job does not need. It may be called more than once. REQUIRES: nothing
  // uses the job's files.
  void CleanUp(const std::string& id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the job's state for watchers; null after CleanUp.
  std::shared_ptr<LiveJob> Live(const std::string& id) const ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::shared_ptr<LiveJob>> AllLive() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Removes jobs whose time to live has passed, some at a time, and checks whether the disk is full. Returns
  // the seconds until it should be called again, at most a minute.
  double RemoveExpired() ABSL_LOCKS_EXCLUDED(mutex_);

  // Writes a new index (see index_file.h) if the one on disk lacks many jobs: a tenth of all and at least
  // min_unlisted. Call it now and then, from one thread at a time.
  void RenewIndex() ABSL_LOCKS_EXCLUDED(mutex_);

  const JobsFolder& folder() const { return folder_; }
  DiskSpace& space() { return space_; }

  // Counts and logs `status` if it is an error of the disk.
  void NoteDiskError(const absl::Status& status);
  StoreStats stats() const;

 private:
  struct Active {
    std::shared_ptr<LiveJob> live;
    int64_t charged = 0;         // bytes reserved in `space_`
    int64_t before_results = 0;  // bytes of `charged` that are not for results
  };

  JobStore(const Settings& settings, JobsFolder folder, Logger* log)
      : folder_(std::move(folder)),
        space_(settings.disk, DiskSpace::Now(), settings.folder),
        min_unlisted_(settings.min_unlisted),
        log_(log) {}

  absl::Status ReadJobs() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status ReadJob(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Quarantine(const std::string& name, const absl::Status& damage);
  // Adds a job whose folder exists.
  void Take(StoredJob job) ABSL_LOCKS_EXCLUDED(mutex_);
  void Recover(StoredJob job) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the job if the caller may see it. Otherwise NotFound, which conceals a denial (see Conceal).
  absl::StatusOr<StoredJob> Visible(const Identity& caller, const std::string& id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::optional<Submitted>> FindSameLocked(const StoredJob& job) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Publishes a job that was written and returns nullopt. If FindSame finds a job or fails, publishes nothing
  // and returns its result.
  absl::StatusOr<std::optional<Submitted>> PublishUnlessSame(const StoredJob& job)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Changes the fields of what happened to a job, on disk and in the index, and returns the job. If `change`
  // fails, nothing is changed and its error is returned.
  absl::StatusOr<StoredJob> Change(const std::string& id, absl::FunctionRef<absl::Status(StoredJob*)> change)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ShowToWatchers(const StoredJob& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes an expired job. Returns false if it could not be moved.
  bool Expire(const std::string& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status WriteIndex() ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the status after NoteDiskError.
  absl::Status Noted(absl::Status status) {
    NoteDiskError(status);
    return status;
  }
  // Updates the numbers of jobs of each state for `stats`.
  void CountStates() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const JobsFolder folder_;
  DiskSpace space_;
  const size_t min_unlisted_;
  Logger* const log_;
  mutable Mutex mutex_;
  std::vector<StoredJob> recovered_jobs_ ABSL_GUARDED_BY(mutex_);
  JobIndex index_ ABSL_GUARDED_BY(mutex_);
  IndexFile index_file_ ABSL_GUARDED_BY(mutex_);
  // The ids of ended jobs whose files a start reads, because the index does not list them.
  std::unordered_set<std::string> unlisted_ ABSL_GUARDED_BY(mutex_);
  int64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Active> active_ ABSL_GUARDED_BY(mutex_);  // jobs before CleanUp
  std::array<std::atomic<int64_t>, v1::DetachedState_ARRAYSIZE> counts_ = {};
  std::atomic<int64_t> expired_ = 0, recovered_ = 0, quarantined_ = 0, disk_errors_ = 0;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_STORE_JOB_STORE_H_
