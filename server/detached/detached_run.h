// One run of a detached job that has its turn: from its inputs on disk to its results on disk.
#ifndef SPEXD_SERVER_DETACHED_DETACHED_RUN_H_
#define SPEXD_SERVER_DETACHED_DETACHED_RUN_H_

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/threads/mutex.h"
#include "server/detached/store/event_log.h"
#include "server/detached/store/job_store.h"
#include "server/jobs/extract_job.h"
#include "server/jobs/server_parts.h"
#include "server/status/job_board.h"

namespace spexd {

// The job itself runs on a thread of its own; the thread that calls Run writes what it makes.
class DetachedRun : public std::enable_shared_from_this<DetachedRun> {
 public:
  // What becomes of the job.
  struct Outcome {
    bool again = false;                  // it waits for another run ...
    std::chrono::milliseconds delay{0};  // ... not before this has passed
  };

  // `ticket`: its turn, which ends when the engine is done with the job. Outlives the run.
  DetachedRun(const ServerParts& parts, JobStore* store, std::string id, JobQueue::Ticket* ticket);

  // Call it once. Does not throw. Its files may be left when it returns.
  Outcome Run();

  enum class Why { kCancelled, kServerStops, kTimePassed };
  // Ends the run soon; the first reason counts.
  void Stop(Why why);
  const std::string& id() const { return id_; }

 private:
  absl::Status RunToEnd();
  absl::Status OpenEvents(const StoredJob& stored);
  absl::StatusOr<std::unique_ptr<ExtractJob>> MakeJob(const StoredJob& stored);
  // When this run ends at the latest.
  JobBounds BoundsOf(const StoredJob& stored);
  void RunJob();      // on the thread of its own
  void WaitForJob();  // drops what it still makes
  void WaitForMore();
  absl::Status WriteEvents(const StoredJob& stored);
  absl::Status TakeEvent(const JobEvent& event, const StoredJob& stored);
  absl::Status TakePlan(const PlanEvent& plan, const StoredJob& stored);
  // Disk for all results of the job, those that are there included.
  absl::Status Reserve(int64_t bytes);
  absl::Status Append(const std::vector<v1::ExtractEvent>& unit);
  absl::Status Commit();  // and show
  absl::Status Show();
  void SetState(const std::string& state);
  Outcome Settle(absl::Status status, const JobReport& report);
  Outcome WaitAgain(JobStore::Failure failure, std::chrono::milliseconds delay, const absl::Status& why);
  void NoteEnd(const StoredJob& stored, const absl::Status& status, const JobReport& report);

  const ServerParts parts_;
  JobStore* const store_;
  const std::string id_;
  JobQueue::Ticket* const ticket_;
  std::optional<JobBoard::Row> row_;  // while it runs
  int spectra_ = 0;                   // of this run
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::stop_source stop_;
  std::atomic<int> why_ = -1;  // a Why, once it was stopped
  JsonFields log_fields_;
  std::optional<EventLogWriter> events_;
  bool uncommitted_ = false;
  bool disk_failed_ = false;   // the event log could not be read or written ...
  bool state_failed_ = false;  // ... or the state
  int bundles_total_ = 0;
  int64_t reserved_ = 0;  // disk for all results of the job, as far as this run asked for it
  std::unique_ptr<JobMailbox> mailbox_;
  std::unique_ptr<ExtractJob> job_;

  Mutex mutex_;
  CondVar changed_;
  bool more_ ABSL_GUARDED_BY(mutex_) = false;  // events, or the end of them
  absl::Status job_status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_DETACHED_RUN_H_
