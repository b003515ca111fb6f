#include "cuda/runtime/device_arena.h"

#include <cuda_runtime_api.h>

#include <utility>

#include "absl/strings/str_format.h"

namespace spexd::cuda {

absl::StatusOr<DeviceArena> DeviceArena::Make(const DeviceName& device, int64_t bytes) {
  size_t free = 0, total = 0;
  SPEXD_CUDA_RETURN_IF_ERROR(cudaMemGetInfo(&free, &total), device, "asking for free memory");
  const int64_t taken =
      (bytes > 0 ? bytes : static_cast<int64_t>(free / 10 * 9)) / kBlockAlignment * kBlockAlignment;
  if (taken <= 0 || static_cast<size_t>(taken) > free) {
    return absl::ResourceExhaustedError(absl::StrFormat("%s: %d bytes of memory asked for, %d of %d are free",
                                                        Text(device), bytes > 0 ? bytes : taken, free,
                                                        total));
  }
  void* data = nullptr;
  SPEXD_CUDA_RETURN_IF_ERROR(cudaMalloc(&data, static_cast<size_t>(taken)), device,
                             absl::StrFormat("taking %d of %d free bytes of memory", taken, free));
  return DeviceArena(static_cast<std::byte*>(data), taken);
}

DeviceArena::DeviceArena(DeviceArena&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

DeviceArena::~DeviceArena() {
  if (data_ != nullptr) cudaFree(data_);
}

}  // namespace spexd::cuda
