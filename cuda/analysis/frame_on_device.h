// A frame's spectra in the memory of a device, brought there when they are first needed.
#ifndef SPEXD_CUDA_ANALYSIS_FRAME_ON_DEVICE_H_
#define SPEXD_CUDA_ANALYSIS_FRAME_ON_DEVICE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/analysis/usable_spectra.h"
#include "core/base/threads/parallel.h"
#include "core/extract/device_spectra.h"
#include "cuda/analysis/analysis_device.h"
#include "cuda/analysis/spectra_arrays.h"

namespace spexd::cuda {

// For one thread at a time.
class FrameOnDevice {
 public:
  // The arrays of `resident` are used where they are, if it is on this device and of this shape. It outlives
  // this.
  FrameOnDevice(AnalysisDevice* device, const UsableSpectra& spectra, const DeviceSpectra* resident);

  // Puts what Arrays will copy into page-locked memory, for which the device need not be free: others use it
  // meanwhile. The same `spectra` as in Arrays. REQUIRES: the device is current.
  absl::Status Stage(const UsableSpectra& spectra, const Workers& workers);
  // The arrays, flux and ivar as `spectra` has them, made of the resident ones or copied by the device's
  // stream if need be, staged or not. REQUIRES: the device is current, its mutex held.
  absl::StatusOr<SpectraArrays> Arrays(const UsableSpectra& spectra);
  // Flux and ivar on the device are no longer those of the host: they are copied again.
  void Outdate() {
    current_ = false;
    resident_ = nullptr;
    staged_images_.Release();
  }
  // A kernel has written flux and ivar there.
  void SetCurrent() {
    current_ = true;
    resident_ = nullptr;
  }

 private:
  absl::Status TakeMemory();
  absl::Status MakeImages();
  absl::Status CopyImages();
  absl::Status CopyResolution();

  AnalysisDevice& device_;
  const Array<float, 3>& resolution_;
  const DeviceSpectra* resident_ = nullptr;  // while flux and ivar are those of it, but for unusable bins
  SpectraArrays arrays_;
  DeviceMemory::Block images_, own_resolution_;
  PinnedBuffer staged_images_, staged_resolution_;  // flux and ivar in float32; none once they are copied
  bool current_ = false;
};

// The spectra of an arm on the host and on the device.
struct ArmOnDevice {
  const UsableSpectra* spectra;
  FrameOnDevice* frame;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_FRAME_ON_DEVICE_H_
