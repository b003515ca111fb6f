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
  std::stop_token
      stop;  // ends the job with Cancelled (see ExtractRequest::stop); the deadline requests it too
  std::chrono::steady_clock::time_point deadline;
  std::string limit;    // what sets the deadline, for messages
  absl::Status passed;  // what a job ends with that has reached its deadline
  // The job's turn, to which its waits, its estimate and its results are reported; null: no reports.
  JobQueue::Ticket* ticket = nullptr;
};

// Whether a job that is estimated to take `seconds`, and its products `product_seconds`, ends by its
// deadline: DeadlineExceeded if it does not; `passed` if no time is left at all, whatever the estimate.
absl::Status CheckTimeLeft(const JobBounds& bounds, double seconds, double product_seconds,
                           std::chrono::steady_clock::time_point now);

// DeadlineExceeded, for a job that reached the limit of --max-job-seconds.
absl::Status MaxJobSecondsPassed(double max_job_seconds);

}  // namespace spexd

#endif  // SPEXD_SERVER_JOBS_JOB_BOUNDS_H_
