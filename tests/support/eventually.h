// Waits for the work of another thread or process.
#ifndef SPEXD_TESTS_SUPPORT_EVENTUALLY_H_
#define SPEXD_TESTS_SUPPORT_EVENTUALLY_H_

#include <chrono>
#include <functional>
#include <thread>

namespace spexd::testing {

// Checks `condition` every millisecond until it holds. Returns false if it does not hold within a minute.
inline bool Eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SUPPORT_EVENTUALLY_H_
