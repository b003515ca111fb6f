// Replaces the loader of cuda/loader: the analyser that tests load is the emulated one, on a fake device.
#include <mutex>

#include "cuda/analysis/analyser/cuda_analyser.h"
#include "cuda/loader/load_cuda_module.h"
#include "tests/cuda_runtime/fake_cuda.h"

namespace spexd {

absl::StatusOr<std::unique_ptr<Analyser>> LoadCudaAnalyser(const CudaAnalyserOptions& options) {
  static std::once_flag once;
  std::call_once(once, [] {
    testing::FakeCuda::Device device;
    device.name = "Emulated GPU";
    device.free_bytes = size_t{4} << 30;
    testing::FakeCuda::Get().Reset({device});
  });
  return cuda::MakeCudaAnalyser(options);
}

}  // namespace spexd
