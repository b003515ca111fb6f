// Makes the spectra that an extraction left on a device usable, there: MakeUsable of core/analysis.
#ifndef SPEXD_CUDA_ANALYSIS_COMMON_USABLE_BINS_H_
#define SPEXD_CUDA_ANALYSIS_COMMON_USABLE_BINS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace spexd::cuda {

struct UsableArgs {
  int64_t values;  // fibres x bins
  const float *flux, *ivar;
  const uint32_t* mask;
  float *usable_flux, *usable_ivar;
};
[[nodiscard]] cudaError_t MakeUsableBins(const UsableArgs& args, cudaStream_t stream);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_COMMON_USABLE_BINS_H_
