// Adds detached jobs to the server's queue, a few at a time, and runs those that get a slot.
#ifndef SPEXD_SERVER_DETACHED_JOB_RUNNER_H_
#define SPEXD_SERVER_DETACHED_JOB_RUNNER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/threads/mutex.h"
#include "server/detached/detached_run.h"
#include "server/detached/store/job_store.h"
#include "server/detached/waiting_jobs.h"
#include "server/jobs/server_parts.h"

namespace spexd {

// Most waiting jobs are only on disk. The queue has as many as can run, and one more, but at least one of
// each owner, so that it knows whose jobs wait. Safe to use from many threads.
class JobRunner {
 public:
  // Called for each job that has ended, when nothing uses its files (see JobStore::CleanUp). It must not wait
  // for the disk.
  using CleanUp = std::function<void(const std::string& id)>;

  // `parts` and `store` outlive the runner.
  JobRunner(const ServerParts& parts, JobStore* store, CleanUp clean_up);
  // Stops all runs and waits for them.
  ~JobRunner();

  // Adds a waiting job. `stored` has its header. Does nothing if the runner has the job already.
  void Add(const StoredJob& stored) ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes a job that has ended outside of a run. Stops its run if it has one.
  void Remove(const std::string& id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the number of jobs of the same owner that wait before this one.
  int Position(const std::string& id) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Gives no job a slot. Jobs that have one continue.
  void StartDraining() ABSL_LOCKS_EXCLUDED(mutex_);
  // Stops all runs and waits for them. Their jobs wait for the next start of the server.
  void StopRuns() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    WaitingJobs::Job job;
    uint64_t number = 0;  // of the entry; a job that returns to the queue gets another number
    std::optional<JobQueue::Ticket> ticket;
    std::shared_ptr<DetachedRun> run;  // null until the job has a slot
    DetachedRun::Outcome outcome;      // set when the run has ended
    std::unique_ptr<StallWatchdog::Watch> clock;
    std::chrono::steady_clock::time_point joined;
    bool removed = false;  // Remove was called during the run
  };
  using Entries = std::map<std::string, std::unique_ptr<Entry>>;

  bool Holds(const std::string& id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ArmTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Feed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the queue may take a job of this owner.
  bool HasRoomFor(const std::string& owner) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes a less urgent job of the same owner from the queue if the queue may take no further one.
  void MakeWayFor(const WaitingJobs::Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives the job an entry in the server's queue.
  absl::Status EnterQueue(Entry* entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SlotGranted(const std::string& id, uint64_t number) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status StartRun(Entry* entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TimePassed(const std::string& id) ABSL_LOCKS_EXCLUDED(mutex_);
  void RunEnded(const std::string& id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns when the job was submitted, in seconds of a monotonic clock. Jobs keep their order even if the
  // wall clock, whose time the store has, was set meanwhile. REQUIRES: recovered jobs come in order of
  // submission.
  double SubmittedAt(const StoredJob& stored) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WaitThenAdd(const WaitingJobs::Job& job, std::chrono::milliseconds delay)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ServerParts parts_;
  JobStore* const store_;
  const CleanUp clean_up_;
  const size_t max_entries_;
  mutable Mutex mutex_;
  CondVar changed_;
  WaitingJobs waiting_ ABSL_GUARDED_BY(mutex_);
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_entry_ ABSL_GUARDED_BY(mutex_) = 0;
  double last_submitted_ ABSL_GUARDED_BY(mutex_) = std::numeric_limits<double>::lowest();
  // Jobs that may join the queue only after a time.
  std::multimap<std::chrono::steady_clock::time_point, WaitingJobs::Job> later_ ABSL_GUARDED_BY(mutex_);
  // When to try again after the queue has refused a job. The end of a run also leads to a new try.
  std::chrono::steady_clock::time_point ask_again_ ABSL_GUARDED_BY(mutex_) =
      std::chrono::steady_clock::time_point::max();
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  // These are last, so that nothing is posted after the members above are destroyed.
  EventThread steps_;
  const std::shared_ptr<EventThread::Step> feed_;
  StallWatchdog::Watch timer_;  // for the first of later_ and for ask_again_
};

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_JOB_RUNNER_H_
