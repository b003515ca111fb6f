// Attempts of a call on one server after another, until one takes it.
#ifndef SPEXD_CLIENT_ATTEMPTS_H_
#define SPEXD_CLIENT_ATTEMPTS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>

#include "absl/status/status.h"
#include "client/balance/server_balancer.h"
#include "client/connection/connection.h"
#include "client/connection/retry_policy.h"
#include "client/connection/server_directory.h"
#include "client/job.h"

namespace spexd::client {

// The end of an attempt on a server, and what may follow it.
struct Attempt {
  enum class Then {
    kEnd,        // no further attempt: `status` is the result
    kElsewhere,  // the server did not take the call: try the next server, or this one later
    kHere,       // the server may have taken the call: try only this server, later
    kAgain,      // the transfer was damaged: try this server at once, as often as the policy says
  };
  absl::Status status;
  Then then = Then::kEnd;
  std::optional<std::chrono::milliseconds> retry_delay = {};  // that the server asks for
};

// Returns the attempt that ended with `result`, by the contract's status codes. `taken`: the server had taken
// the job. Then it may be tried again only if the server asks for it by a retry delay (its device failed, for
// example) or if the answer was damaged.
Attempt AttemptOf(const CallResult& result, bool taken);

// The limits of a series of attempts, and where it begins.
struct AttemptLimits {
  RetryPolicy retry;
  Connection::Deadline deadline;              // no wait passes it
  std::optional<uint32_t> first_server = {};  // index modulo the number of servers; nullopt: random
  // Chooses among servers that may be tried, and learns their speeds from attempts that end well; null:
  // servers are tried in a cycle.
  ServerBalancer* balancer = nullptr;
};

// Calls `attempt` with one server after another, until an attempt is the last one. When all servers have
// refused, asks `find` for new servers; if there are none, waits. If there are several servers, those that
// are NOT_SERVING or do not answer are skipped. `observer` (may be null) is told each attempt that is
// followed by another. Returns the status of the last attempt; Cancelled, DeadlineExceeded; an error of
// `find` if it finds no server at first.
absl::Status TryServers(const ServerSource& find, const AttemptLimits& limits, JobObserver* observer,
                        const std::stop_token& stop, const std::function<Attempt(Connection*)>& attempt);

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_ATTEMPTS_H_
