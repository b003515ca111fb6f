// The bounds of a job: its stop token and its deadline.
#ifndef SPEXD_SERVER_JOBS_JOB_BOUNDS_H_
#define SPEXD_SERVER_JOBS_JOB_BOUNDS_H_

#include <chrono>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "server/admission/job_queue.h"

namespace spexd {

struct JobBounds {
  using Clock = std::chrono::steady_clock;

  // The deadline is that of --max-job-seconds, from `begin`. `of_queue`: the job's ticket; may be null.
  JobBounds(std::stop_token stop_token, double max_job_seconds, Clock::time_point begin,
            JobQueue::Ticket* of_queue);
  // Shortens the deadline to `seconds` from now. `what` sets it, for messages; `error`: the status of a job
  // that reaches it.
  void Limit(double seconds, std::string what, absl::Status error);

  std::stop_token stop;  // ends the job with Cancelled (see ExtractRequest::stop); so does the deadline
  Clock::time_point deadline;
  std::string limit;    // what sets the deadline, for messages
  absl::Status passed;  // the status of a job that reaches the deadline
  // The job's ticket, which is told its waits, its estimate and the bytes of its results; null: none.
  JobQueue::Ticket* ticket;
};

// Checks whether a job that is estimated to take `seconds`, and `product_seconds` for its products, can end
// by its deadline. DeadlineExceeded: it cannot. `passed`: no time is left at all.
absl::Status CheckTimeLeft(const JobBounds& bounds, double seconds, double product_seconds,
                           std::chrono::steady_clock::time_point now);

// Returns the DeadlineExceeded of a job that reached the limit of --max-job-seconds.
absl::Status MaxJobSecondsPassed(double max_job_seconds);

}  // namespace spexd

#endif  // SPEXD_SERVER_JOBS_JOB_BOUNDS_H_
