// Compares wavelengths that are solved in chunks with halos with all of them solved at once.
#include <memory>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/cuda/cuda_fixture.h"
#include "tests/parity/golden.h"
#include "tests/support/scenes/engine_runs.h"
#include "tests/support/scenes/goldens.h"
#include "tests/support/scenes/simulated_scene.h"

namespace spexd::testing {
namespace {

constexpr ResultLimits kChunkLimits = {.pull = 1e-8, .sqrt_ivar = 1e-8, .resolution = 1e-8};

class CudaChunks : public CudaTest {
 protected:
  static Bundles InChunksOf(int bins, const Scene& scene, const RunOptions& options) {
    const auto engine = Load({.device_memory_bytes = 4 * kSceneMemory, .chunk_bins = bins});
    return engine == nullptr ? Bundles() : RunJob(engine.get(), scene, options);
  }
  void ExpectNoSeams(const Scene& scene, const RunOptions& options) {
    const Bundles whole = InChunksOf(kUnchunked, scene, options);
    for (int bins : {0, 50, 128, 300}) {
      const ResultDifference difference = Compare(InChunksOf(bins, scene, options), whole, *scene.image);
      Print(absl::StrCat("chunks of ", bins, " bins").c_str(), difference);
      ExpectWithin(difference, kChunkLimits);
    }
  }
};

// A frame with a saturated hole and a dead column.
TEST_F(CudaChunks, LeaveNoSeamsInABundleOfTheWholeGrid) {
  ExpectNoSeams(SimulateScene({.fibres = 25, .dead_columns = 2}),
                {.grid = kWholeGrid, .bundle_size = 25, .want_model = true});
}

TEST_F(CudaChunks, LeaveNoSeamsWithTheRealPsf) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const Scene scene = ReadGoldenScene(folder);
  // The bundle that has the hole.
  ExpectNoSeams(scene, {.grid = ParseWavelengthGrid(kGoldenGrid).value(),
                        .bundle_size = kGoldenFibres,
                        .fibres = {10 * kGoldenFibres, kGoldenFibres},
                        .psferr = scene.psf->psferr});
}

}  // namespace
}  // namespace spexd::testing
