// Brings detached jobs before the server's queue, a few at a time, and runs those that get a slot.
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

// Safe to use from many threads. Waiting jobs are many and lie on disk: only as many as can run, and one
// more, are in the queue, but at least one of each owner, so that the queue knows whose jobs wait.
class JobRunner {
 public:
  // Called for each job that has ended once nothing uses its files any more (see JobStore::CleanUp). It must
  // not wait for the disk.
  using CleanUp = std::function<void(const std::string& id)>;

  // `parts` and `store` outlive it.
  JobRunner(const ServerParts& parts, JobStore* store, CleanUp clean_up);
  // Stops what runs, and waits for it.
  ~JobRunner();

  // `stored`: with its header. Does nothing if the runner knows the job.
  void Add(const StoredJob& stored) ABSL_LOCKS_EXCLUDED(mutex_);
  // A job has ended: it will not run, and what runs is stopped.
  void Remove(const std::string& id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Jobs of the same owner that wait before it.
  int Position(const std::string& id) const ABSL_LOCKS_EXCLUDED(mutex_);

  // No job gets a slot any more; those that have one go on.
  void StartDraining() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the runs, whose jobs wait for the next start of the server, and waits until they have ended.
  void StopRuns() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    WaitingJobs::Job job;
    uint64_t number = 0;  // of this entry in the queue: a job that was taken out of it gets another one later
    std::optional<JobQueue::Ticket> ticket;
    std::shared_ptr<DetachedRun> run;  // null until it has a slot
    DetachedRun::Outcome outcome;      // once it has ended
    std::unique_ptr<StallWatchdog::Watch> clock;
    std::chrono::steady_clock::time_point joined;
    bool removed = false;  // while it runs
  };
  using Entries = std::map<std::string, std::unique_ptr<Entry>>;

  bool Holds(const std::string& id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ArmTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Feed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether an owner's job may have an entry in the queue.
  bool HasRoomFor(const std::string& owner) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes a less urgent job of the same owner out of the queue if there is no room for another.
  void MakeWayFor(const WaitingJobs::Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives the job an entry in the server's queue.
  absl::Status EnterQueue(Entry* entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SlotGranted(const std::string& id, uint64_t number) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status StartRun(Entry* entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TimePassed(const std::string& id) ABSL_LOCKS_EXCLUDED(mutex_);
  void RunEnded(const std::string& id) ABSL_LOCKS_EXCLUDED(mutex_);
  // When the job was submitted, on a clock that nobody sets. The store has the wall clock's time; where
  // that was set meanwhile, jobs keep their order. REQUIRES: jobs that were recovered come in that order.
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
  // Jobs that wait for a time before they join the queue.
  std::multimap<std::chrono::steady_clock::time_point, WaitingJobs::Job> later_ ABSL_GUARDED_BY(mutex_);
  // When the queue, which refused a job, is asked again; it is asked before if a run ends.
  std::chrono::steady_clock::time_point ask_again_ ABSL_GUARDED_BY(mutex_) =
      std::chrono::steady_clock::time_point::max();
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  // Last, so that nothing is posted once the parts above are gone.
  EventThread steps_;
  const std::shared_ptr<EventThread::Step> feed_;
  StallWatchdog::Watch timer_;  // for the first of later_, and ask_again_
};

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_JOB_RUNNER_H_
