// Sums over a block, in a fixed order.
#ifndef SPEXD_CUDA_KERNELS_COMMON_BLOCK_SUM_CUH_
#define SPEXD_CUDA_KERNELS_COMMON_BLOCK_SUM_CUH_

#include "cuda/kernels/common/device.cuh"

namespace spexd::cuda {

// Returns the sum of all threads' values to every thread. REQUIRES: a block of kThreads, all of which call.
template <int kThreads>
__device__ inline double BlockSum(double value) {
  constexpr int kWarps = kThreads / kWarp;
  __shared__ double sums[kWarps];
  value = WarpSum(value);
  if (threadIdx.x % kWarp == 0) sums[threadIdx.x / kWarp] = value;
  __syncthreads();
  double sum = 0;
  for (int k = 0; k < kWarps; ++k) sum += sums[k];
  __syncthreads();
  return sum;
}

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_COMMON_BLOCK_SUM_CUH_
