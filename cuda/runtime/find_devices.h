// What GPUs this process sees.
#ifndef SPEXD_CUDA_RUNTIME_FIND_DEVICES_H_
#define SPEXD_CUDA_RUNTIME_FIND_DEVICES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "cuda/runtime/device_choice.h"

namespace spexd::cuda {

// FailedPrecondition, saying what is missing, where there is no usable driver or no device.
absl::StatusOr<std::vector<FoundDevice>> FindDevices();

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_RUNTIME_FIND_DEVICES_H_
