// Page-locked host memory, which devices copy to and from at full speed. Page-locking is slow, so buffers are
// kept and reused: a job with sizes that were seen before locks no new memory.
#ifndef SPEXD_CUDA_MEMORY_PINNED_POOL_H_
#define SPEXD_CUDA_MEMORY_PINNED_POOL_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/threads/mutex.h"

namespace spexd::cuda {

class PinnedPool;

// A buffer, returned to its pool on destruction.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  PinnedBuffer(PinnedBuffer&& other) noexcept { *this = std::move(other); }
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept;
  ~PinnedBuffer() { Release(); }

  std::byte* data() const { return data_; }
  void Release();

 private:
  friend class PinnedPool;
  std::shared_ptr<PinnedPool> pool_;
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

// A pool that all devices of an engine share. Its buffers keep it alive. Thread-safe.
class PinnedPool : public std::enable_shared_from_this<PinnedPool> {
 public:
  // Functions that lock and free memory; replaceable for tests.
  class Source {
   public:
    virtual ~Source() = default;
    // Returns ResourceExhausted if there is no memory, Unavailable if no working device could lock it.
    virtual absl::StatusOr<std::byte*> Lock(int64_t bytes) = 0;
    virtual void Free(std::byte* data, int64_t bytes) = 0;
  };
  // Returns memory that all devices can access. Locking needs a device that works, and makes the first such
  // device current.
  static std::unique_ptr<Source> CudaSource(std::vector<int> devices);

  // `max_idle`: most bytes kept in unused buffers.
  PinnedPool(std::unique_ptr<Source> source, int64_t max_idle);
  ~PinnedPool();
  PinnedPool(const PinnedPool&) = delete;
  PinnedPool& operator=(const PinnedPool&) = delete;

  // Returns the errors of Source::Lock, naming the bytes. The buffer's contents are left over from its last
  // user.
  absl::StatusOr<PinnedBuffer> Take(int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  int64_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t idle_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class PinnedBuffer;
  using Idle = std::multimap<int64_t, std::byte*>;  // idle buffers by size

  void Return(std::byte* data, int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::byte*> Lock(int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::unique_ptr<Source> source_;
  const int64_t max_idle_;
  mutable Mutex mutex_;
  Idle idle_ ABSL_GUARDED_BY(mutex_);
  int64_t idle_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_MEMORY_PINNED_POOL_H_
