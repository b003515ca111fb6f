// Stage "model": model images, chi-square and masks.
#ifndef SPEXD_CUDA_KERNELS_MODEL_H_
#define SPEXD_CUDA_KERNELS_MODEL_H_

#include <cuda_runtime_api.h>

#include "cuda/plan/job_arrays.h"
#include "cuda/plan/psf_arrays.h"

namespace spexd::cuda {

struct ModelArgs {
  PsfArrays psf;
  JobFibres fibres;
  int first_bundle, bundles;  // bundles of the job that are wanted
  ImageArrays image;
  double psferr;
  bool want_model;
  const double* flux;   // f [fibre, bin]
  const uint8_t* weak;  // [fibre, bin]
  ModelArrays model;
  OutputArrays output;  // flux and ivar are already written; NODATA bins are cleared
};

cudaError_t ComputeModel(const ModelArgs& args, cudaStream_t stream);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_MODEL_H_
