#include "server/jobs/job_bounds.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace spexd {
namespace {

JobBounds::Clock::duration Duration(double seconds) {
  return std::chrono::duration_cast<JobBounds::Clock::duration>(std::chrono::duration<double>(seconds));
}

// Returns seconds for messages, with three digits and never an exponent.
std::string Text(double seconds) {
  return seconds < 1000 ? absl::StrFormat("%.3g", seconds) : absl::StrFormat("%.0f", seconds);
}

}  // namespace

JobBounds::JobBounds(std::stop_token stop_token, double max_job_seconds, Clock::time_point begin,
                     JobQueue::Ticket* of_queue)
    : stop(std::move(stop_token)),
      deadline(begin + Duration(max_job_seconds)),
      limit(absl::StrCat("--max-job-seconds ", max_job_seconds)),
      passed(MaxJobSecondsPassed(max_job_seconds)),
      ticket(of_queue) {}

void JobBounds::Limit(double seconds, std::string what, absl::Status error) {
  const Clock::time_point now = Clock::now();
  // Compared as doubles, because any number of seconds is allowed and a duration could overflow.
  if (seconds >= std::chrono::duration<double>(deadline - now).count()) return;
  deadline = now + Duration(std::max(0.0, seconds));
  limit = std::move(what);
  passed = std::move(error);
}

absl::Status CheckTimeLeft(const JobBounds& bounds, double seconds, double product_seconds,
                           std::chrono::steady_clock::time_point now) {
  if (now >= bounds.deadline) return bounds.passed;
  const double left = std::chrono::duration<double>(bounds.deadline - now).count();
  if (seconds + product_seconds <= left) return absl::OkStatus();
  const std::string then =
      product_seconds > 0 ? absl::StrFormat(" and %s for its products", Text(product_seconds)) : "";
  return absl::DeadlineExceededError(
      absl::StrFormat("the job is estimated to take %s seconds%s, %s are left (%s)", Text(seconds), then,
                      Text(left), bounds.limit));
}

// Every job makes this message at its start. StrFormat would end the process if memory ran out.
absl::Status MaxJobSecondsPassed(double max_job_seconds) {
  return absl::DeadlineExceededError(
      absl::StrCat("the job took ", max_job_seconds, " seconds, the limit of --max-job-seconds"));
}

}  // namespace spexd
