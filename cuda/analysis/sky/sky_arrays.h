// The layout of a sky fit's arrays in a block of device memory.
#ifndef SPEXD_CUDA_ANALYSIS_SKY_SKY_ARRAYS_H_
#define SPEXD_CUDA_ANALYSIS_SKY_SKY_ARRAYS_H_

#include "cuda/analysis/sky/sky.h"
#include "cuda/memory/carver.h"

namespace spexd::cuda {

struct SkyArrays {
  double* wave = nullptr;        // [bin], copied from the host
  int32_t* sky_fibre = nullptr;  // [sky fibre], copied from the host
  double* throughput = nullptr;  // [fibre], result
  SkyFitArrays fit;
  SkyModelArrays model;
};
SkyArrays LayOutSky(int fibres, int bins, int sky_fibres, Carver* carver);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_SKY_SKY_ARRAYS_H_
