// The rounds of a sky's fit on a device: one more as long as anything is rejected.
#ifndef SPEXD_CUDA_ANALYSIS_SKY_SKY_ROUNDS_H_
#define SPEXD_CUDA_ANALYSIS_SKY_SKY_ROUNDS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/analysis/sky/sky.h"
#include "cuda/analysis/sky/sky.h"
#include "cuda/memory/cuda_status.h"

namespace spexd::cuda {

struct SkyRounds {
  int rounds = 0;
  int64_t rejected = 0;  // bins
  SkyChunks chunks;      // that the last factor is in
};

// Waits for each round. Chunks whose halo was too narrow are solved again as one. FailedPrecondition if the
// equations are singular; Cancelled.
absl::StatusOr<SkyRounds> FitSkyRounds(const SkyArgs& args, const SkyOptions& options,
                                       const DeviceName& device, cudaStream_t stream);

// What follows the rounds: the sky in each fibre, its variance, the spectra without it.
cudaError_t FinishSky(const SkyModelArgs& args, const SkyRounds& rounds, const SkyOptions& options,
                      const SkyOutput& output, cudaStream_t stream);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_SKY_SKY_ROUNDS_H_
