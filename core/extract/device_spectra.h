// Spectra of a job that stay in the memory of the device that computed them, for further work on the device.
#ifndef SPEXD_CORE_EXTRACT_DEVICE_SPECTRA_H_
#define SPEXD_CORE_EXTRACT_DEVICE_SPECTRA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "core/base/array.h"

namespace spexd {

// The error of an engine without devices for a job whose spectra were to stay on one.
inline constexpr char kNoDevices[] = "spectra cannot stay on a device: the engine has none";

// Arrays in device memory with the layout of Spectra (core/model/frame.h): [fibre, bin], resolution [fibre,
// diagonal, bin], without gaps.
struct DeviceArrays {
  int64_t fibres = 0, bins = 0;
  float* flux = nullptr;
  float* ivar = nullptr;
  uint32_t* mask = nullptr;
  float* chi2pix = nullptr;
  float* resolution = nullptr;
};

// An owner of device memory, which is freed on destruction, also after the engine has ended. The engine does
// not use the arrays; the holder may change them.
class DeviceSpectra {
 public:
  virtual ~DeviceSpectra() = default;
  virtual int device() const = 0;  // the device's number as CUDA counts
  virtual const DeviceArrays& arrays() const = 0;
  // Replaces the mask by one [fibre, bin] from the host. Unavailable if the device failed.
  virtual absl::Status SetMask(const Array<uint32_t, 2>& mask) = 0;
};

}  // namespace spexd

#endif  // SPEXD_CORE_EXTRACT_DEVICE_SPECTRA_H_
