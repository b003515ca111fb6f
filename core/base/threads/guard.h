// The catch-all at boundaries: an exception becomes a Status. A job whose array finds no memory ends alone.
// Handling the error needs a few bytes; without them the process ends.
#ifndef SPEXD_CORE_BASE_THREADS_GUARD_H_
#define SPEXD_CORE_BASE_THREADS_GUARD_H_

#include <type_traits>

#include "absl/status/status.h"

namespace spexd {

// Converts the exception being handled to a Status: ResourceExhausted for std::bad_alloc and for a thread
// that could not be started, else Internal. REQUIRES: called in a catch clause.
absl::Status StatusOfException();

// Returns the result of `body` (a Status, a StatusOr, or OK if it returns nothing), or the Status of the
// exception that it threw.
template <typename Body>
auto CatchExceptions(const Body& body) {
  constexpr bool kReturnsNothing = std::is_void_v<decltype(body())>;
  using Result = std::conditional_t<kReturnsNothing, absl::Status, decltype(body())>;
  try {
    if constexpr (kReturnsNothing) {
      body();
      return Result();
    } else {
      return body();
    }
  } catch (...) {
    return Result(StatusOfException());
  }
}

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_THREADS_GUARD_H_
