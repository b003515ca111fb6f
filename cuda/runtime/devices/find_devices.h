// The GPUs that this process sees.
#ifndef SPEXD_CUDA_RUNTIME_DEVICES_FIND_DEVICES_H_
#define SPEXD_CUDA_RUNTIME_DEVICES_FIND_DEVICES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "cuda/runtime/devices/device_choice.h"

namespace spexd::cuda {

// Returns only the devices of `asked`, because querying a device takes milliseconds. Returns all if `asked`
// is empty or names one that is not there. FailedPrecondition, saying what is missing, if there is no usable
// driver or no device.
absl::StatusOr<std::vector<FoundDevice>> FindDevices(const std::vector<int>& asked);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_RUNTIME_DEVICES_FIND_DEVICES_H_
