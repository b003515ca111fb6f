// The policy of retries of refused calls.
#ifndef SPEXD_CLIENT_CONNECTION_RETRY_POLICY_H_
#define SPEXD_CLIENT_CONNECTION_RETRY_POLICY_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>

namespace spexd::client {

// Waits are spread at random, so that clients that were refused together do not return together.
struct RetryPolicy {
  int unavailable_attempts = 5;  // tries to reach a server, with waits of first_wait, 2 first_wait, ...
  std::chrono::milliseconds first_wait{200};
  std::chrono::milliseconds longest_wait{10000};
  // The total waiting time for full servers, and for a server with a detached job that stays silent. Each
  // wait is as long as the server says, plus up to a quarter.
  std::chrono::milliseconds queue_patience = std::chrono::minutes(10);
  int data_loss_attempts = 2;  // tries for an upload or an answer that arrives damaged
  // The time for a server to say whether it takes jobs. It is asked only if there are several servers.
  std::chrono::milliseconds health_patience{2000};
  std::optional<uint32_t> seed;  // of the spread and of the choice of the first server; nullopt: random
};

std::mt19937 MakeRandom(const RetryPolicy& policy);

// Returns `delay` plus up to a quarter of it, at random.
std::chrono::milliseconds Spread(std::chrono::milliseconds delay, std::mt19937* random);

// Returns the wait after `failures` failures to reach a server; at least `delay` if the server asked for it.
std::chrono::milliseconds BackOff(const RetryPolicy& policy, int failures,
                                  std::optional<std::chrono::milliseconds> delay, std::mt19937* random);

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_CONNECTION_RETRY_POLICY_H_
