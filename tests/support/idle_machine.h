// How quick the service must be, and when tests can tell.
#ifndef SPEXD_TESTS_SUPPORT_IDLE_MACHINE_H_
#define SPEXD_TESTS_SUPPORT_IDLE_MACHINE_H_

#include <chrono>
#include <cstdlib>

namespace spexd::testing {

// `limit` where $SPEXD_IDLE_MACHINE tells that nothing else runs on this machine, as the second tier of tests does. Elsewhere two
// minutes, because a busy machine may hold up anything: then tests show only that it ends.
inline std::chrono::duration<double> OnAnIdleMachine(std::chrono::duration<double> limit) {
  return std::getenv("SPEXD_IDLE_MACHINE") != nullptr ? limit : std::chrono::minutes(2);
}

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SUPPORT_IDLE_MACHINE_H_
