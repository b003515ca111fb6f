// The memory that an engine has of one device. Who has which part: see block_allocator.h.
#ifndef SPEXD_CUDA_RUNTIME_DEVICE_ARENA_H_
#define SPEXD_CUDA_RUNTIME_DEVICE_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "cuda/runtime/block_allocator.h"
#include "cuda/runtime/cuda_status.h"

namespace spexd::cuda {

// Thread-safe; its device must be current for all calls but At.
class DeviceArena {
 public:
  enum class Mode {
    kAtOnce,   // all is taken when it is made: nobody else can take it meanwhile
    kOnDemand  // each block's memory is taken when it is first used, and kept for blocks in its place
  };
  // `bytes`: the most that it takes; 0: nine tenths of what is free, on demand all of it. ResourceExhausted,
  // naming what is free, where there is less; on demand that shows when a block is backed.
  static absl::StatusOr<std::unique_ptr<DeviceArena>> Make(const DeviceName& device, int64_t bytes,
                                                           Mode mode);
  ~DeviceArena();
  DeviceArena(const DeviceArena&) = delete;
  DeviceArena& operator=(const DeviceArena&) = delete;

  int64_t bytes() const { return bytes_; }

  // Sees that there is memory behind a block that its caller was given and nobody uses yet.
  // ResourceExhausted, naming the bytes needed and free.
  absl::Status Back(const Block& block) ABSL_LOCKS_EXCLUDED(mutex_);
  // Null for a block of 0 bytes. REQUIRES: Back was OK of this block.
  std::byte* At(const Block& block) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Piece {
    int64_t bytes = 0;
    std::byte* data = nullptr;
  };

  DeviceArena(DeviceName device, int64_t bytes, Mode mode)
      : device_(std::move(device)), bytes_(bytes), mode_(mode) {}
  absl::StatusOr<std::byte*> Take(int64_t bytes) const;

  const DeviceName device_;
  const int64_t bytes_;
  const Mode mode_;
  mutable Mutex mutex_;
  // By offset, without overlaps. At once: one of all bytes.
  std::map<int64_t, Piece> pieces_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_RUNTIME_DEVICE_ARENA_H_
