// Tasks that the blocks of a kernel share.
#ifndef SPEXD_CUDA_KERNELS_COMMON_TASKS_CUH_
#define SPEXD_CUDA_KERNELS_COMMON_TASKS_CUH_

#include "cuda/kernels/common/machine.cuh"

namespace spexd::cuda {

// Calls use(number) for this block's share of the tasks [0, end), if has(number). If a block has several
// tasks, its threads ask side by side, which is for kernels that find work in few tasks. All threads of a
// block call it, and use() by all of them.
template <int kWarps, typename Has, typename Use>
__device__ void ForTasks(int end, const Has& has, const Use& use) {
  __shared__ unsigned found[kWarps];
  const int stride = static_cast<int>(gridDim.x);
  const bool several = end > stride;
  for (int base = static_cast<int>(blockIdx.x); base < end; base += stride * kWarps * kWarp) {
    if (several) {
      const int own = base + static_cast<int>(threadIdx.x) * stride;
      const unsigned lanes = __ballot_sync(kAllLanes, own < end && has(own));
      if (threadIdx.x % kWarp == 0) found[threadIdx.x / kWarp] = lanes;
      __syncthreads();
    }
    for (int warp = 0; warp < (several ? kWarps : 1); ++warp) {
      for (unsigned left = several ? found[warp] : has(base); left != 0; left &= left - 1)
        use(base + (warp * kWarp + __ffs(left) - 1) * stride);
    }
    if (several) __syncthreads();
  }
}

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_COMMON_TASKS_CUH_
