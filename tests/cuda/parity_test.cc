// Compares CUDA with the CPU engine, in float64: one definition of the result, two engines.
#include <memory>

#include "core/extract/cpu/cpu_engine.h"
#include "gtest/gtest.h"
#include "tests/cuda/cuda_fixture.h"
#include "tests/parity/golden.h"
#include "tests/support/scenes/engine_runs.h"
#include "tests/support/scenes/goldens.h"
#include "tests/support/scenes/simulated_scene.h"

namespace spexd::testing {
namespace {

constexpr ResultLimits kLimits = {.pull = 1e-6, .sqrt_ivar = 1e-8, .resolution = 1e-8};

class CudaParity : public CudaTest {
 protected:
  // The limits hold for bins with a MASK of 0; differences at the edges of holes are only printed.
  void ExpectParity(const Scene& scene, const RunOptions& options, const ResultLimits& limits = kLimits) {
    const auto cuda = LoadWhole();
    ASSERT_NE(cuda, nullptr);
    const Bundles result = RunJob(cuda.get(), scene, options);
    const Bundles expected = RunJob(MakeCpuEngine({}).get(), scene, options);
    const ResultDifference difference = Compare(result, expected, *scene.image, Compared::kUnmasked);
    Print("MASK 0", difference);
    Print("with data", Compare(result, expected, *scene.image));
    ExpectWithin(difference, limits);
    ExpectQualityWithin(difference);
    EXPECT_GT(difference.bins, int64_t{9} * scene.psf->fibres * options.grid.count / 10);
  }
};

TEST_F(CudaParity, HoldsForABundleOfTheWholeGrid) {
  ExpectParity(SimulateScene({.fibres = 25}), {.grid = kWholeGrid, .bundle_size = 25, .want_model = true});
}

// No block's shared memory can hold a fibre's fluxes, and bands are of all kinds.
TEST_F(CudaParity, HoldsForAFineGrid) {
  ExpectParity(SimulateScene({.fibres = 10, .seed = 3}), {.grid = {5760, 0.4, 4500}, .bundle_size = 5},
               {.pull = 1e-4, .sqrt_ivar = 1e-8, .resolution = 1e-8});
}

TEST_F(CudaParity, HoldsForAFrameOfNormalProportions) {
  ExpectParity(SimulateScene({.fibres = 500, .seed = 2}),
               {.grid = kWholeGrid, .bundle_size = 25, .want_model = true});
}

TEST_F(CudaParity, HoldsForTheRealPsfAndFrame) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const Scene scene = ReadGoldenScene(folder);
  ExpectParity(scene, {.grid = ParseWavelengthGrid(kGoldenGrid).value(),
                       .bundle_size = kGoldenFibres,
                       .psferr = scene.psf->psferr,
                       .want_model = true});
}

}  // namespace
}  // namespace spexd::testing
