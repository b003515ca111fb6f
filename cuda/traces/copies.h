// Copies of arrays between host and device.
#ifndef SPEXD_CUDA_TRACES_COPIES_H_
#define SPEXD_CUDA_TRACES_COPIES_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace spexd::cuda {

// Enqueue copies of `count` elements to the device, and back.
template <typename T>
cudaError_t Up(const T* from, int64_t count, T* to, cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, static_cast<size_t>(count) * sizeof(T), cudaMemcpyHostToDevice, stream);
}
template <typename T>
cudaError_t Down(const T* from, int64_t count, T* to, cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, static_cast<size_t>(count) * sizeof(T), cudaMemcpyDeviceToHost, stream);
}

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_TRACES_COPIES_H_
