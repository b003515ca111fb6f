// Legendre series as core/model/traces evaluates them.
#ifndef SPEXD_CUDA_KERNELS_COMMON_LEGENDRE_CUH_
#define SPEXD_CUDA_KERNELS_COMMON_LEGENDRE_CUH_

#include "core/model/traces/traces.h"
#include "cuda/kernels/common/machine.cuh"
#include "cuda/plan/psf_arrays.h"
#include "cuda/plan/spots/series_arrays.h"

namespace spexd::cuda {

// Factors of the recurrence, shared by a block: rise[k], then fall[k].
struct Recurrence {
  double rise[kMaxLegendreCoefficients], fall[kMaxLegendreCoefficients];

  __device__ void Fill() {
    for (int k = threadIdx.x; k < kMaxLegendreCoefficients; k += blockDim.x) {
      rise[k] = (2.0 * k + 1) / (k + 1);
      fall[k] = (k + 1.0) / (k + 2);
    }
    __syncthreads();
  }
};

__device__ inline const double* SeriesOf(const SeriesArrays& arrays, int fibre, int series) {
  return arrays.coefficients +
         (static_cast<int64_t>(fibre) * arrays.shape.count + series) * arrays.shape.coefficients;
}

// Values of a series of `count` coefficients at positions in its domain, -1 to 1 (Clenshaw's recurrence).
template <int kPositions>
__device__ __forceinline__ void EvaluateSeries(const double* c, int count, const Recurrence& recurrence,
                                               const double (&t)[kPositions], double (&value)[kPositions]) {
  double b1[kPositions] = {}, b2[kPositions] = {};
  for (int k = count - 1; k > 0; --k) {
    const double coefficient = c[k], rise = recurrence.rise[k], fall = recurrence.fall[k];
#pragma unroll
    for (int i = 0; i < kPositions; ++i) {
      const double b0 = coefficient + rise * t[i] * b1[i] - fall * b2[i];
      b2[i] = b1[i];
      b1[i] = b0;
    }
  }
#pragma unroll
  for (int i = 0; i < kPositions; ++i) value[i] = c[0] + t[i] * b1[i] - 0.5 * b2[i];
}

__device__ inline double WaveOf(const PsfArrays& psf, int bin) {
  return psf.shape.first_wave + bin * psf.shape.step;
}

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_COMMON_LEGENDRE_CUH_
