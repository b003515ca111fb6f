// Decodes a Rice-coded image into pixels and ivar, before the first stage.
#ifndef SPEXD_CUDA_KERNELS_DECODE_H_
#define SPEXD_CUDA_KERNELS_DECODE_H_

#include <cuda_runtime_api.h>

#include "cuda/plan/coded_block.h"
#include "cuda/plan/job_arrays.h"

namespace spexd::cuda {

struct DecodeArgs {
  int rows, columns;  // of the CCD
  int planes;
  CodedPlane plane[CodedImage::kMaxPlanes];
  CodedBlock coded;
  uint16_t* mask;  // [row, column], scratch
  ImageArrays image;
};

// Decodes all planes and applies the mask rule. The result has the same bits as that of core/fits' decoder.
// Adds what it finds to coded.report.
cudaError_t DecodeImage(const DecodeArgs& args, cudaStream_t stream);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_DECODE_H_
