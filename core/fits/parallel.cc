#include "core/fits/parallel.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

#include "core/base/mutex.h"

namespace spexd {

absl::Status ParallelFor(int64_t count, int threads, const std::function<absl::Status(int64_t)>& body) {
  constexpr int64_t kMostThreads = 64;
  std::atomic<int64_t> next{0};
  std::atomic<bool> failed{false};
  Mutex mutex;
  absl::Status error;
  int64_t error_index = count;
  const auto work = [&] {
    while (!failed.load(std::memory_order_relaxed)) {
      const int64_t index = next.fetch_add(1, std::memory_order_relaxed);
      if (index >= count) return;
      absl::Status status = body(index);
      if (status.ok()) continue;
      failed.store(true, std::memory_order_relaxed);
      MutexLock lock(&mutex);
      if (index < error_index) {
        error = std::move(status);
        error_index = index;
      }
    }
  };
  std::vector<std::thread> helpers;
  const int64_t workers = std::min({int64_t{threads}, count, kMostThreads});
  for (int64_t k = 1; k < workers; ++k) {
    try {
      helpers.emplace_back(work);
    } catch (const std::system_error&) {
      break;  // no more threads to be had: those that run do the work
    }
  }
  work();
  for (std::thread& helper : helpers) helper.join();
  return error;
}

}  // namespace spexd
