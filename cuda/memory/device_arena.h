// The memory that an engine holds on one device. block_allocator.h assigns parts of it.
#ifndef SPEXD_CUDA_MEMORY_DEVICE_ARENA_H_
#define SPEXD_CUDA_MEMORY_DEVICE_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/statusor.h"
#include "core/base/threads/mutex.h"
#include "cuda/memory/block_allocator.h"
#include "cuda/memory/cuda_status.h"

namespace spexd::cuda {

// Allocates memory on the current device. Returns ResourceExhausted, naming the bytes needed and free.
absl::StatusOr<std::byte*> TakeDeviceMemory(const DeviceName& device, int64_t bytes);

// Thread-safe. Its device must be current for all calls except At.
class DeviceArena {
 public:
  enum class Mode {
    kAtOnce,   // all memory is taken at construction, so nobody else can take it later
    kOnDemand  // each block's memory is taken at its first use, and kept for later blocks at the same place
  };
  // `bytes`: the limit; 0: nine tenths of what is free, or all of it on demand. Returns ResourceExhausted,
  // naming the free bytes, if less is free; on demand Back returns this error instead.
  static absl::StatusOr<std::unique_ptr<DeviceArena>> Make(const DeviceName& device, int64_t bytes,
                                                           Mode mode);
  ~DeviceArena();
  DeviceArena(const DeviceArena&) = delete;
  DeviceArena& operator=(const DeviceArena&) = delete;

  int64_t bytes() const { return bytes_; }

  // Makes sure that a block has memory. The caller owns the block, which nobody uses yet. Returns
  // ResourceExhausted, naming the bytes needed and free.
  absl::Status Back(const Block& block) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns null for a block of 0 bytes. REQUIRES: Back returned OK for this block.
  std::byte* At(const Block& block) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Piece {
    int64_t bytes = 0;
    std::byte* data = nullptr;
  };

  DeviceArena(DeviceName device, int64_t bytes, Mode mode)
      : device_(std::move(device)), bytes_(bytes), mode_(mode) {}

  const DeviceName device_;
  const int64_t bytes_;
  const Mode mode_;
  mutable Mutex mutex_;
  // Pieces by offset, without overlaps. With kAtOnce one piece of all bytes.
  std::map<int64_t, Piece> pieces_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_MEMORY_DEVICE_ARENA_H_
