// All the memory that an engine has of one device, taken at once. Who has which part: see block_allocator.h.
#ifndef SPEXD_CUDA_RUNTIME_DEVICE_ARENA_H_
#define SPEXD_CUDA_RUNTIME_DEVICE_ARENA_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "cuda/runtime/block_allocator.h"
#include "cuda/runtime/cuda_status.h"

namespace spexd::cuda {

class DeviceArena {
 public:
  // Of the current device. 0 bytes: nine tenths of what is free. ResourceExhausted, naming what is free,
  // where there is less.
  static absl::StatusOr<DeviceArena> Make(const DeviceName& device, int64_t bytes);

  DeviceArena(DeviceArena&& other) noexcept;
  DeviceArena& operator=(DeviceArena&&) = delete;
  ~DeviceArena();

  int64_t bytes() const { return bytes_; }
  std::byte* At(const Block& block) const { return data_ + block.offset; }

 private:
  DeviceArena(std::byte* data, int64_t bytes) : data_(data), bytes_(bytes) {}

  std::byte* data_;
  int64_t bytes_;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_RUNTIME_DEVICE_ARENA_H_
