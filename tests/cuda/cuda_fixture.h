// Tests that need a CUDA device: they skip, visibly, where there is none, or fail where SPEXD_REQUIRE_GPU=1.
#ifndef SPEXD_TESTS_CUDA_CUDA_FIXTURE_H_
#define SPEXD_TESTS_CUDA_CUDA_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/extract/engine.h"
#include "cuda/loader/cuda_options.h"

namespace spexd::testing {

// Device memory that is enough for any scene of tests/support.
inline constexpr int64_t kSceneMemory = int64_t{2} << 30;

// Chunks of this many bins are the whole grid (CudaEngineOptions::chunk_bins).
inline constexpr int kUnchunked = 1 << 20;

// Whether a machine without a device fails the tests (environment variable SPEXD_REQUIRE_GPU).
bool GpuIsRequired();

// The module's answer, asked once: OK, or why there is no engine.
absl::Status CudaEngineStatus();

class CudaTest : public ::testing::Test {
 protected:
  void SetUp() override;

  // An engine on the first device unless others are named.
  static absl::StatusOr<std::unique_ptr<Engine>> TryLoad(CudaEngineOptions options);
  // The same, which must come up; null after a failure.
  static std::unique_ptr<Engine> Load(const CudaEngineOptions& options);
  static std::unique_ptr<Engine> Load() { return Load({.device_memory_bytes = kSceneMemory}); }
  // An engine with all of the device's free memory.
  static std::unique_ptr<Engine> LoadWhole() { return Load(CudaEngineOptions()); }
  // An engine on all devices; must come up.
  static std::unique_ptr<Engine> LoadOnAll(const CudaEngineOptions& options);
};

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_CUDA_CUDA_FIXTURE_H_
