// The catch-all at boundaries: an exception becomes a Status. When memory runs out, the result is
// ResourceExhausted, never the end of the process.
#ifndef SPEXD_CORE_BASE_THREADS_GUARD_H_
#define SPEXD_CORE_BASE_THREADS_GUARD_H_

#include "absl/status/status.h"

namespace spexd {

// ResourceExhausted. Takes no memory itself.
absl::Status OutOfMemory() noexcept;

// The exception being handled as a Status: ResourceExhausted for std::bad_alloc and where no thread could be
// started, else Internal. REQUIRES: called in a catch clause.
absl::Status StatusOfException() noexcept;

// Returns what `body` returns (a Status or StatusOr), or the Status of the exception that it threw.
template <typename Body>
auto CatchExceptions(const Body& body) -> decltype(body()) {
  try {
    return body();
  } catch (...) {
    return StatusOfException();
  }
}

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_THREADS_GUARD_H_
