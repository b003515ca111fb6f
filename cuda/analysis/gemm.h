// Products of large matrices on a device.
#ifndef SPEXD_CUDA_ANALYSIS_GEMM_H_
#define SPEXD_CUDA_ANALYSIS_GEMM_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace spexd::cuda {

// Matrix products on one stream. Not thread-safe. Equal shapes give equal bits on devices of one kind.
class Gemm {
 public:
  virtual ~Gemm() = default;
  // Enqueues c [rows, columns] = a [rows, depth] b [columns, depth]^T in float32, all stored by rows.
  virtual absl::Status MultiplyTransposed(const float* a, int64_t rows, const float* b, int64_t columns,
                                          int64_t depth, float* c) = 0;
};

// Returns products by cuBLAS on the current device. The call loads the library, which stays loaded until the
// process ends. `library`: its file; "" means the version of the headers, where the system's loader finds it.
// Returns FailedPrecondition, with what to install, if it cannot be loaded. The stream must outlive the
// result.
absl::StatusOr<std::unique_ptr<Gemm>> MakeGemm(cudaStream_t stream, const std::string& library = "");

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_GEMM_H_
