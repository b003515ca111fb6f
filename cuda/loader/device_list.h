// A user's list of devices.
#ifndef SPEXD_CUDA_LOADER_DEVICE_LIST_H_
#define SPEXD_CUDA_LOADER_DEVICE_LIST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace spexd {

inline constexpr int kMaxDeviceIndex = 255;

// Parses "0,2": CUDA indices, each at most once, in any order. Returns InvalidArgument that names the flag,
// the mistake and the limit. Whether the devices exist is left to the engine.
absl::StatusOr<std::vector<int>> ParseDeviceList(const std::string& text);

}  // namespace spexd

#endif  // SPEXD_CUDA_LOADER_DEVICE_LIST_H_
