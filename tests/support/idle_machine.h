// How quick the service must be and how little memory it may keep, and when tests can tell.
#ifndef SPEXD_TESTS_SUPPORT_IDLE_MACHINE_H_
#define SPEXD_TESTS_SUPPORT_IDLE_MACHINE_H_

#include <chrono>
#include <cstdlib>

namespace spexd::testing {

// Whether $SPEXD_IDLE_MACHINE tells that nothing else runs on this machine, as the second tier of tests does.
inline bool IsIdleMachine() { return std::getenv("SPEXD_IDLE_MACHINE") != nullptr; }

// `limit` on an idle machine. Elsewhere two minutes, because a busy machine may hold up anything: then tests show only that it ends.
inline std::chrono::duration<double> OnAnIdleMachine(std::chrono::duration<double> limit) {
  return IsIdleMachine() ? limit : std::chrono::minutes(2);
}

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SUPPORT_IDLE_MACHINE_H_
