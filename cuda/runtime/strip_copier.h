// Copies large arrays with several threads: one alone does not fill the memory's bandwidth.
#ifndef SPEXD_CUDA_RUNTIME_STRIP_COPIER_H_
#define SPEXD_CUDA_RUNTIME_STRIP_COPIER_H_

#include <cstddef>

#include "core/extract/worker_pool.h"

namespace spexd::cuda {

// Threads help whoever copies; thread-safe.
class StripCopier {
 public:
  explicit StripCopier(int threads) : pool_(threads) {}

  void Copy(const void* from, size_t bytes, void* to);

 private:
  WorkerPool pool_;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_RUNTIME_STRIP_COPIER_H_
