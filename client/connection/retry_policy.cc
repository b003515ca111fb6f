#include "client/connection/retry_policy.h"

#include <algorithm>

namespace spexd::client {
namespace {

constexpr int kMaxDoublings = 10;

}  // namespace

std::mt19937 MakeRandom(const RetryPolicy& policy) {
  return std::mt19937(policy.seed.has_value() ? *policy.seed : std::random_device{}());
}

std::chrono::milliseconds Spread(std::chrono::milliseconds delay, std::mt19937* random) {
  return delay + std::chrono::milliseconds(std::uniform_int_distribution<int64_t>(
                     0, std::max<int64_t>(0, delay.count()) / 4)(*random));
}

std::chrono::milliseconds BackOff(const RetryPolicy& policy, int failures,
                                  std::optional<std::chrono::milliseconds> delay, std::mt19937* random) {
  const int64_t doubled = policy.first_wait.count() << std::clamp(failures - 1, 0, kMaxDoublings);
  const int64_t wait = std::min(doubled, policy.longest_wait.count());
  const std::chrono::milliseconds spread(wait / 2 + std::uniform_int_distribution<int64_t>(0, wait)(*random));
  return std::max(spread, Spread(delay.value_or(std::chrono::milliseconds(0)), random));
}

}  // namespace spexd::client
