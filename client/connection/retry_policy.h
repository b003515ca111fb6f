// When a call that a server refused is tried again.
#ifndef SPEXD_CLIENT_CONNECTION_RETRY_POLICY_H_
#define SPEXD_CLIENT_CONNECTION_RETRY_POLICY_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>

namespace spexd::client {

// Waits are spread at random: clients that were refused together do not come back together.
struct RetryPolicy {
  int unavailable_attempts = 5;  // tries to reach a server, with waits of about first_wait, twice it, ...
  std::chrono::milliseconds first_wait{200};
  std::chrono::milliseconds longest_wait{10000};
  // Total waiting time for servers that are full, and for one with a detached job that stays silent. Each
  // wait is as long as the server says, plus up to a quarter.
  std::chrono::milliseconds queue_patience = std::chrono::minutes(10);
  int data_loss_attempts = 2;  // tries for an upload or an answer that arrived damaged
  // Time for a server to say whether it takes jobs. Asked only where there are several.
  std::chrono::milliseconds health_patience{2000};
  std::optional<uint32_t> seed;  // seed of the spread, and of the server to begin with; none: random
};

std::mt19937 MakeRandom(const RetryPolicy& policy);

// `delay` and up to a quarter of it.
std::chrono::milliseconds Spread(std::chrono::milliseconds delay, std::mt19937* random);

// The wait after so many failures to reach a server, at least `delay` if it asked for that.
std::chrono::milliseconds BackOff(const RetryPolicy& policy, int failures,
                                  std::optional<std::chrono::milliseconds> delay, std::mt19937* random);

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_CONNECTION_RETRY_POLICY_H_
