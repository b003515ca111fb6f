// Which entries of the matrices that remain after an elimination are kept, by the rule of
// core/extract/band_rule.h.
#ifndef SPEXD_CUDA_KERNELS_FACTOR_THRESHOLDS_H_
#define SPEXD_CUDA_KERNELS_FACTOR_THRESHOLDS_H_

#include <cuda_runtime_api.h>

#include "cuda/plan/job_arrays.h"

namespace spexd::cuda {

struct ThresholdArgs {
  int count;             // number of matrices
  BandArrays own;        // D of each
  FactorArrays factors;  // of D
  ChunkPlan chunks;
  double* values;     // scratch [matrix, chunk, extended]
  double* threshold;  // [matrix, unknown]: written
};

// By the local condition numbers, where IsConditioned.
cudaError_t FindConditionedThresholds(const ThresholdArgs& args, cudaStream_t stream);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_FACTOR_THRESHOLDS_H_
