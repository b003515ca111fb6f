// The pauses between attempts to reach a server, up to a total time without progress.
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
  // `observer` (may be null) is told every pause. No pause passes the deadline.
  Pauses(const RetryPolicy& policy, JobObserver* observer, Connection::Deadline deadline);

  // Pauses after a call that ended with `result`. Cancelled: a stop was requested. DeadlineExceeded: the
  // pause would pass the deadline. The error of the call: the pauses have taken RetryPolicy::queue_patience
  // in all.
  absl::Status Wait(const CallResult& result, const std::stop_token& stop);
  // Starts again with short pauses, because the server has made progress.
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
