#include <cuda_runtime_api.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "cuda/memory/cuda_status.h"
#include "cuda/memory/pinned_pool.h"

namespace spexd::cuda {
namespace {

class CudaPinnedSource : public PinnedPool::Source {
 public:
  explicit CudaPinnedSource(std::vector<int> devices) : devices_(std::move(devices)) {}

  // Locks memory through the first device that works. The error of a lost device says nothing about the
  // memory.
  absl::StatusOr<std::byte*> Lock(int64_t bytes) override {
    cudaError_t refusal = cudaSuccess, loss = cudaSuccess;
    for (const int device : devices_) {
      void* data = nullptr;
      cudaError_t error = cudaSetDevice(device);
      if (error == cudaSuccess)
        error = cudaHostAlloc(&data, static_cast<size_t>(bytes), cudaHostAllocPortable);
      if (error == cudaSuccess) return static_cast<std::byte*>(data);
      cudaGetLastError();
      (IsSticky(error) ? loss : refusal) = error;
    }
    const bool refused = refusal != cudaSuccess;
    const std::string text = absl::StrFormat("page-locked host memory: %d bytes cannot be had: %s", bytes,
                                             cudaGetErrorString(refused ? refusal : loss));
    return refused ? absl::ResourceExhaustedError(text) : MayBeTriedAgain(absl::UnavailableError(text));
  }

  void Free(std::byte* data) override {
    for (const int device : devices_) {
      // A lost device is also tried, because the memory is the host's.
      if (cudaSetDevice(device) != cudaSuccess) cudaGetLastError();
      if (cudaFreeHost(data) == cudaSuccess) return;
      cudaGetLastError();
    }
  }

 private:
  const std::vector<int> devices_;
};

}  // namespace

std::unique_ptr<PinnedPool::Source> PinnedPool::CudaSource(std::vector<int> devices) {
  return std::make_unique<CudaPinnedSource>(std::move(devices));
}

}  // namespace spexd::cuda
