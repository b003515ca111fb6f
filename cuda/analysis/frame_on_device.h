// A frame's spectra in a device's memory, copied there when they are first needed.
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

// Not thread-safe.
class FrameOnDevice {
 public:
  // Uses the arrays of `resident` in place if they are on this device and of this shape. `resident` must
  // outlive this object.
  FrameOnDevice(AnalysisDevice* device, const UsableSpectra& spectra, const DeviceSpectra* resident);

  // Puts what Arrays will copy into page-locked memory. Others may use the device meanwhile. `spectra`: the
  // same as for Arrays. REQUIRES: the device is current.
  absl::Status Stage(const UsableSpectra& spectra, const Workers& workers);
  // Returns the arrays, with the flux and ivar of `spectra`. They are made from the resident ones or copied
  // on the device's stream if needed, staged or not. REQUIRES: the device is current, its mutex held.
  absl::StatusOr<SpectraArrays> Arrays(const UsableSpectra& spectra);
  // Marks flux and ivar on the device as outdated: they are copied again.
  void Outdate() {
    current_ = false;
    resident_ = nullptr;
    staged_images_.Release();
  }
  // Marks flux and ivar on the device as current, after a kernel has written them.
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
  const DeviceSpectra* resident_ = nullptr;  // not null while flux and ivar equal its own, except in unusable
                                             // bins
  SpectraArrays arrays_;
  DeviceMemory::Block images_, own_resolution_;
  PinnedBuffer staged_images_, staged_resolution_;  // flux and ivar in float32; empty once they are copied
  bool current_ = false;
};

// The spectra of an arm on the host and on the device.
struct ArmOnDevice {
  const UsableSpectra* spectra;
  FrameOnDevice* frame;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_FRAME_ON_DEVICE_H_
