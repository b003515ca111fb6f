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

// Products on one stream, for one thread at a time. Same shapes give the same bits on devices of one kind.
class Gemm {
 public:
  virtual ~Gemm() = default;
  // Enqueues c [rows, columns] = a [rows, depth] b [columns, depth]^T, all row by row, in float32.
  virtual absl::Status MultiplyTransposed(const float* a, int64_t rows, const float* b, int64_t columns,
                                          int64_t depth, float* c) = 0;
};

// Uses cuBLAS, on the current device. The library is loaded by this call and stays loaded until the process
// ends: `library` names its file; "": that of the headers' version, where the system's loader finds it.
// FailedPrecondition, with what to install, where it cannot be loaded. The stream must outlive the result.
absl::StatusOr<std::unique_ptr<Gemm>> MakeGemm(cudaStream_t stream, const std::string& library = "");

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_GEMM_H_
