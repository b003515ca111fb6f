// The sky of a frame on a device: fitted to spectra in its memory and subtracted from them.
#ifndef SPEXD_CUDA_ANALYSIS_SKY_SKY_ON_DEVICE_H_
#define SPEXD_CUDA_ANALYSIS_SKY_SKY_ON_DEVICE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "core/analysis/sky/sky.h"
#include "cuda/analysis/analysis_device.h"
#include "cuda/analysis/frame_on_device.h"

namespace spexd::cuda {

// Returns whether shared memory holds what the kernels need for these numbers of fibres and bins.
bool SkyFits(const AnalysisDevice& device, const UsableSpectra& spectra, const std::vector<int>& sky_fibres);

// Does what FitSky of core/analysis does. Subtracts the sky from the frame's flux and ivar on the device,
// which count as outdated until the caller calls SetCurrent. `seconds`: time that the device took. Others may
// use the device while processors convert the results. REQUIRES: SkyFits.
absl::StatusOr<Sky> FitSkyOnDevice(AnalysisDevice* device, const UsableSpectra& spectra, FrameOnDevice* frame,
                                   const std::vector<int>& sky_fibres, const SkyOptions& options,
                                   double* seconds);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_SKY_SKY_ON_DEVICE_H_
