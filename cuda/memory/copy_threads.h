// Threads that help to copy large arrays, because one thread alone does not fill the memory's bandwidth.
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
  // Uses another owner's threads, `helpers` at once: for tests.
  CopyThreads(Run run, int helpers);

  // Calls body(0) .. body(count - 1), each once. The caller takes what no helper has begun, and does not wait
  // for queued helpers. Throws nothing, as must `body`: if memory or threads are short, the caller works
  // alone.
  void ForEach(int64_t count, const std::function<void(int64_t)>& body) noexcept;
  void Copy(const void* from, size_t bytes, void* to) noexcept;

 private:
  std::unique_ptr<WorkerPool> pool_;  // null if the threads are another owner's
  const Run run_;
  const int helpers_;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_MEMORY_COPY_THREADS_H_
