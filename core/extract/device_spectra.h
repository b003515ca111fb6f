// Spectra of a job that stay in the memory of the device that computed them, for programs that go on there.
#ifndef SPEXD_CORE_EXTRACT_DEVICE_SPECTRA_H_
#define SPEXD_CORE_EXTRACT_DEVICE_SPECTRA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "core/base/array.h"

namespace spexd {

// Why an engine without devices refuses a job whose spectra were to stay on one.
inline constexpr char kNoDevices[] = "spectra cannot stay on a device: the engine has none";

// Arrays as in Spectra (core/model/frame.h): [fibre, bin], resolution [fibre, diagonal, bin], without gaps.
// Pointers are into device memory.
struct DeviceArrays {
  int64_t fibres = 0, bins = 0;
  float* flux = nullptr;
  float* ivar = nullptr;
  uint32_t* mask = nullptr;
  float* chi2pix = nullptr;
  float* resolution = nullptr;
};

// Owns its memory, which is freed with it, also after the engine has ended. Whoever has it may change the
// arrays; the engine no longer uses them.
class DeviceSpectra {
 public:
  virtual ~DeviceSpectra() = default;
  virtual int device() const = 0;  // as CUDA counts
  virtual const DeviceArrays& arrays() const = 0;
  // Replaces the mask by one [fibre, bin] of the host. Unavailable if the device failed.
  virtual absl::Status SetMask(const Array<uint32_t, 2>& mask) = 0;
};

}  // namespace spexd

#endif  // SPEXD_CORE_EXTRACT_DEVICE_SPECTRA_H_
