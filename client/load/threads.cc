#include "client/load/threads.h"

#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/base/threads/guard.h"
#include "core/base/threads/mutex.h"

namespace spexd::load {

absl::Status RunThreads(int count, const std::function<absl::Status(int)>& body,
                        const std::function<void()>& stop) {
  Mutex mutex;
  absl::Status first;
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(count));
  for (int k = 0; k < count; ++k) {
    try {
      threads.emplace_back([&, k] {
        absl::Status status = CatchExceptions([&] { return body(k); });
        MutexLock lock(&mutex);
        first.Update(std::move(status));
      });
    } catch (const std::system_error& error) {
      stop();
      MutexLock lock(&mutex);
      first.Update(absl::ResourceExhaustedError(absl::StrFormat("%d threads: %s", count, error.what())));
      break;
    }
  }
  for (std::thread& thread : threads) thread.join();
  return first;
}

}  // namespace spexd::load
