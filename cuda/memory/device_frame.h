// The device memory of a job's spectra that stay on the device.
#ifndef SPEXD_CUDA_MEMORY_DEVICE_FRAME_H_
#define SPEXD_CUDA_MEMORY_DEVICE_FRAME_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "core/extract/device_spectra.h"
#include "core/model/frame.h"
#include "cuda/memory/cuda_status.h"
#include "cuda/memory/device_memory.h"

namespace spexd::cuda {

// A block outside the engine's arena, so that neither depends on the other. It may outlive the engine.
class DeviceFrame : public DeviceSpectra {
 public:
  // Returns ResourceExhausted, naming the bytes, if the device lacks the memory. REQUIRES: the device is
  // current.
  static absl::StatusOr<std::shared_ptr<DeviceFrame>> Make(const DeviceName& device, DeviceMemory* memory,
                                                           int64_t fibres, int64_t bins);

  int device() const override { return device_.index; }
  const DeviceArrays& arrays() const override { return arrays_; }
  absl::Status SetMask(const Array<uint32_t, 2>& mask) override;
  // Replaces all arrays of the fibres from `first` on.
  absl::Status SetFibres(int64_t first, const Spectra& spectra);

 private:
  DeviceFrame(DeviceName device, DeviceMemory::Block block, int64_t fibres, int64_t bins);

  const DeviceName device_;
  const DeviceMemory::Block block_;
  DeviceArrays arrays_;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_MEMORY_DEVICE_FRAME_H_
