// Stage "normal": A^T W A, A^T W p and coverage, computed directly from spots.
#ifndef SPEXD_CUDA_KERNELS_NORMAL_H_
#define SPEXD_CUDA_KERNELS_NORMAL_H_

#include <cuda_runtime_api.h>

#include "cuda/plan/job_arrays.h"
#include "cuda/plan/psf_arrays.h"

namespace spexd::cuda {

struct NormalArgs {
  PsfArrays psf;
  JobFibres fibres;
  ImageArrays image;
  double regularize;
  NormalArrays normal;  // written
};

// Computes all of `normal`, with the prior.
cudaError_t ComputeNormal(const NormalArgs& args, cudaStream_t stream);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_NORMAL_H_
