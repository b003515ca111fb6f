// CUDA errors as absl::Status that names the device and the operation.
#ifndef SPEXD_CUDA_MEMORY_CUDA_STATUS_H_
#define SPEXD_CUDA_MEMORY_CUDA_STATUS_H_

#include <cuda_runtime_api.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace spexd::cuda {

struct DeviceName {
  int index = 0;  // as CUDA counts
  std::string name;
};

// "cuda device 0 (NVIDIA H200)"
std::string Text(const DeviceName& device);

// Whether an error leaves the context unusable: all later calls on the device fail, until a new process.
bool IsSticky(cudaError_t error);

// "cuda device 0 (NVIDIA H200): job 3, stage solve: an illegal memory access was encountered". Unavailable
// for sticky errors (the job may be tried again), ResourceExhausted for memory, else Internal; OK for
// cudaSuccess.
absl::Status ToStatus(cudaError_t error, const DeviceName& device, absl::string_view doing);

// The error for a new job on a device that failed before.
absl::Status MayBeTriedAgain(const absl::Status& failure);

// The error that explains to an operator why there is no CUDA engine. REQUIRES: error != cudaSuccess.
// FailedPrecondition.
// `driver_version`: as cudaDriverGetVersion has it, 0 for none.
absl::Status NoCuda(cudaError_t error, int driver_version);

}  // namespace spexd::cuda

// SPEXD_CUDA_RETURN_IF_ERROR(cudaEventRecord(...), device, "stage solve");
#define SPEXD_CUDA_RETURN_IF_ERROR(call, device, doing)                         \
  do {                                                                          \
    if (const cudaError_t spexd_error_ = (call); spexd_error_ != cudaSuccess) { \
      return ::spexd::cuda::ToStatus(spexd_error_, device, doing);              \
    }                                                                           \
  } while (false)

#endif  // SPEXD_CUDA_MEMORY_CUDA_STATUS_H_
