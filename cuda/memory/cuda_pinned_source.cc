#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/base/threads/parallel.h"
#include "cuda/memory/cuda_status.h"
#include "cuda/memory/pinned_pool.h"

namespace spexd::cuda {
namespace {

constexpr int kTouchThreads = 4;
constexpr int64_t kTouchBytes = int64_t{8} << 20;  // touched by a thread at a time

// New memory, all of it present; null if there is none. CUDA's own allocation (cudaHostAlloc) takes about ten
// times as long: it has small pages, and one thread that clears them.
std::byte* MapMemory(int64_t bytes) {
  void* const memory = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  madvise(memory, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  // A forked child must not share pages that devices write.
  madvise(memory, static_cast<size_t>(bytes), MADV_DONTFORK);
  auto* const data = static_cast<std::byte*>(memory);
  const auto touch = [&](int64_t piece) {
    const int64_t begin = piece * kTouchBytes;
    std::memset(data + begin, 0, static_cast<size_t>(std::min(kTouchBytes, bytes - begin)));
    return absl::OkStatus();
  };
  ParallelFor((bytes + kTouchBytes - 1) / kTouchBytes, kTouchThreads, touch).IgnoreError();
  return data;
}

class CudaPinnedSource : public PinnedPool::Source {
 public:
  explicit CudaPinnedSource(std::vector<int> devices) : devices_(std::move(devices)) {}

  // Locks memory through the first device that works. The error of a lost device says nothing about the
  // memory.
  absl::StatusOr<std::byte*> Lock(int64_t bytes) override {
    std::byte* const data = MapMemory(bytes);
    cudaError_t refusal = data == nullptr ? cudaErrorMemoryAllocation : cudaSuccess, loss = cudaSuccess;
    for (const int device : data == nullptr ? std::vector<int>() : devices_) {
      cudaError_t error = cudaSetDevice(device);
      if (error == cudaSuccess)
        error = cudaHostRegister(data, static_cast<size_t>(bytes), cudaHostRegisterPortable);
      if (error == cudaSuccess) return data;
      cudaGetLastError();
      (IsSticky(error) ? loss : refusal) = error;
    }
    if (data != nullptr) munmap(data, static_cast<size_t>(bytes));
    const bool refused = refusal != cudaSuccess;
    const std::string text = absl::StrFormat("page-locked host memory: %d bytes cannot be had: %s", bytes,
                                             cudaGetErrorString(refused ? refusal : loss));
    return refused ? absl::ResourceExhaustedError(text) : MayBeTriedAgain(absl::UnavailableError(text));
  }

  void Free(std::byte* data, int64_t bytes) override {
    for (const int device : devices_) {
      // A lost device is also tried, because the memory is the host's.
      if (cudaSetDevice(device) != cudaSuccess) cudaGetLastError();
      if (cudaHostUnregister(data) == cudaSuccess) break;
      cudaGetLastError();
    }
    munmap(data, static_cast<size_t>(bytes));
  }

 private:
  const std::vector<int> devices_;
};

}  // namespace

std::unique_ptr<PinnedPool::Source> PinnedPool::CudaSource(std::vector<int> devices) {
  return std::make_unique<CudaPinnedSource>(std::move(devices));
}

}  // namespace spexd::cuda
