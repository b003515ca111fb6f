#include "cuda/memory/pinned_pool.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"

namespace spexd::cuda {
namespace {

constexpr int64_t kSmallUnit = 4 << 10, kLargeUnit = 1 << 20;

// Rounds a size up, so that similar sizes share buffers.
int64_t Rounded(int64_t bytes) {
  const int64_t unit = bytes < kLargeUnit ? kSmallUnit : kLargeUnit;
  return (std::max<int64_t>(bytes, 1) + unit - 1) / unit * unit;
}

}  // namespace

PinnedBuffer& PinnedBuffer::operator=(PinnedBuffer&& other) noexcept {
  if (this != &other) {
    Release();
    pool_ = std::move(other.pool_);
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

void PinnedBuffer::Release() {
  if (data_ == nullptr) return;
  pool_->Return(std::exchange(data_, nullptr), bytes_);
  pool_.reset();
}

PinnedPool::PinnedPool(std::unique_ptr<Source> source, int64_t max_idle)
    : source_(std::move(source)), max_idle_(max_idle) {}

PinnedPool::~PinnedPool() {
  for (const auto& [bytes, data] : idle_) source_->Free(data, bytes);
}

absl::StatusOr<PinnedBuffer> PinnedPool::Take(int64_t bytes) {
  if (bytes < 0 || bytes > int64_t{1} << 50) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("page-locked host memory: %d bytes asked for", bytes));
  }
  const int64_t rounded = Rounded(bytes);
  PinnedBuffer buffer;
  buffer.pool_ = shared_from_this();
  {
    MutexLock lock(&mutex_);
    // A buffer of more than twice the size is left for larger requests.
    const auto found = idle_.lower_bound(rounded);
    if (found != idle_.end() && found->first <= 2 * rounded) {
      buffer.bytes_ = found->first;
      buffer.data_ = found->second;
      idle_bytes_ -= found->first;
      idle_.erase(found);
      return buffer;
    }
  }
  SPEXD_ASSIGN_OR_RETURN(buffer.data_, Lock(rounded));
  buffer.bytes_ = rounded;
  MutexLock lock(&mutex_);
  bytes_ += rounded;
  return buffer;
}

// Locks new memory. If there is none, frees the idle buffers and tries again.
absl::StatusOr<std::byte*> PinnedPool::Lock(int64_t bytes) {
  absl::StatusOr<std::byte*> data = source_->Lock(bytes);
  if (!absl::IsResourceExhausted(data.status())) return data;
  Idle idle;
  {
    MutexLock lock(&mutex_);
    idle.swap(idle_);
    bytes_ -= idle_bytes_;
    idle_bytes_ = 0;
  }
  if (idle.empty()) return data;
  for (const auto& [size, one] : idle) source_->Free(one, size);
  return source_->Lock(bytes);
}

void PinnedPool::Return(std::byte* data, int64_t bytes) {
  Idle freed;
  {
    MutexLock lock(&mutex_);
    idle_.emplace(bytes, data);
    idle_bytes_ += bytes;
    while (idle_bytes_ > max_idle_ && !idle_.empty()) {
      const auto largest = std::prev(idle_.end());
      idle_bytes_ -= largest->first;
      bytes_ -= largest->first;
      freed.insert(idle_.extract(largest));
    }
  }
  for (const auto& [size, one] : freed) source_->Free(one, size);
}

int64_t PinnedPool::bytes() const {
  MutexLock lock(&mutex_);
  return bytes_;
}

int64_t PinnedPool::idle_bytes() const {
  MutexLock lock(&mutex_);
  return idle_bytes_;
}

}  // namespace spexd::cuda
