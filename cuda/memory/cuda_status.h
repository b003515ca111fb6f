// CUDA errors as absl::Status that names the device and the operation.
#ifndef SPEXD_CUDA_MEMORY_CUDA_STATUS_H_
#define SPEXD_CUDA_MEMORY_CUDA_STATUS_H_

#include <cuda_runtime_api.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace spexd::cuda {

struct DeviceName {
  int index = 0;  // CUDA index
  std::string name;
};

// Returns "cuda device 0 (NVIDIA H200)".
std::string Text(const DeviceName& device);

// Returns whether an error makes the context unusable: all later calls on the device fail until a new process
// starts.
bool IsSticky(cudaError_t error);

// Returns "cuda device 0 (NVIDIA H200): job 3, stage solve: an illegal memory access was encountered". The
// code is Unavailable for sticky errors (the job may be tried again), ResourceExhausted for lack of memory,
// otherwise Internal; OK for cudaSuccess.
absl::Status ToStatus(cudaError_t error, const DeviceName& device, absl::string_view doing);

// Returns the error for a new job on a device that failed before.
absl::Status MayBeTriedAgain(const absl::Status& failure);

// Returns FailedPrecondition that explains to an operator why there is no CUDA engine. `driver_version`: as
// from cudaDriverGetVersion, 0 if there is no driver. REQUIRES: error != cudaSuccess.
absl::Status NoCuda(cudaError_t error, int driver_version);

}  // namespace spexd::cuda

// Example: SPEXD_CUDA_RETURN_IF_ERROR(cudaEventRecord(...), device, "stage solve");
#define SPEXD_CUDA_RETURN_IF_ERROR(call, device, doing)                         \
  do {                                                                          \
    if (const cudaError_t spexd_error_ = (call); spexd_error_ != cudaSuccess) { \
      return ::spexd::cuda::ToStatus(spexd_error_, device, doing);              \
    }                                                                           \
  } while (false)

#endif  // SPEXD_CUDA_MEMORY_CUDA_STATUS_H_
