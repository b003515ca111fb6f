// The CPU engine against plain dense algebra in extended precision, on scenes small enough for it.
#include <cmath>
#include <memory>

#include "core/extract/cpu_engine.h"
#include "core/model/frame.h"
#include "core/plan/grid_plan.h"
#include "gtest/gtest.h"
#include "tests/support/dense_oracle.h"
#include "tests/support/scene.h"

namespace spexd {
namespace {

using testing::ExtractDensely;
using testing::MakeSceneImage;
using testing::MakeScenePsf;
using testing::MaskPixels;
using testing::OracleResult;
using testing::SceneOptions;

struct Limits {
  double pull = 1e-8;
  double sqrt_ivar = 1e-9;
  double resolution = 1e-9;
};

void ExpectEqualsDense(const std::shared_ptr<Psf>& psf, const std::shared_ptr<Image>& image,
                       const WavelengthGrid& grid, const Limits& limits, double regularize = 0) {
  const std::unique_ptr<Engine> engine = MakeCpuEngine({.threads = 1});
  const auto prepared = engine->Prepare(psf, grid, psf->fibres);
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  ExtractRequest request;
  request.prepared = *prepared;
  request.image = image;
  request.fibres = {0, psf->fibres};
  request.regularize = regularize;
  BundleResult result;
  const auto times = engine->Extract(request, [&](BundleResult bundle) {
    result = std::move(bundle);
    return absl::OkStatus();
  });
  ASSERT_TRUE(times.ok()) << times.status();
  const OracleResult expected =
      ExtractDensely(*psf, *image, grid, PadBins(*psf, grid), regularize, IsFineGrid(grid));
  double pull = 0, sqrt_ivar = 0, resolution = 0;
  int compared = 0;
  for (int i = 0; i < psf->fibres; ++i) {
    for (int j = 0; j < grid.count; ++j) {
      if (result.mask(i, j) & kMaskNoData) {
        EXPECT_EQ(result.flux(i, j), 0);
        EXPECT_EQ(result.ivar(i, j), 0);
        continue;
      }
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
  EXPECT_GT(compared, psf->fibres * grid.count / 4);
  EXPECT_LT(pull, limits.pull);
  EXPECT_LT(sqrt_ivar, limits.sqrt_ivar);
  EXPECT_LT(resolution, limits.resolution);
  std::printf("  pull %.2g sigma, sqrt(ivar) %.2g, resolution %.2g in %d bins\n", pull, sqrt_ivar, resolution,
              compared);
}

TEST(DenseParity, HoldsOnAGoodBundle) {
  const SceneOptions scene = {.fibres = 5, .rows = 90};
  const auto psf = MakeScenePsf(scene);
  ExpectEqualsDense(psf, MakeSceneImage(*psf, scene), {6006, 0.8, 50}, {});
}

TEST(DenseParity, HoldsWithATail) {
  const SceneOptions scene = {.fibres = 3, .rows = 70, .tail = true};
  const auto psf = MakeScenePsf(scene);
  ExpectEqualsDense(psf, MakeSceneImage(*psf, scene), {6006, 0.8, 36}, {});
}

TEST(DenseParity, HoldsBesideAHoleWiderThanASpot) {
  const SceneOptions scene = {.fibres = 4, .rows = 110};
  const auto psf = MakeScenePsf(scene);
  const auto image = MakeSceneImage(*psf, scene);
  MaskPixels(40, 30, 8, 18, image.get());
  ExpectEqualsDense(psf, image, {6006, 0.8, 68}, {});
}

TEST(DenseParity, HoldsBesideCosmicRaysAndADeadColumn) {
  const SceneOptions scene = {.fibres = 4, .rows = 80, .seed = 5};
  const auto psf = MakeScenePsf(scene);
  const auto image = MakeSceneImage(*psf, scene);
  MaskPixels(30, 3, 9, 2, image.get());
  MaskPixels(50, 2, 16, 4, image.get());
  MaskPixels(0, 80, 25, 1, image.get());
  ExpectEqualsDense(psf, image, {6006, 0.8, 44}, {});
}

TEST(DenseParity, HoldsOffBothEndsOfTheCcd) {
  const SceneOptions scene = {.fibres = 2, .rows = 60};
  const auto psf = MakeScenePsf(scene);
  ExpectEqualsDense(psf, MakeSceneImage(*psf, scene), {5998.4, 0.8, 49}, {});
}

TEST(DenseParity, HoldsWithRegularisation) {
  const SceneOptions scene = {.fibres = 2, .rows = 60};
  const auto psf = MakeScenePsf(scene);
  ExpectEqualsDense(psf, MakeSceneImage(*psf, scene), {6006, 0.8, 30}, {}, 0.02);
}

TEST(DenseParity, HoldsForOneFibre) {
  const SceneOptions scene = {.fibres = 1, .rows = 80};
  const auto psf = MakeScenePsf(scene);
  ExpectEqualsDense(psf, MakeSceneImage(*psf, scene), {6006, 0.8, 44}, {});
}

TEST(DenseParity, HoldsOnCoarseBins) {
  const SceneOptions scene = {.fibres = 3, .rows = 160};
  const auto psf = MakeScenePsf(scene);
  ExpectEqualsDense(psf, MakeSceneImage(*psf, scene), {6010, 2.5, 30}, {});
}

// Finer grids are ill-conditioned. Dense algebra in float64 itself (the oracle with Real = double) differs
// from extended precision here by 2e-5 sigma, 1e-6 in sqrt(ivar) and 3e-7 in resolution at 0.4 Angstrom,
// 2e-4, 5e-6 and 6e-7 at 0.3; taking P from C costs up to 17 times that. The limits below were set from what
// was measured, 1.3 to 10 times above it: they guard against getting worse.
TEST(DenseParity, HoldsToConditioningAtFourTenths) {
  const SceneOptions scene = {.fibres = 2, .rows = 60};
  const auto psf = MakeScenePsf(scene);
  ExpectEqualsDense(psf, MakeSceneImage(*psf, scene), {6008, 0.4, 50},
                    {.pull = 1e-4, .sqrt_ivar = 3e-5, .resolution = 1e-5});
}

TEST(DenseParity, HoldsToConditioningOnFineGrids) {
  const SceneOptions scene = {.fibres = 2, .rows = 44};
  const auto psf = MakeScenePsf(scene);
  const auto image = MakeSceneImage(*psf, scene);
  ExpectEqualsDense(psf, image, {6008, 0.3, 36}, {.pull = 1e-3, .sqrt_ivar = 1e-4, .resolution = 1e-4});
  ExpectEqualsDense(psf, image, {6010, 0.1, 20}, {.pull = 1e-3, .sqrt_ivar = 1e-4, .resolution = 1e-4});
}

}  // namespace
}  // namespace spexd
