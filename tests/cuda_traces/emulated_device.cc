#include "tests/cuda_runtime/fake_cuda.h"
#include "tests/cuda_traces/trace_device.h"

namespace spexd::testing {

bool FindTraceDevice() {
  FakeCuda::Device device;
  device.free_bytes = size_t{4} << 30;
  FakeCuda::Get().Reset({device});
  return true;
}

}  // namespace spexd::testing
