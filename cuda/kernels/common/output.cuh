// Destination of one fibre's result.
#ifndef SPEXD_CUDA_KERNELS_COMMON_OUTPUT_CUH_
#define SPEXD_CUDA_KERNELS_COMMON_OUTPUT_CUH_

#include "core/model/frame.h"
#include "cuda/kernels/common/machine.cuh"
#include "cuda/plan/job_arrays.h"

namespace spexd::cuda {

// Real: float or double, whichever the job asks for.
template <typename Real>
struct FibreOutput {
  Real *flux, *ivar, *resolution, *chi2pix;  // [bin]; resolution [diagonal, bin]
  double* pixmask;                           // float64 only
  uint32_t* mask;

  __device__ FibreOutput(const OutputArrays& all, int fibre) {
    std::byte* const bundle = all.bundles + static_cast<int64_t>(fibre / all.bundle_size) * all.bundle_bytes;
    const int64_t at = static_cast<int64_t>(fibre % all.bundle_size) * all.bins;
    flux = reinterpret_cast<Real*>(bundle + all.flux) + at;
    ivar = reinterpret_cast<Real*>(bundle + all.ivar) + at;
    resolution = reinterpret_cast<Real*>(bundle + all.resolution) + at * kResolutionDiagonals;
    chi2pix = reinterpret_cast<Real*>(bundle + all.chi2pix) + at;
    pixmask = reinterpret_cast<double*>(bundle + all.pixmask) + at;
    mask = reinterpret_cast<uint32_t*>(bundle + all.mask) + at;
  }
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_COMMON_OUTPUT_CUH_
