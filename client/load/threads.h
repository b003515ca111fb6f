// Threads that do the same thing at once.
#ifndef SPEXD_CLIENT_LOAD_THREADS_H_
#define SPEXD_CLIENT_LOAD_THREADS_H_

#include <functional>

#include "absl/status/status.h"

namespace spexd::load {

// Runs body(0) to body(count - 1), a thread each, and returns the error of the first that failed.
// ResourceExhausted if there are not so many threads to be had; `stop` is then called, and those that run are
// waited for.
absl::Status RunThreads(int count, const std::function<absl::Status(int)>& body,
                        const std::function<void()>& stop);

}  // namespace spexd::load

#endif  // SPEXD_CLIENT_LOAD_THREADS_H_
