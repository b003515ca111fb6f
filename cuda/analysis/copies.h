// Copies of vectors to and from a device, asynchronous on a stream.
#ifndef SPEXD_CUDA_ANALYSIS_COPIES_H_
#define SPEXD_CUDA_ANALYSIS_COPIES_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace spexd::cuda {

template <typename T>
cudaError_t CopyUp(const std::vector<T>& from, void* to, cudaStream_t stream) {
  return cudaMemcpyAsync(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice, stream);
}
template <typename T>
cudaError_t CopyDown(const T* from, int64_t count, std::vector<T>* to, cudaStream_t stream) {
  to->resize(static_cast<size_t>(count));
  return cudaMemcpyAsync(to->data(), from, to->size() * sizeof(T), cudaMemcpyDeviceToHost, stream);
}

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_COPIES_H_
