// One run of a detached job that has a slot: from its inputs on disk to its results on disk.
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

// The job itself runs on a thread of its own; the thread that calls Run writes what it makes.
class DetachedRun : public std::enable_shared_from_this<DetachedRun> {
 public:
  // What becomes of the job.
  struct Outcome {
    bool again = false;                  // it waits for another run ...
    std::chrono::milliseconds delay{0};  // ... not before this has passed
  };

  // `ticket`: of its slot, which is released when the engine is done with the job. Outlives the run.
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
  // Starts the job on a thread of its own.
  absl::Status StartJob(const StoredJob& stored);
  void WaitForMore();
  // Takes all events of the job, and writes them until one cannot be written. Returns once the job has ended.
  absl::Status WriteEvents(const StoredJob& stored);
  absl::Status TakeEvent(JobEvent event, const StoredJob& stored);
  absl::Status TakeFrameInfo(const FrameInfoEvent& info, const StoredJob& stored);
  // Disk for all results of the job, those that are there included.
  absl::Status Reserve(int64_t bytes);
  absl::Status Append(const std::vector<v1::ExtractEvent>& group);
  absl::Status Commit();  // and show
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
  std::atomic<int> why_ = -1;     // a Why, once it was stopped
  std::optional<ServerJob> job_;  // once the store let it start
  std::optional<EventLogWriter> events_;
  bool uncommitted_ = false;
  bool disk_failed_ = false;   // the event log could not be read or written ...
  bool state_failed_ = false;  // ... or the state
  int bundles_total_ = 0;
  int64_t reserved_ = 0;  // disk for all results of the job, as far as this run asked for it

  Mutex mutex_;
  CondVar changed_;
  bool more_ ABSL_GUARDED_BY(mutex_) = false;  // events, or the end of them
};

// Tells the log and the metrics that a job has ended, in a run or outside of one.
void NoteDetachedEnd(const ServerParts& parts, const StoredJob& job);

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_DETACHED_RUN_H_
