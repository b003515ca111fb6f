// One run of a detached job in its slot, from its inputs on disk to its results on disk.
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
#include "server/jobs/server_job.h"
#include "server/jobs/server_parts.h"

namespace spexd {

// The job runs on a thread of its own. The thread that calls Run writes its results.
class DetachedRun : public std::enable_shared_from_this<DetachedRun> {
 public:
  // How the run ended.
  struct Outcome {
    bool again = false;                  // the job waits for another run
    std::chrono::milliseconds delay{0};  // the time before the next run
  };

  // `ticket`: has a slot, which is released when the engine has finished the job. It outlives the run.
  DetachedRun(const ServerParts& parts, JobStore* store, std::string id, JobQueue::Ticket* ticket);

  // Runs the job. Call it once. Does not throw. Files that the job does not need may remain.
  Outcome Run();

  enum class Why { kCancelled, kServerStops, kTimePassed };
  // Asks the run to end. If it is called more than once, the first reason counts.
  void Stop(Why why);
  const std::string& id() const { return id_; }

 private:
  absl::Status RunToEnd();
  absl::Status OpenEvents(const StoredJob& stored);
  // Starts the job on a thread of its own.
  absl::Status StartJob(const StoredJob& stored);
  void WaitForMore();
  // Takes all events of the job and writes them, until one cannot be written. Returns when the job has ended.
  absl::Status WriteEvents(const StoredJob& stored);
  absl::Status TakeEvent(JobEvent event, const StoredJob& stored);
  absl::Status TakeFrameInfo(const FrameInfoEvent& info, const StoredJob& stored);
  // Reserves disk space for all results of the job, including those that are there.
  absl::Status Reserve(int64_t bytes);
  absl::Status Append(const std::vector<v1::ExtractEvent>& group);
  absl::Status Commit();  // shows the events, too
  absl::Status Show();
  Outcome Settle(absl::Status status);
  Outcome WaitAgain(JobStore::Failure failure, std::chrono::milliseconds delay, const absl::Status& why);
  void NoteEnd(const StoredJob& stored);

  const ServerParts parts_;
  JobStore* const store_;
  const std::string id_;
  JobQueue::Ticket* const ticket_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::stop_source stop_;
  std::atomic<int> why_ = -1;     // the Why of Stop; -1: not stopped
  std::optional<ServerJob> job_;  // set when the job starts
  std::optional<EventLogWriter> events_;
  bool uncommitted_ = false;
  bool disk_failed_ = false;   // the event log could not be read or written
  bool state_failed_ = false;  // the state could not be written
  int bundles_total_ = 0;
  int64_t reserved_ = 0;  // bytes of disk that this run asked for, for all results of the job

  Mutex mutex_;
  CondVar changed_;
  bool more_ ABSL_GUARDED_BY(mutex_) = false;  // there are events, or the last one has been taken
};

// Logs and counts that a job has ended, in a run or outside of one.
void NoteDetachedEnd(const ServerParts& parts, const StoredJob& job);

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_DETACHED_RUN_H_
