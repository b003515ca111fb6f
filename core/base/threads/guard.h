// The catch-all at boundaries: an exception becomes a Status. An array of a job that finds no memory ends
// that job; what handles the error needs a few bytes, and the process ends if there are none.
#ifndef SPEXD_CORE_BASE_THREADS_GUARD_H_
#define SPEXD_CORE_BASE_THREADS_GUARD_H_

#include <type_traits>

#include "absl/status/status.h"

namespace spexd {

// The exception being handled as a Status: ResourceExhausted for std::bad_alloc and where no thread could be
// started, else Internal. REQUIRES: called in a catch clause.
absl::Status StatusOfException();

// Returns what `body` returns (a Status or StatusOr, or nothing, which is OK), or the Status of the exception
// that it threw.
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
