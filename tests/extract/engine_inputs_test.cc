// Tests of any engine through its interface, with awkward inputs.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/model/frame.h"
#include "gtest/gtest.h"
#include "tests/support/scenes/engine_runs.h"
#include "tests/support/scenes/engine_scenes.h"
#include "tests/support/scenes/engine_under_test.h"

namespace spexd::testing {
namespace {

constexpr WavelengthGrid kGrid = {6006, 0.8, 40};

class EngineInputs : public EngineTest {
 protected:
  BundleResult Extract(const Scene& scene, const WavelengthGrid& grid) {
    return RunOne(engine(), scene, grid);
  }
};

TEST_F(EngineInputs, KeepAHoleWiderThanASpotToItsBins) {
  const Scene scene = MakeScene({.fibres = 4, .rows = 110});
  const BundleResult clean = Extract(scene, {6006, 0.8, 68});
  MaskPixels(40, 30, 8, 18, scene.image.get());
  const BundleResult holed = Extract(scene, {6006, 0.8, 68});
  ExpectSound(holed);
  EXPECT_EQ(NoDataBins(clean), 0);
  EXPECT_GT(NoDataBins(holed), 5);
  EXPECT_LT(NoDataBins(holed), 68);
  // Far from the hole the spectra hardly change.
  for (int j = 0; j < 10; ++j)
    EXPECT_NEAR(holed.flux(3, j), clean.flux(3, j), 1e-3 * std::abs(clean.flux(3, j)));
}

TEST_F(EngineInputs, FlagOnlyTheBinsOffTheCcd) {
  const Scene scene = MakeScene({.fibres = 3, .rows = 60});
  // Makes the CCD end 12 rows earlier at both ends.
  MaskPixels(0, 12, 0, 1000, scene.image.get());
  MaskPixels(48, 12, 0, 1000, scene.image.get());
  const BundleResult result = Extract(scene, {5998.4, 0.8, 49});
  ExpectSound(result);
  EXPECT_GT(NoDataBins(result), 3 * 10);
  EXPECT_LT(NoDataBins(result), 3 * 30);
  for (int j = 20; j < 30; ++j) EXPECT_EQ(result.mask(1, j), 0u);
}

TEST_F(EngineInputs, MayRunOffBothEndsOfTheCcd) {
  const Scene scene = MakeScene({.fibres = 2, .rows = 60});
  const BundleResult result = Extract(scene, {5998.1, 0.8, 50});
  ExpectSound(result);
  EXPECT_LT(NoDataBins(result), 20);
}

TEST_F(EngineInputs, MayHaveADeadFibre) {
  const Scene scene = MakeScene({.fibres = 3, .rows = 70, .spacing = 20});
  const int column = static_cast<int>(scene.psf->traces.x.coeff(1, 0));
  MaskPixels(0, 70, column - 10, 21, scene.image.get());
  const BundleResult result = Extract(scene, kGrid);
  ExpectSound(result);
  for (int j = 0; j < kGrid.count; ++j) {
    EXPECT_TRUE(result.mask(1, j) & kMaskNoData);
    EXPECT_EQ(result.mask(0, j) & kMaskNoData, 0u);
    EXPECT_EQ(result.mask(2, j) & kMaskNoData, 0u);
  }
}

TEST_F(EngineInputs, MayBeMaskedAltogether) {
  const Scene scene = MakeScene({.fibres = 7, .rows = 60, .bundle_size = 5});
  MaskPixels(0, 1000, 0, 1000, scene.image.get());
  const Bundles bundles = RunJob(engine(), scene, {.grid = {6006, 0.8, 30}, .bundle_size = 5});
  EXPECT_EQ(bundles.size(), 2u);
  for (const auto& [number, bundle] : bundles) {
    ExpectSound(bundle);
    EXPECT_EQ(NoDataBins(bundle), bundle.mask.size());
  }
}

TEST_F(EngineInputs, MayHaveOneMaskedBundleOfSeveral) {
  const Scene scene = MakeScene({.fibres = 6, .rows = 60, .bundle_size = 3});
  const int end = static_cast<int>(scene.psf->traces.x.coeff(2, 0)) + 11;
  MaskPixels(0, 1000, 0, end, scene.image.get());
  const Bundles bundles = RunJob(engine(), scene, {.grid = {6006, 0.8, 30}, .bundle_size = 3});
  ASSERT_EQ(bundles.size(), 2u);
  EXPECT_EQ(NoDataBins(bundles.at(0)), bundles.at(0).mask.size());
  EXPECT_EQ(NoDataBins(bundles.at(1)), 0);
}

TEST_F(EngineInputs, MayBeOnCoarseAndFineGrids) {
  const Scene scene = MakeScene({.fibres = 2, .rows = 70});
  for (const auto& [step, count] : {std::pair{0.1, 60}, {0.3, 60}, {0.4, 60}, {0.8, 40}, {2.5, 12}}) {
    SCOPED_TRACE(step);
    const BundleResult result = Extract(scene, {6006, step, count});
    ExpectSound(result);
    EXPECT_EQ(NoDataBins(result), 0);
  }
}

TEST_F(EngineInputs, MayBeOnAGridOfOneBin) {
  const Scene scene = MakeScene({.fibres = 2, .rows = 70});
  const BundleResult result = Extract(scene, {6020, 0.8, 1});
  ExpectSound(result);
  EXPECT_EQ(result.flux.shape(1), 1);
}

// The same bins have the same values wherever the grid ends.
TEST_F(EngineInputs, MayEndAnywhere) {
  const Scene scene = MakeScene({.fibres = 2, .rows = 110});
  const BundleResult all = Extract(scene, {6006, 0.8, 61});
  for (int count : {60, 53, 41}) {
    const BundleResult part = Extract(scene, {6006, 0.8, count});
    for (int j = 0; j < count - 25; ++j) {
      EXPECT_LT(std::abs(part.flux(0, j) - all.flux(0, j)) * std::sqrt(all.ivar(0, j)), 1e-4);
    }
  }
}

TEST_F(EngineInputs, AreMatchedByTheModel) {
  const Scene scene = MakeScene({.fibres = 5, .rows = 90});
  const BundleResult result = Extract(scene, {6004, 0.8, 58});
  ASSERT_EQ(result.model.pixels.shape(0), 90);
  const int first = result.model.first_column;
  double chi2 = 0, pixels = 0;
  for (int row = 20; row < 70; ++row) {
    for (int column = std::max(5, first); column < 42; ++column) {
      const double residual = scene.image->pixels(row, column) - result.model.pixels(row, column - first);
      chi2 += residual * residual * scene.image->ivar(row, column);
      ++pixels;
    }
  }
  EXPECT_NEAR(chi2 / pixels, 0.85, 0.25);  // each bin takes a degree of freedom
}

// Some of these numbers overflow or underflow inside spots.
TEST_F(EngineInputs, MayHaveAPsfOfExtremeNumbers) {
  for (const double value : {1e29, -1e29, 1e-160, 5e-324, 0.0}) {
    for (const int parameter : {0, 1, 2}) {
      SCOPED_TRACE(::testing::Message() << value << " " << parameter);
      const Scene scene = MakeScene({.fibres = 3, .rows = 70});
      GaussHermiteCore& core = GaussHermite(*scene.psf).core();
      LegendreTable* const tables[] = {&core.sigma_x, &core.sigma_y, &core.terms.front().amplitude};
      for (double& coefficient : tables[parameter]->coeff.Row(1)) coefficient = value;
      ExpectSound(Extract(scene, kGrid));
    }
  }
}

class AwkwardScene : public EngineTest, public ::testing::WithParamInterface<EngineScene> {};

TEST_P(AwkwardScene, GivesASoundResult) {
  const EngineScene& awkward = GetParam();
  const Scene scene = awkward.Make();
  for (const auto& [number, bundle] : RunJob(engine(), scene, awkward.run())) ExpectSound(bundle);
}

INSTANTIATE_TEST_SUITE_P(Scenes, AwkwardScene, ::testing::ValuesIn(AllScenes()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace spexd::testing
