// Compares any engine with plain dense algebra in extended precision, on small scenes.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/extract/formulas.h"
#include "core/model/frame.h"
#include "core/plan/grid_plan.h"
#include "gtest/gtest.h"
#include "tests/support/scenes/dense_oracle.h"
#include "tests/support/scenes/engine_runs.h"
#include "tests/support/scenes/engine_scenes.h"
#include "tests/support/scenes/engine_under_test.h"

namespace spexd::testing {
namespace {

class DenseParity : public EngineTest, public ::testing::WithParamInterface<EngineScene> {};

TEST_P(DenseParity, HoldsWith) {
  const EngineScene& dense = GetParam();
  const Scene scene = dense.Make();
  const WavelengthGrid& grid = dense.grid;
  const Bundles bundles = RunJob(engine(), scene, dense.run());
  ASSERT_EQ(bundles.size(), 1u);
  const BundleResult& result = bundles.at(0);
  const OracleResult expected = ExtractDensely(*scene.psf, *scene.image, grid, PadBins(*scene.psf, grid),
                                               dense.regularize, IsFineGrid(grid));
  double pull = 0, sqrt_ivar = 0, resolution = 0;
  int compared = 0;
  for (int i = 0; i < scene.psf->fibres; ++i) {
    for (int j = 0; j < grid.count; ++j) {
      EXPECT_EQ((result.mask(i, j) & kMaskNoData) == 0, HasData(expected.coverage(i, j))) << i << " " << j;
      if (result.mask(i, j) & kMaskNoData) {
        EXPECT_EQ(result.flux(i, j), 0);
        EXPECT_EQ(result.ivar(i, j), 0);
        continue;
      }
      ASSERT_TRUE(std::isfinite(result.flux(i, j)) && result.ivar(i, j) > 0) << i << " " << j;
      ++compared;
      pull =
          std::max(pull, std::abs(result.flux(i, j) - expected.flux(i, j)) * std::sqrt(expected.ivar(i, j)));
      sqrt_ivar = std::max(sqrt_ivar, std::abs(std::sqrt(result.ivar(i, j) / expected.ivar(i, j)) - 1));
      for (int d = 0; d < kResolutionDiagonals; ++d) {
        resolution =
            std::max(resolution, std::abs(result.resolution(i, d, j) - expected.resolution(i, d, j)));
      }
    }
  }
  EXPECT_GT(compared, scene.psf->fibres * grid.count / 4);
  EXPECT_LT(pull, dense.limits.pull);
  EXPECT_LT(sqrt_ivar, dense.limits.sqrt_ivar);
  EXPECT_LT(resolution, dense.limits.resolution);
  std::printf("  pull %.2g sigma, sqrt(ivar) %.2g, resolution %.2g in %d bins\n", pull, sqrt_ivar, resolution,
              compared);
}

INSTANTIATE_TEST_SUITE_P(Scenes, DenseParity, ::testing::ValuesIn(DenseScenes()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace spexd::testing
