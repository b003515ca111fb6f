// Threads that run the same function at once.
#ifndef SPEXD_CLIENT_LOAD_THREADS_H_
#define SPEXD_CLIENT_LOAD_THREADS_H_

#include <functional>

#include "absl/status/status.h"

namespace spexd::load {

// Runs body(0) to body(count - 1), each on a thread of its own, and returns the first error.
// ResourceExhausted: the system has too few threads; then `stop` is called, and the running threads are
// waited for.
absl::Status RunThreads(int count, const std::function<absl::Status(int)>& body,
                        const std::function<void()>& stop);

}  // namespace spexd::load

#endif  // SPEXD_CLIENT_LOAD_THREADS_H_
