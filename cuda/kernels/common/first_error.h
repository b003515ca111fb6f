// The first error of several calls that were made in order.
#ifndef SPEXD_CUDA_KERNELS_COMMON_FIRST_ERROR_H_
#define SPEXD_CUDA_KERNELS_COMMON_FIRST_ERROR_H_

#include <cuda_runtime_api.h>

#include <initializer_list>

namespace spexd::cuda {

// Returns the first error. FirstError({A(), B()}) calls both A and B, in this order.
[[nodiscard]] inline cudaError_t FirstError(std::initializer_list<cudaError_t> errors) {
  for (const cudaError_t error : errors) {
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_COMMON_FIRST_ERROR_H_
