// Trying a call on one server after another until one takes it.
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

// How an attempt on a server ended, and what may follow.
struct Attempt {
  enum class Then {
    kEnd,        // nothing: `status` is the result
    kElsewhere,  // the server did not take the call: the next one, or this one later
    kHere,       // the call may have been taken: this server, later
    kAgain,      // the transfer was damaged: this server, at once, as often as the policy says
  };
  absl::Status status;
  Then then = Then::kEnd;
  std::optional<std::chrono::milliseconds> retry_delay = {};  // of the server's refusal
};

// What may follow a call that ended with `result`, as the contract's status codes say. `taken`: the server
// had taken the job, and it is tried again only if the server asks for it (its device failed; others may
// work).
Attempt AttemptOf(const CallResult& result, bool taken);

// Where a series of attempts begins and what bounds it.
struct AttemptLimits {
  RetryPolicy retry;
  Connection::Deadline deadline;              // no wait goes beyond it
  std::optional<uint32_t> first_server = {};  // counted modulo their number; nullopt: a random one
  // Chooses among servers that may be tried at once, and learns their speeds from attempts that end well;
  // null: they are tried in a cycle.
  ServerBalancer* balancer = nullptr;
};

// Calls `attempt` with one of the servers after another. Where all have refused, servers that `find` has
// found since come next; without any, it waits. Where there are several, those that say NOT_SERVING or do not
// answer are passed over. `observer` (may be null) hears of every attempt that is followed by another. Errors
// of `find`, if it finds no server to begin with.
absl::Status TryServers(const ServerSource& find, const AttemptLimits& limits, JobObserver* observer,
                        const std::stop_token& stop, const std::function<Attempt(Connection*)>& attempt);

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_ATTEMPTS_H_
