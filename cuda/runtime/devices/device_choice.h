// Choice of the GPUs that an engine takes.
#ifndef SPEXD_CUDA_RUNTIME_DEVICES_DEVICE_CHOICE_H_
#define SPEXD_CUDA_RUNTIME_DEVICES_DEVICE_CHOICE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace spexd::cuda {

struct FoundDevice {
  int index = 0;
  std::string name;
  int major = 0, minor = 0;  // compute capability
  int shared_bytes = 0;      // most shared memory of a block, bytes
};

// Minimum compute capability: the first with matrix units for float64 and asynchronous copies to shared
// memory.
inline constexpr int kMinMajor = 8;

// Returns the devices asked for; if none were asked for, all that are new enough. FailedPrecondition: an
// index that is not there or comes twice (the message lists those that are there), a device too old, or none
// new enough.
absl::StatusOr<std::vector<FoundDevice>> ChooseDevices(const std::vector<int>& asked,
                                                       const std::vector<FoundDevice>& found);

// Shared memory in bytes that a block of any stage may take on all of these devices, besides a little that is
// static; at most `most`.
int CommonSharedBytes(const std::vector<FoundDevice>& devices, int most);

// "NVIDIA H200", "2 x NVIDIA H200", "NVIDIA A100, NVIDIA H200".
std::string DescribeDevices(const std::vector<std::string>& names);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_RUNTIME_DEVICES_DEVICE_CHOICE_H_
