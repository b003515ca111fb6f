// Waits between attempts to reach a server again, for as long as it may stay silent.
#ifndef SPEXD_CLIENT_PAUSES_H_
#define SPEXD_CLIENT_PAUSES_H_

#include <random>
#include <stop_token>

#include "absl/status/status.h"
#include "client/connection/connection.h"
#include "client/connection/retry_policy.h"
#include "client/job.h"

namespace spexd::client {

class Pauses {
 public:
  // `observer` (may be null) hears of every wait. No wait goes beyond the deadline.
  Pauses(const RetryPolicy& policy, JobObserver* observer, Connection::Deadline deadline);

  // Waits after a call that ended with `result`. An error, if that may not be: Cancelled, DeadlineExceeded,
  // or, after waits of RetryPolicy::queue_patience in all, the error of the call.
  absl::Status Wait(const CallResult& result, const std::stop_token& stop);
  // The server gets on: waits begin anew.
  void Reset();

 private:
  const RetryPolicy policy_;
  JobObserver* const observer_;
  const Connection::Deadline deadline_;
  std::mt19937 random_;
  int failures_ = 0;
  std::chrono::milliseconds patience_;
};

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_PAUSES_H_
