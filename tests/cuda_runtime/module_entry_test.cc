// The module's exports, with the real CUDA runtime, on a machine without a driver.
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

#include "core/base/version.h"
#include "cuda/analysis/analyser/cuda_analyser.h"
#include "cuda/loader/build_identity.h"
#include "cuda/loader/cuda_module.h"
#include "tests/support/matchers.h"

namespace spexd {
namespace cuda {

// Replaces the analyser, whose kernels are not linked into this program.
absl::StatusOr<std::unique_ptr<Analyser>> MakeCudaAnalyser(const CudaAnalyserOptions&) {
  throw std::runtime_error("thrown by the analyser");
}

}  // namespace cuda

namespace {

TEST(CudaModule, TellsItsVersionAndBuild) {
  EXPECT_STREQ(SpexdCudaModule.version, kVersion);
  EXPECT_STREQ(SpexdCudaModule.build, kBuildIdentity);
}

TEST(CudaModule, SaysWhyThereIsNoEngineWithoutADriver) {
  int driver = 0;
  cudaDriverGetVersion(&driver);
  if (driver != 0) GTEST_SKIP() << "this machine has an NVIDIA driver";
  EXPECT_THAT(SpexdCudaModule.make_engine({}).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no NVIDIA driver is installed")));
}

TEST(CudaModule, LetsNoExceptionThrough) {
  EXPECT_THAT(SpexdCudaModule.make_analyser({}).status(),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("thrown by the analyser")));
}

}  // namespace
}  // namespace spexd
