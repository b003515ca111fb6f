// Replaces the loader of cuda/loader: the engine that tests load is the emulated one, on two fake devices.
#include <algorithm>
#include <mutex>

#include "cuda/loader/load_cuda_module.h"
#include "cuda/runtime/cuda_engine.h"
#include "tests/cuda_runtime/fake_cuda.h"

namespace spexd {

absl::StatusOr<std::unique_ptr<Engine>> LoadCudaEngine(const CudaEngineOptions& options) {
  static std::once_flag once;
  std::call_once(once, [] {
    testing::FakeCuda::Device device;
    device.name = "Emulated GPU";
    device.free_bytes = size_t{64} << 30;
    testing::FakeCuda::Get().Reset({device, device});
  });
  // Limits the memory, which is the host's; the scenes that run here need little of it.
  CudaEngineOptions modest = options;
  constexpr int64_t kMax = int64_t{1} << 30;
  modest.device_memory_bytes =
      options.device_memory_bytes == 0 ? kMax : std::min(options.device_memory_bytes, kMax);
  return cuda::MakeCudaEngine(modest);
}

}  // namespace spexd
