// Runs tests for any engine on the CUDA engine.
#include "absl/status/status.h"
#include "core/base/status_macros.h"
#include "cuda/loader/load_cuda_module.h"
#include "tests/cuda/cuda_fixture.h"
#include "tests/support/scenes/engine_under_test.h"

namespace spexd::testing {

absl::StatusOr<std::unique_ptr<Engine>> MakeEngineUnderTest(int at_once) {
  SPEXD_RETURN_IF_ERROR(CudaEngineStatus());
  // The memory suffices for a bundle or two of a whole spectrograph.
  return LoadCudaEngine(
      {.devices = {0}, .device_memory_bytes = 4 * kSceneMemory, .jobs_per_device = at_once});
}

bool EngineUnderTestIsRequired() { return GpuIsRequired(); }

std::vector<std::string> EngineUnderTestArguments() { return {"--device", "cuda", "--devices", "0"}; }

}  // namespace spexd::testing
