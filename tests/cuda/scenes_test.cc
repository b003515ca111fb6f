// Compares CUDA on every difficult scene with the CPU engine in float64, and chunks of wavelength with all
// wavelengths at once.
#include <memory>

#include "absl/strings/str_cat.h"
#include "core/extract/cpu/cpu_engine.h"
#include "gtest/gtest.h"
#include "tests/cuda/cuda_fixture.h"
#include "tests/support/scenes/engine_runs.h"
#include "tests/support/scenes/engine_scenes.h"

namespace spexd::testing {
namespace {

class CudaWith : public CudaTest, public ::testing::WithParamInterface<EngineScene> {
 protected:
  Bundles Run(const CudaEngineOptions& options) const {
    const auto engine = Load(options);
    return engine == nullptr ? Bundles() : RunJob(engine.get(), scene_, GetParam().run());
  }
  const Scene scene_ = GetParam().Make();
};

TEST_P(CudaWith, IsWithinRoundingOfTheCpuEngine) {
  const Bundles expected = RunJob(MakeCpuEngine({.threads = 1}).get(), scene_, GetParam().run());
  const ResultDifference difference =
      Compare(Run({.device_memory_bytes = kSceneMemory}), expected, *scene_.image);
  Print("with data", difference);
  if (GetParam().ill_conditioned()) {
    // Each of the two may differ by this much from extended precision.
    const ResultLimits& limits = GetParam().limits;
    ExpectWithin(difference, {2 * limits.pull, 2 * limits.sqrt_ivar, 2 * limits.resolution});
  } else {
    ExpectWithin(difference, {.pull = 1e-6, .sqrt_ivar = 1e-8, .resolution = 1e-8});
    ExpectQualityWithin(difference);
  }
}

TEST_P(CudaWith, LeavesNoSeamsBetweenChunks) {
  const auto in_chunks_of = [&](int bins) {
    return Run({.device_memory_bytes = 4 * kSceneMemory, .chunk_bins = bins});
  };
  const Bundles whole = in_chunks_of(kUnchunked);
  for (int bins : {16, 60}) {
    const ResultDifference difference = Compare(in_chunks_of(bins), whole, *scene_.image);
    Print(absl::StrCat("chunks of ", bins, " bins").c_str(), difference);
    ExpectWithin(difference, GetParam().ill_conditioned()
                                 ? GetParam().limits
                                 : ResultLimits{.pull = 1e-8, .sqrt_ivar = 1e-8, .resolution = 1e-8});
  }
}

INSTANTIATE_TEST_SUITE_P(Scenes, CudaWith, ::testing::ValuesIn(AllScenes()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace spexd::testing
