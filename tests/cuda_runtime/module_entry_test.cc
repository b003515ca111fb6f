// The module's entry with the real CUDA runtime, on a machine without a driver.
#include <cuda_runtime_api.h>

#include <string>

#include "core/base/version.h"
#include "cuda/loader/build_identity.h"
#include "cuda/loader/cuda_engine_options.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

extern "C" {
extern const char* const SpexdCudaModuleVersion;
extern const char* const SpexdCudaModuleBuild;
spexd::MakeCudaEngineFunction SpexdMakeCudaEngine;
}

namespace spexd {
namespace {

TEST(CudaModule, TellsItsVersionAndBuild) {
  EXPECT_STREQ(SpexdCudaModuleVersion, kVersion);
  EXPECT_STREQ(SpexdCudaModuleBuild, kBuildIdentity);
}

TEST(CudaModule, SaysWhyThereIsNoEngineWithoutADriver) {
  int driver = 0;
  cudaDriverGetVersion(&driver);
  if (driver != 0) GTEST_SKIP() << "this machine has an NVIDIA driver";
  absl::StatusOr<std::unique_ptr<Engine>> engine = absl::UnknownError("not called");
  SpexdMakeCudaEngine({}, &engine);
  EXPECT_EQ(engine.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(engine.status().message()), ::testing::HasSubstr("no NVIDIA driver is installed"));
}

}  // namespace
}  // namespace spexd
