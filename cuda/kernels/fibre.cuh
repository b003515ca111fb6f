// Where a fibre of a job belongs.
#ifndef SPEXD_CUDA_KERNELS_FIBRE_CUH_
#define SPEXD_CUDA_KERNELS_FIBRE_CUH_

#include "core/model/tolerances.h"
#include "cuda/kernels/machine.cuh"
#include "cuda/kernels/views.h"

namespace spexd::cuda {

// The group that keeps a fibre; both count in the job. All bundles but the last have as many groups.
__device__ inline int GroupOf(const JobView& job, int fibre) {
  const int size = job.psf.shape.bundle_size, bundle = fibre / size;
  return bundle * ((size + kGroupFibres - 1) / kGroupFibres) + (fibre - bundle * size) / kGroupFibres;
}

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_FIBRE_CUH_
