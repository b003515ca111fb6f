// Threads that help to copy large arrays. One thread alone does not use the full memory bandwidth.
#ifndef SPEXD_CUDA_MEMORY_COPY_THREADS_H_
#define SPEXD_CUDA_MEMORY_COPY_THREADS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/extract/cpu/worker_pool.h"

namespace spexd::cuda {

// Threads that any caller may use to copy memory. Thread-safe.
class CopyThreads {
 public:
  // Runs the task on another thread, asynchronously. If it throws, the task will not run.
  using Run = std::function<void(std::function<void()> task)>;

  explicit CopyThreads(int threads);
  // For tests: uses another owner's threads, at most `helpers` at once.
  CopyThreads(Run run, int helpers);

  // Calls body(0) .. body(count - 1), each once. The caller runs what no helper has begun, and does not wait
  // for queued helpers. Throws nothing, and neither may `body`. If memory or threads are short, the caller
  // does all the work.
  void ForEach(int64_t count, const std::function<void(int64_t)>& body) noexcept;
  void Copy(const void* from, size_t bytes, void* to) noexcept;

 private:
  std::unique_ptr<WorkerPool> pool_;  // null if the threads are another owner's
  const Run run_;
  const int helpers_;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_MEMORY_COPY_THREADS_H_
