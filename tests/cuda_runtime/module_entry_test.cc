// What the module exports, with the real CUDA runtime, on a machine without a driver.
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

#include "core/base/version.h"
#include "cuda/analysis/analyser/cuda_analyser.h"
#include "cuda/loader/build_identity.h"
#include "cuda/loader/cuda_module.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spexd {
namespace cuda {

// In place of the analyser, whose kernels this program does without.
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
  const absl::StatusOr<std::unique_ptr<Engine>> engine = SpexdCudaModule.make_engine({});
  EXPECT_EQ(engine.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(engine.status().message()), ::testing::HasSubstr("no NVIDIA driver is installed"));
}

TEST(CudaModule, LetsNoExceptionThrough) {
  const absl::Status status = SpexdCudaModule.make_analyser({}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("thrown by the analyser"));
}

}  // namespace
}  // namespace spexd
