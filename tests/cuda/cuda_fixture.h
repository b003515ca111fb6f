// Tests that need a CUDA device. Without one they are visibly skipped, or fail if SPEXD_REQUIRE_GPU=1.
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

// Device memory that suffices for any scene of tests/support.
inline constexpr int64_t kSceneMemory = int64_t{2} << 30;

// With chunks of this many bins, the whole grid is one chunk (CudaEngineOptions::chunk_bins).
inline constexpr int kUnchunked = 1 << 20;

// Returns whether the tests fail on a machine without a device (environment variable SPEXD_REQUIRE_GPU).
bool GpuIsRequired();

// Returns the module's answer, which is asked for once: OK, or why there is no engine.
absl::Status CudaEngineStatus();

class CudaTest : public ::testing::Test {
 protected:
  void SetUp() override;

  // Returns an engine, on the first device unless others are named.
  static absl::StatusOr<std::unique_ptr<Engine>> TryLoad(CudaEngineOptions options);
  // Returns the engine, which must start; null after a failure.
  static std::unique_ptr<Engine> Load(const CudaEngineOptions& options);
  static std::unique_ptr<Engine> Load() { return Load({.device_memory_bytes = kSceneMemory}); }
  // Returns an engine with all of the device's free memory.
  static std::unique_ptr<Engine> LoadWhole() { return Load(CudaEngineOptions()); }
  // Returns an engine on all devices, which must start.
  static std::unique_ptr<Engine> LoadOnAll(const CudaEngineOptions& options);
};

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_CUDA_CUDA_FIXTURE_H_
