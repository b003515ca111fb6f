// SolvePositive of core/analysis by a warp. Each lane holds a row.
#ifndef SPEXD_CUDA_ANALYSIS_VELOCITY_WARP_SOLVE_CUH_
#define SPEXD_CUDA_ANALYSIS_VELOCITY_WARP_SOLVE_CUH_

#include "cuda/kernels/common/device.cuh"

namespace spexd::cuda {

// Factors A = L L^T [size, size] in place of the lower triangle and replaces b by L^-1 b. Returns false, in
// all lanes, if A is not positive definite. A and b are in shared memory. REQUIRES: size <= 32, a whole warp.
__device__ inline bool FactorByWarp(double* a, int size, double* b) {
  const int row = static_cast<int>(threadIdx.x) % kWarp;
  for (int k = 0; k < size; ++k) {
    const double pivot = a[k * size + k];
    if (!(pivot > 0)) return false;
    const double inverse = ReciprocalRoot(pivot), y = b[k] * inverse;
    const bool below = row > k && row < size;
    const double own = below ? a[row * size + k] * inverse : 0;
    __syncwarp();
    if (row == k) {
      a[k * size + k] = pivot * inverse;
      b[k] = y;
    }
    if (below) {
      a[row * size + k] = own;
      b[row] -= own * y;
    }
    __syncwarp();
    for (int l = k + 1; below && l <= row; ++l) a[row * size + l] -= own * a[l * size + k];
    __syncwarp();
  }
  return true;
}

// Replaces y by L^-T y.
__device__ inline void SolveTransposedByWarp(const double* factor, int size, double* y) {
  const int row = static_cast<int>(threadIdx.x) % kWarp;
  for (int k = size - 1; k >= 0; --k) {
    const double value = y[k] * Reciprocal(factor[k * size + k]);
    __syncwarp();
    if (row == k) y[k] = value;
    if (row < k) y[row] -= factor[k * size + row] * value;
    __syncwarp();
  }
}

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_VELOCITY_WARP_SOLVE_CUH_
