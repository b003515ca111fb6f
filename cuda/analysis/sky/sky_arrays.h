// Where the arrays of a sky's fit lie in a block of device memory.
#ifndef SPEXD_CUDA_ANALYSIS_SKY_SKY_ARRAYS_H_
#define SPEXD_CUDA_ANALYSIS_SKY_SKY_ARRAYS_H_

#include "cuda/analysis/sky/sky.h"
#include "cuda/memory/carver.h"

namespace spexd::cuda {

struct SkyArrays {
  double* wave = nullptr;        // [bin], copied up
  int32_t* sky_fibre = nullptr;  // [sky fibre], copied up
  double* throughput = nullptr;  // [fibre], a result
  SkyFitArrays fit;
  SkyModelArrays model;
};
SkyArrays LayOutSky(int fibres, int bins, int sky_fibres, Carver* carver);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_SKY_SKY_ARRAYS_H_
