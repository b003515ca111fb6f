// A loop over independent pieces of work, spread over threads that live as long as the call.
#ifndef SPEXD_CORE_BASE_THREADS_PARALLEL_H_
#define SPEXD_CORE_BASE_THREADS_PARALLEL_H_

#include <cstdint>
#include <functional>
#include <stop_token>

#include "absl/status/status.h"

namespace spexd {

// Calls body(0) .. body(count - 1), each once, on up to `threads` threads including the caller's. After an
// error no further piece is begun. The error of the least index is returned, whatever the thread count. An
// exception in a piece is its error (see core/base/threads/guard.h). If threads cannot be started, fewer do
// the work.
absl::Status ParallelFor(int64_t count, int threads, const std::function<absl::Status(int64_t)>& body);

// The number of threads that work on a loop, and the token that stops it.
struct Workers {
  int threads = 1;
  std::stop_token stop = {};
};

// The same loop with a stop: once a stop is requested, no further piece is begun, and the result is
// Cancelled.
absl::Status ParallelFor(int64_t count, const Workers& workers,
                         const std::function<absl::Status(int64_t)>& body);

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_THREADS_PARALLEL_H_
