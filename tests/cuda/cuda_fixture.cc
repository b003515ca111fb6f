#include "tests/cuda/cuda_fixture.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cuda/loader/load_cuda_engine.h"

namespace spexd::testing {

bool GpuIsRequired() {
  const char* required = std::getenv("SPEXD_REQUIRE_GPU");
  return required != nullptr && *required != '\0' && std::string(required) != "0";
}

absl::Status CudaEngineStatus() {
  static const absl::Status status = [] {
    const absl::Status loaded =
        LoadCudaEngine({.devices = {0}, .device_memory_bytes = kSceneMemory, .jobs_per_device = 1}).status();
    if (loaded.ok()) return loaded;
    return absl::Status(loaded.code(), absl::StrCat(kNoCudaEngine, ": ", loaded.message()));
  }();
  return status;
}

void CudaTest::SetUp() {
  const absl::Status status = CudaEngineStatus();
  if (status.ok()) return;
  if (GpuIsRequired()) FAIL() << "SPEXD_REQUIRE_GPU is set, but there is " << status.message();
  GTEST_SKIP() << status.message();
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
