// Copies of arrays between host and device, asynchronous on a stream.
#ifndef SPEXD_CUDA_MEMORY_COPIES_H_
#define SPEXD_CUDA_MEMORY_COPIES_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace spexd::cuda {

// Copies `count` elements to the device (CopyUp) or back (CopyDown).
template <typename T>
cudaError_t CopyUp(const T* from, int64_t count, void* to, cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, static_cast<size_t>(count) * sizeof(T), cudaMemcpyHostToDevice, stream);
}
template <typename T>
cudaError_t CopyDown(const T* from, int64_t count, T* to, cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, static_cast<size_t>(count) * sizeof(T), cudaMemcpyDeviceToHost, stream);
}

// The same for vectors.
template <typename T>
cudaError_t CopyUp(const std::vector<T>& from, void* to, cudaStream_t stream) {
  return CopyUp(from.data(), static_cast<int64_t>(from.size()), to, stream);
}
template <typename T>
cudaError_t CopyDown(const T* from, int64_t count, std::vector<T>* to, cudaStream_t stream) {
  to->resize(static_cast<size_t>(count));
  return CopyDown(from, count, to->data(), stream);
}

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_MEMORY_COPIES_H_
