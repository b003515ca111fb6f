// Admission and order of jobs: a bounded number of jobs, of which some run and the others wait in line.
#ifndef SPEXD_SERVER_JOB_QUEUE_H_
#define SPEXD_SERVER_JOB_QUEUE_H_

#include <chrono>
#include <cstdint>
#include <list>
#include <stop_token>

#include "absl/status/statusor.h"
#include "core/base/mutex.h"

namespace spexd {

class JobQueue {
 public:
  struct Limits {
    int running = 2;
    int queued = 128;  // beyond those running
  };
  struct Stats {
    int running = 0;
    int waiting = 0;  // admitted, not yet running (their input may still be on its way)
    int in_line = 0;  // those of `waiting` with all their input
    bool draining = false;
  };

  // An admitted job's place; left on destruction. The queue outlives it.
  class Ticket {
   public:
    Ticket(Ticket&& other) noexcept;
    Ticket& operator=(Ticket&&) = delete;
    ~Ticket();

    // Joins the line and waits until it is this job's turn; first come, first served, in the order of these
    // calls. Cancelled when a stop is requested.
    absl::Status WaitForTurn(const std::stop_token& stop);
    // Gives the turn to the next job; this one keeps its place (its results are still being sent).
    void EndTurn();
    int position() const {
      return position_;
    }  // jobs before this one when it was admitted; 0: starts at once

   private:
    friend class JobQueue;
    Ticket(JobQueue* queue, uint64_t id, int position) : queue_(queue), id_(id), position_(position) {}
    JobQueue* queue_;
    uint64_t id_;
    int position_;
    bool running_ = false;
    std::chrono::steady_clock::time_point started_;
  };

  explicit JobQueue(const Limits& limits) : limits_(limits) {}

  // ResourceExhausted with a retry delay when full; Unavailable when draining.
  absl::StatusOr<Ticket> Admit();

  void StartDraining();
  // Waits until no job is left; false if the time passed before.
  bool WaitUntilEmpty(std::chrono::steady_clock::time_point deadline);

  Stats stats() const;

 private:
  std::chrono::milliseconds RetryDelay() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndTurn(Ticket* ticket) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Limits limits_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::list<uint64_t> line_ ABSL_GUARDED_BY(mutex_);  // jobs ready to run, next first
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 0;
  int admitted_ ABSL_GUARDED_BY(mutex_) = 0;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  int sending_ ABSL_GUARDED_BY(mutex_) = 0;  // ended their turn, results not yet delivered
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  double recent_seconds_ ABSL_GUARDED_BY(mutex_) = 5;  // running average of a job's turn
};

}  // namespace spexd

#endif  // SPEXD_SERVER_JOB_QUEUE_H_
