// The sky of a frame on a device, from spectra that are there and that it is subtracted from.
#ifndef SPEXD_CUDA_ANALYSIS_SKY_SKY_ON_DEVICE_H_
#define SPEXD_CUDA_ANALYSIS_SKY_SKY_ON_DEVICE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "core/analysis/sky/sky.h"
#include "cuda/analysis/analysis_device.h"
#include "cuda/analysis/frame_on_device.h"

namespace spexd::cuda {

// Whether shared memory holds what the kernels keep there of so many fibres and bins.
bool SkyFits(const AnalysisDevice& device, const UsableSpectra& spectra, const std::vector<int>& sky_fibres);

// Does what FitSky of core/analysis does. Flux and ivar of the frame on the device lose the sky; it is
// outdated until the caller says otherwise. `seconds`: that the device took. Others have the device while
// processors convert the results. REQUIRES: SkyFits.
absl::StatusOr<Sky> FitSkyOnDevice(AnalysisDevice* device, const UsableSpectra& spectra, FrameOnDevice* frame,
                                   const std::vector<int>& sky_fibres, const SkyOptions& options,
                                   double* seconds);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_SKY_SKY_ON_DEVICE_H_
