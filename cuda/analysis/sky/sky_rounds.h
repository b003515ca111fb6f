// The rounds of a sky fit on a device. Rounds are repeated as long as anything is rejected.
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
  SkyChunks chunks;      // chunks of the last factor
};

// Fits the sky; waits for each round. If the halo of a chunk was too narrow, all bins are solved again as one
// chunk. Returns FailedPrecondition if the equations are singular; Cancelled if a stop is requested.
absl::StatusOr<SkyRounds> FitSkyRounds(const SkyArgs& args, const SkyOptions& options,
                                       const DeviceName& device, cudaStream_t stream);

// Enqueues what follows the rounds: the sky in each fibre, its variance, the sky-subtracted spectra.
cudaError_t FinishSky(const SkyModelArgs& args, const SkyRounds& rounds, const SkyOptions& options,
                      const SkyOutput& output, cudaStream_t stream);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_SKY_SKY_ROUNDS_H_
