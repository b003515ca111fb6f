// Copies large arrays with several threads: one alone does not fill the memory's bandwidth.
#ifndef SPEXD_CUDA_RUNTIME_STRIP_COPIER_H_
#define SPEXD_CUDA_RUNTIME_STRIP_COPIER_H_

#include <cstddef>
#include <functional>
#include <memory>

#include "core/extract/worker_pool.h"

namespace spexd::cuda {

// Threads help whoever copies; thread-safe.
class StripCopier {
 public:
  // Has a task run by another thread, soon or late; may throw, and then never runs it.
  using Run = std::function<void(std::function<void()> task)>;

  explicit StripCopier(int threads);
  // With threads of somebody else's, `helpers` at once: for tests.
  StripCopier(Run run, int helpers);

  // The caller copies what no helper has begun, and waits for none that is merely queued. Throws nothing:
  // where memory or threads are short it copies alone.
  void Copy(const void* from, size_t bytes, void* to) noexcept;

 private:
  std::unique_ptr<WorkerPool> pool_;  // null where the threads are somebody else's
  const Run run_;
  const int helpers_;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_RUNTIME_STRIP_COPIER_H_
