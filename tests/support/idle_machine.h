// Limits of the service's time and memory, and when tests can check them.
#ifndef SPEXD_TESTS_SUPPORT_IDLE_MACHINE_H_
#define SPEXD_TESTS_SUPPORT_IDLE_MACHINE_H_

#include <chrono>
#include <cstdlib>

namespace spexd::testing {

// Returns whether $SPEXD_IDLE_MACHINE says that nothing else runs on this machine, as in the second tier of
// tests.
inline bool IsIdleMachine() { return std::getenv("SPEXD_IDLE_MACHINE") != nullptr; }

// Returns `limit` on an idle machine, otherwise two minutes: a busy machine may delay anything, so tests then
// show only that work ends.
inline std::chrono::duration<double> OnAnIdleMachine(std::chrono::duration<double> limit) {
  return IsIdleMachine() ? limit : std::chrono::minutes(2);
}

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SUPPORT_IDLE_MACHINE_H_
