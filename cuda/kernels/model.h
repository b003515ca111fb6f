// Stage "model": model images and chi-square.
#ifndef SPEXD_CUDA_KERNELS_MODEL_H_
#define SPEXD_CUDA_KERNELS_MODEL_H_

#include <cuda_runtime_api.h>

#include "cuda/plan/job_arrays.h"
#include "cuda/plan/psf_arrays.h"

namespace spexd::cuda {

struct ModelArgs {
  PsfArrays psf;
  JobFibres fibres;
  ImageArrays image;
  double psferr;
  bool want_model;
  const double* flux;  // f [fibre, bin]
  ModelArrays model;
  OutputArrays output;  // receives the models, if wanted
};

cudaError_t ComputeModel(const ModelArgs& args, cudaStream_t stream);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_MODEL_H_
