// Makes a device current for a while.
#ifndef SPEXD_CUDA_MEMORY_ON_DEVICE_H_
#define SPEXD_CUDA_MEMORY_ON_DEVICE_H_

#include <cuda_runtime_api.h>

namespace spexd::cuda {

// Makes a device current for its lifetime, then restores the caller's device.
class OnDevice {
 public:
  explicit OnDevice(int device) {
    error_ = cudaGetDevice(&before_);
    if (error_ == cudaSuccess) error_ = cudaSetDevice(device);
  }
  ~OnDevice() {
    if (cudaSetDevice(before_) != cudaSuccess) cudaGetLastError();
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  cudaError_t error() const { return error_; }

 private:
  int before_ = 0;
  cudaError_t error_;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_MEMORY_ON_DEVICE_H_
