#include "cuda/memory/device_memory.h"

#include <cuda_runtime_api.h>

#include <map>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/base/threads/mutex.h"
#include "cuda/memory/block_allocator.h"
#include "cuda/memory/device_arena.h"
#include "cuda/memory/on_device.h"

namespace spexd::cuda {

// The state that a DeviceMemory shares with its blocks.
class DeviceMemory::Pool {
 public:
  Pool(DeviceName device, const Limits& limits) : device_(std::move(device)), limits_(limits) {}
  ~Pool() {
    MutexLock lock(&mutex_);
    FreeIdle();
  }

  static absl::StatusOr<Block> Take(const std::shared_ptr<Pool>& pool, int64_t bytes) {
    const OnDevice current(pool->device_.index);
    SPEXD_CUDA_RETURN_IF_ERROR(current.error(), pool->device_, "making it current");
    MutexLock lock(&pool->mutex_);
    return pool->TakeLocked(pool, Aligned(bytes));
  }

  void Return(std::byte* data, int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    idle_.emplace(bytes, data);
    if (static_cast<int>(idle_.size()) > limits_.idle) FreeIdle();
  }

 private:
  absl::StatusOr<Block> TakeLocked(const std::shared_ptr<Pool>& self, int64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto spare = idle_.lower_bound(bytes);
    // A block of more than twice the size is kept for larger requests.
    if (spare != idle_.end() && spare->first <= 2 * bytes) {
      Block block(self, spare->second, spare->first);
      idle_.erase(spare);
      return block;
    }
    if (!Allows(bytes)) FreeIdle();
    if (!Allows(bytes)) {
      return absl::ResourceExhaustedError(
          absl::StrFormat("cuda device %d (%s): %d bytes of device memory are needed, %d of %d that are "
                          "allowed beside the engine's are taken",
                          device_.index, device_.name, bytes, held_, limits_.bytes));
    }
    absl::StatusOr<std::byte*> data = TakeDeviceMemory(device_, bytes);
    if (!data.ok() && !idle_.empty()) {
      FreeIdle();
      data = TakeDeviceMemory(device_, bytes);
    }
    SPEXD_RETURN_IF_ERROR(data.status());
    held_ += bytes;
    return Block(self, *data, bytes);
  }
  bool Allows(int64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return limits_.bytes == 0 || bytes <= limits_.bytes - held_;
  }
  void FreeIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const OnDevice current(device_.index);
    for (const auto& [bytes, data] : idle_) {
      // Fails at the end of the process if CUDA has already shut down; the memory is then free anyway.
      if (current.error() != cudaSuccess || cudaFree(data) != cudaSuccess) cudaGetLastError();
      held_ -= bytes;
    }
    idle_.clear();
  }

  const DeviceName device_;
  const Limits limits_;
  Mutex mutex_;
  std::multimap<int64_t, std::byte*> idle_ ABSL_GUARDED_BY(mutex_);  // by bytes
  int64_t held_ ABSL_GUARDED_BY(mutex_) = 0;                         // bytes of all blocks, idle ones
                                                                     // included
};

DeviceMemory::DeviceMemory(DeviceName device, const Limits& limits)
    : pool_(std::make_shared<Pool>(std::move(device), limits)) {}

DeviceMemory::Block::~Block() {
  if (data_ != nullptr) pool_->Return(data_, bytes_);
}

absl::StatusOr<DeviceMemory::Block> DeviceMemory::Take(int64_t bytes) { return Pool::Take(pool_, bytes); }

}  // namespace spexd::cuda
