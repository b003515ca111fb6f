#include <cuda_runtime_api.h>

#include "cuda/runtime/pinned_pool.h"

namespace spexd::cuda {
namespace {

class CudaPinnedSource : public PinnedPool::Source {
 public:
  explicit CudaPinnedSource(int device) : device_(device) {}

  std::byte* Lock(int64_t bytes) override {
    void* data = nullptr;
    if (cudaSetDevice(device_) == cudaSuccess &&
        cudaHostAlloc(&data, static_cast<size_t>(bytes), cudaHostAllocPortable) == cudaSuccess) {
      return static_cast<std::byte*>(data);
    }
    cudaGetLastError();
    return nullptr;
  }

  void Free(std::byte* data) override {
    if (cudaSetDevice(device_) != cudaSuccess || cudaFreeHost(data) != cudaSuccess) cudaGetLastError();
  }

 private:
  const int device_;
};

}  // namespace

std::unique_ptr<PinnedPool::Source> PinnedPool::CudaSource(int device) {
  return std::make_unique<CudaPinnedSource>(device);
}

}  // namespace spexd::cuda
