// Legendre series as core/model/psf.cc evaluates them.
#ifndef SPEXD_CUDA_KERNELS_COMMON_LEGENDRE_CUH_
#define SPEXD_CUDA_KERNELS_COMMON_LEGENDRE_CUH_

#include "core/model/psf.h"
#include "cuda/kernels/common/machine.cuh"
#include "cuda/plan/psf_arrays.h"

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

__device__ inline double EvaluateSeries(const PsfArrays& psf, const Recurrence& recurrence, int fibre,
                                        int series, double wave) {
  const int count = psf.shape.coefficients;
  const double* c = psf.coefficients + (static_cast<int64_t>(fibre) * psf.shape.series() + series) * count;
  const double least = psf.domains[2 * series], width = psf.domains[2 * series + 1] - least;
  const double t = 2 * (wave - least) / width - 1;
  double b1 = 0, b2 = 0;
  for (int k = count - 1; k > 0; --k) {
    const double b0 = c[k] + recurrence.rise[k] * t * b1 - recurrence.fall[k] * b2;
    b2 = b1;
    b1 = b0;
  }
  return c[0] + t * b1 - 0.5 * b2;
}

__device__ inline double WaveOf(const PsfArrays& psf, int bin) {
  return psf.shape.first_wave + bin * psf.shape.step;
}

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_COMMON_LEGENDRE_CUH_
