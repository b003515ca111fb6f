// The owner of everything that a server with detached jobs needs: the store, the runner, and the threads that
// may wait for the disk.
#ifndef SPEXD_SERVER_DETACHED_DETACHED_JOBS_H_
#define SPEXD_SERVER_DETACHED_DETACHED_JOBS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/base/threads/mutex.h"
#include "server/admission/byte_budget.h"
#include "server/base/event_thread.h"
#include "server/detached/job_runner.h"
#include "server/detached/store/job_store.h"
#include "server/jobs/server_parts.h"

namespace spexd {

// Safe to use from many threads.
class DetachedJobs {
 public:
  // Opens the folder of --jobs-dir and adds the jobs that have not ended to the runner. Errors as in
  // JobStore::Open.
  static absl::StatusOr<std::unique_ptr<DetachedJobs>> Open(const ServerParts& parts);
  ~DetachedJobs();

  JobStore& store() { return *store_; }
  const JobRunner& runner() const { return *runner_; }
  // The memory budget of the events that are being sent to watchers.
  ByteBudget& watched() { return watched_; }

  // Runs `step` on a thread that may wait for the disk. `step` must not throw.
  void OnDisk(std::function<void()> step);

  // Stores a job and gives it to the runner. `disk`: see JobStore::Add.
  absl::StatusOr<JobStore::Submitted> Submit(JobStore::Submission submission, DiskHold* disk);
  absl::StatusOr<StoredJob> Cancel(const Identity& caller, const std::string& id);

  // Refuses new jobs and gives no job a slot.
  void StartDraining();
  bool draining() const { return draining_; }
  // Ends all runs, whose jobs the next server will run again, and tells watchers. Waits for the runs.
  void Stop();

  StoreStats stats() const { return store_->stats(); }

 private:
  explicit DetachedJobs(const ServerParts& parts);
  void CleanUp(const std::string& id);
  // Ends jobs whose deadline has passed, removes those whose time to live has passed, and renews the index.
  void KeepOrder() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the seconds until the next deadline; infinite if there is none.
  double EndLate();

  const ServerParts parts_;
  ByteBudget watched_;
  std::unique_ptr<JobStore> store_;
  std::atomic<bool> draining_ = false;
  std::atomic<size_t> next_disk_ = 0;
  const std::shared_ptr<EventThread::Step> keep_order_;
  Mutex mutex_;
  std::unique_ptr<StallWatchdog::Watch> timer_ ABSL_GUARDED_BY(mutex_);  // null: the server ends
  std::unique_ptr<JobRunner> runner_;
  // The threads that may wait for the disk. They use the members above until they end. The first one, which
  // ends last, runs KeepOrder.
  std::array<EventThread, 4> disk_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_DETACHED_JOBS_H_
