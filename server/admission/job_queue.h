// The queue of jobs: admission and slots, for many threads. Schedule decides; JobQueue tells it events with
// their times and tells jobs when they get a slot.
#ifndef SPEXD_SERVER_ADMISSION_JOB_QUEUE_H_
#define SPEXD_SERVER_ADMISSION_JOB_QUEUE_H_

#include <chrono>
#include <functional>
#include <map>
#include <utility>

#include "absl/status/statusor.h"
#include "core/base/threads/mutex.h"
#include "server/schedule/schedule.h"

namespace spexd {

// Safe to use from many threads. Outlives its tickets.
class JobQueue {
 public:
  using Limits = Schedule::Limits;
  struct Stats : Schedule::Stats {
    bool draining = false;
  };

  // An admitted job. It leaves the queue when the ticket is destroyed. The functions may be called from any
  // thread, one at a time.
  class Ticket {
   public:
    Ticket(Ticket&& other) noexcept;
    Ticket& operator=(Ticket&&) = delete;
    ~Ticket();

    // Says that all of the job's input has arrived, so that it may get a slot. `on_slot` is called once, from
    // this or another thread, when it gets one, unless the ticket is destroyed before. It must not block,
    // throw or use the queue.
    void Join(std::function<void()> on_slot);
    // Gives up the slot. The job stays admitted while its results are sent. `completed`: the job ended well.
    Schedule::Cost ReleaseSlot(bool completed = true);
    int position() const { return position_; }  // see Schedule::Admitted

    // See the functions of the same names in Schedule.
    double ProductSeconds() const;
    void LearnProducts(double seconds);
    void DoubtProducts();
    // See Schedule. REQUIRES: the job has a slot.
    void SetEngineEstimate(double seconds);
    void HoldResults(int64_t bytes);

   private:
    friend class JobQueue;
    friend class SlotPause;
    Ticket(JobQueue* queue, const Schedule::Admitted& admitted)
        : queue_(queue), id_(admitted.id), position_(admitted.position) {}
    JobQueue* queue_;
    Schedule::JobId id_;
    int position_;
  };

  explicit JobQueue(const Limits& limits) : schedule_(limits) {}

  // Admits a job. ResourceExhausted: it exceeds a limit, which the message names; with a retry delay if
  // others hold what it needs. DeadlineExceeded: it is estimated to end after its deadline. Unavailable:
  // draining.
  absl::StatusOr<Ticket> Admit(const JobClaim& claim) ABSL_LOCKS_EXCLUDED(mutex_);

  // Checks whether a job that came now could end in time. DeadlineExceeded: by the estimates it could not.
  absl::Status CheckDeadline(const JobClaim& claim) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Sets the number of devices that take jobs; 1 for an engine without devices.
  void SetDevices(int devices) ABSL_LOCKS_EXCLUDED(mutex_);

  void StartDraining() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until no admitted job is left. Returns false if `deadline` passed before.
  bool WaitUntilEmpty(std::chrono::steady_clock::time_point deadline) ABSL_LOCKS_EXCLUDED(mutex_);

  Stats stats() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class SlotPause;
  void GrantSlots() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Pause(Schedule::JobId id) ABSL_LOCKS_EXCLUDED(mutex_);
  void Resume(Schedule::JobId id) ABSL_LOCKS_EXCLUDED(mutex_);

  mutable Mutex mutex_;
  CondVar changed_;
  Schedule schedule_ ABSL_GUARDED_BY(mutex_);
  std::map<Schedule::JobId, std::function<void()>> on_slot_ ABSL_GUARDED_BY(mutex_);  // of jobs in the queue
  int admitted_ ABSL_GUARDED_BY(mutex_) = 0;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
};

// Marks a time in which a running job waits for something other than a device. It is not counted as the job's
// device time.
class SlotPause {
 public:
  // `ticket` may be null.
  explicit SlotPause(JobQueue::Ticket* ticket) : ticket_(ticket) {
    if (ticket_ != nullptr) ticket_->queue_->Pause(ticket_->id_);
  }
  ~SlotPause() {
    if (ticket_ != nullptr) ticket_->queue_->Resume(ticket_->id_);
  }
  SlotPause(const SlotPause&) = delete;
  SlotPause& operator=(const SlotPause&) = delete;

 private:
  JobQueue::Ticket* const ticket_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_ADMISSION_JOB_QUEUE_H_
