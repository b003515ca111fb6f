// Page-locked host memory, which devices copy from and to at full speed. Page-locking is slow, so buffers are
// kept and reused: a job whose sizes were seen before locks no new memory.
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

// Shared by all devices of an engine; buffers keep it alive. Thread-safe.
class PinnedPool : public std::enable_shared_from_this<PinnedPool> {
 public:
  // How memory is locked and freed; replaceable for tests.
  class Source {
   public:
    virtual ~Source() = default;
    // ResourceExhausted: there is no memory. Unavailable: no working device could lock it.
    virtual absl::StatusOr<std::byte*> Lock(int64_t bytes) = 0;
    virtual void Free(std::byte* data, int64_t bytes) = 0;
  };
  // Memory that all devices see. Locking needs a device that works: the first such device is made current.
  static std::unique_ptr<Source> CudaSource(std::vector<int> devices);

  // `max_idle`: maximum bytes kept while nobody uses them.
  PinnedPool(std::unique_ptr<Source> source, int64_t max_idle);
  ~PinnedPool();
  PinnedPool(const PinnedPool&) = delete;
  PinnedPool& operator=(const PinnedPool&) = delete;

  // Errors as of Source::Lock, naming the bytes. The contents are what the last user left.
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
