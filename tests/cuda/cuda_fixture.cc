#include "tests/cuda/cuda_fixture.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "cuda/loader/load_cuda_module.h"
#include "tests/support/scenes/engine_under_test.h"

namespace spexd::testing {
namespace {

// Loads all kernels before the first job. By default a kernel is loaded at its first launch, which waits for
// the device, so that kernels which may run at the same time do so only in later jobs.
[[maybe_unused]] const int eager = setenv("CUDA_MODULE_LOADING", "EAGER", /*overwrite=*/0);

}  // namespace

bool GpuIsRequired() {
  const char* required = std::getenv("SPEXD_REQUIRE_GPU");
  return required != nullptr && *required != '\0' && std::string(required) != "0";
}

absl::Status CudaEngineStatus() {
  static const absl::Status status = [] {
    const CudaEngineOptions options = {
        .devices = {0}, .device_memory_bytes = kSceneMemory, .jobs_per_device = 1};
    return LoadCudaEngine(options).status();
  }();
  return status;
}

void CudaTest::SetUp() {
  const absl::Status status = CudaEngineStatus();
  if (status.ok()) return;
  if (GpuIsRequired()) FAIL() << "SPEXD_REQUIRE_GPU is set, but: " << status;
  GTEST_SKIP() << kNoEngine << status.message();
}

absl::StatusOr<std::unique_ptr<Engine>> CudaTest::TryLoad(CudaEngineOptions options) {
  if (options.devices.empty()) options.devices = {0};
  return LoadCudaEngine(options);
}

std::unique_ptr<Engine> CudaTest::Load(const CudaEngineOptions& options) {
  auto engine = TryLoad(options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  return engine.ok() ? *std::move(engine) : nullptr;
}

std::unique_ptr<Engine> CudaTest::LoadOnAll(const CudaEngineOptions& options) {
  auto engine = LoadCudaEngine(options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  return engine.ok() ? *std::move(engine) : nullptr;
}

}  // namespace spexd::testing
