// Device memory outside the engine's arena, taken and returned in blocks, within a limit.
#ifndef SPEXD_CUDA_MEMORY_DEVICE_MEMORY_H_
#define SPEXD_CUDA_MEMORY_DEVICE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "cuda/memory/cuda_status.h"

namespace spexd::cuda {

// Keeps returned blocks for requests of a similar size, because a device waits for all of its work when
// memory is allocated or freed. Thread-safe. Its blocks may outlive it: the memory is freed when the last one
// is destroyed.
class DeviceMemory {
  class Pool;

 public:
  struct Limits {
    int64_t bytes = 0;  // most bytes held at once, idle blocks included; 0: what the device has
    // Most idle blocks. If there are more, all idle ones are freed, which waits for all work of the device.
    // With 0, a block may be returned before the work on it has ended.
    int idle = 8;
  };
  explicit DeviceMemory(DeviceName device) : DeviceMemory(std::move(device), Limits()) {}
  DeviceMemory(DeviceName device, const Limits& limits);

  // A block, which its destructor returns. REQUIRES: nobody uses it at that time, unless Limits::idle is 0.
  class Block {
   public:
    Block() = default;
    Block(Block&& other) noexcept { *this = std::move(other); }
    Block& operator=(Block&& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(data_, other.data_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Block();
    std::byte* data() const { return data_; }
    int64_t bytes() const { return bytes_; }

   private:
    friend class Pool;
    Block(std::shared_ptr<Pool> pool, std::byte* data, int64_t bytes)
        : pool_(std::move(pool)), data_(data), bytes_(bytes) {}
    std::shared_ptr<Pool> pool_;
    std::byte* data_ = nullptr;
    int64_t bytes_ = 0;
  };

  // Takes at least `bytes` bytes, not initialised. Returns ResourceExhausted, with the bytes, if the device
  // lacks them or the limit does not allow them.
  absl::StatusOr<Block> Take(int64_t bytes);

 private:
  std::shared_ptr<Pool> pool_;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_MEMORY_DEVICE_MEMORY_H_
