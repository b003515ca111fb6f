#include <cuda_runtime_api.h>

#include <utility>
#include <vector>

#include "cuda/runtime/pinned_pool.h"

namespace spexd::cuda {
namespace {

class CudaPinnedSource : public PinnedPool::Source {
 public:
  explicit CudaPinnedSource(std::vector<int> devices) : devices_(std::move(devices)) {}

  std::byte* Lock(int64_t bytes) override {
    for (const int device : devices_) {
      void* data = nullptr;
      if (cudaSetDevice(device) == cudaSuccess &&
          cudaHostAlloc(&data, static_cast<size_t>(bytes), cudaHostAllocPortable) == cudaSuccess) {
        return static_cast<std::byte*>(data);
      }
      cudaGetLastError();
    }
    return nullptr;
  }

  void Free(std::byte* data) override {
    for (const int device : devices_) {
      // Tried of a device that was lost too: the memory is the host's.
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
