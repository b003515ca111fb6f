// Copies large arrays with several threads, because one thread alone does not fill the memory's bandwidth.
#ifndef SPEXD_CUDA_RUNTIME_STRIP_COPIER_H_
#define SPEXD_CUDA_RUNTIME_STRIP_COPIER_H_

#include <cstddef>
#include <functional>
#include <memory>

#include "core/extract/worker_pool.h"

namespace spexd::cuda {

// The copier's threads help whoever copies. Thread-safe.
class StripCopier {
 public:
  // Runs the task on another thread, asynchronously. If it throws, the task will not run.
  using Run = std::function<void(std::function<void()> task)>;

  explicit StripCopier(int threads);
  // Uses another owner's threads, `helpers` at once: for tests.
  StripCopier(Run run, int helpers);

  // The caller copies what no helper has begun, and does not wait for queued helpers. Throws nothing: if
  // memory or threads are short, it copies alone.
  void Copy(const void* from, size_t bytes, void* to) noexcept;

 private:
  std::unique_ptr<WorkerPool> pool_;  // null if the threads are another owner's
  const Run run_;
  const int helpers_;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_RUNTIME_STRIP_COPIER_H_
