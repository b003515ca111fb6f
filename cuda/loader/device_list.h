// A user's list of devices.
#ifndef SPEXD_CUDA_LOADER_DEVICE_LIST_H_
#define SPEXD_CUDA_LOADER_DEVICE_LIST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace spexd {

inline constexpr int kMaxDeviceIndex = 255;

// Parses "0,2": indices as CUDA counts them, each once, in any order. InvalidArgument names the flag, what is
// wrong and the limit. The engine checks whether the devices exist.
absl::StatusOr<std::vector<int>> ParseDeviceList(const std::string& text);

}  // namespace spexd

#endif  // SPEXD_CUDA_LOADER_DEVICE_LIST_H_
