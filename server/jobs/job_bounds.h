// When a job ends at the latest.
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

  // Those of --max-job-seconds, which began at `begin`. `ticket` may be null.
  JobBounds(std::stop_token stop_token, double max_job_seconds, Clock::time_point begin,
            JobQueue::Ticket* of_queue);
  // The job has no more than `seconds` left, because of `what`: it ends with `error` then.
  void Limit(double seconds, std::string what, absl::Status error);

  std::stop_token stop;  // ends the job with Cancelled (see ExtractRequest::stop); so does the deadline
  Clock::time_point deadline;
  std::string limit;    // what sets the deadline, for messages
  absl::Status passed;  // what a job ends with that has reached its deadline
  // The job's ticket, to which its waits, its estimate and its results are reported; null: no reports.
  JobQueue::Ticket* ticket;
};

// Whether a job that is estimated to take `seconds`, and its products `product_seconds`, ends by its
// deadline: DeadlineExceeded if it does not; `passed` if no time is left at all, whatever the estimate.
absl::Status CheckTimeLeft(const JobBounds& bounds, double seconds, double product_seconds,
                           std::chrono::steady_clock::time_point now);

// DeadlineExceeded, for a job that reached the limit of --max-job-seconds.
absl::Status MaxJobSecondsPassed(double max_job_seconds);

}  // namespace spexd

#endif  // SPEXD_SERVER_JOBS_JOB_BOUNDS_H_
