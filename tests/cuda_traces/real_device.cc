#include <cuda_runtime_api.h>

#include "tests/cuda_traces/trace_device.h"

namespace spexd::testing {

bool FindTraceDevice() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0 && cudaSetDevice(0) == cudaSuccess)
    return true;
  cudaGetLastError();
  return false;
}

}  // namespace spexd::testing
