#include "cuda/runtime/devices/find_devices.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "cuda/memory/cuda_status.h"

namespace spexd::cuda {

absl::StatusOr<std::vector<FoundDevice>> FindDevices(const std::vector<int>& asked) {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess) cudaGetLastError();
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count == 0) error = cudaErrorNoDevice;
  if (error != cudaSuccess) {
    cudaGetLastError();
    return NoCuda(error, driver);
  }
  // If a device is not there, the error lists all that are.
  const bool all = asked.empty() || *std::max_element(asked.begin(), asked.end()) >= count;
  std::vector<FoundDevice> found;
  for (int index = 0; index < count; ++index) {
    if (!all && std::find(asked.begin(), asked.end(), index) == asked.end()) continue;
    cudaDeviceProp properties = {};
    if (error = cudaGetDeviceProperties(&properties, index); error != cudaSuccess) {
      cudaGetLastError();
      return NoCuda(error, driver);
    }
    found.push_back({index, properties.name, properties.major, properties.minor,
                     static_cast<int>(properties.sharedMemPerBlockOptin)});
  }
  return found;
}

}  // namespace spexd::cuda
