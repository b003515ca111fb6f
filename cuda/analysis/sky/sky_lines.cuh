// The positions of bright lines, for the kernels that need them.
#ifndef SPEXD_CUDA_ANALYSIS_SKY_SKY_LINES_CUH_
#define SPEXD_CUDA_ANALYSIS_SKY_SKY_LINES_CUH_

#include "cuda/analysis/sky/sky_kernels.cuh"

namespace spexd::cuda {

// Finds the mean of the model over the sky fibres, or over all fibres without bins that have no sky; its
// peaks, and where the continuum is between them.
cudaError_t FindSkyPeaks(const SkyModelArgs& args, bool of_all, cudaStream_t stream);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_SKY_SKY_LINES_CUH_
