// Compares any engine on parts of real PSFs with dense algebra in extended precision.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <ostream>
#include <string>

#include "core/fits/readers.h"
#include "core/plan/grid_plan.h"
#include "gtest/gtest.h"
#include "tests/parity/golden.h"
#include "tests/support/scenes/dense_oracle.h"
#include "tests/support/scenes/engine_scenes.h"
#include "tests/support/scenes/engine_under_test.h"
#include "tests/support/scenes/goldens.h"

namespace spexd::testing {
namespace {

struct RealPsfCase {
  std::string name;
  std::string file;
  FibreRange fibres;
  WavelengthGrid grid;
  bool hole = false;
  ResultLimits limits;
};

std::ostream& operator<<(std::ostream& out, const RealPsfCase& test) { return out << test.name; }

LegendreTable SomeFibres(const LegendreTable& table, const FibreRange& fibres, double less) {
  if (table.empty()) return table;
  LegendreTable cut = table;
  cut.coeff.Assign({fibres.count, table.coeff.shape(1)});
  for (int i = 0; i < fibres.count; ++i) {
    for (int k = 0; k < table.coeff.shape(1); ++k) cut.coeff(i, k) = table.coeff(fibres.first + i, k);
    cut.coeff(i, 0) -= less;
  }
  return cut;
}

// Returns a few fibres of a PSF on the part of the CCD that [wave_min, wave_max] needs.
std::shared_ptr<Psf> CutPsf(const Psf& psf, const FibreRange& fibres, double wave_min, double wave_max) {
  double low_x = INFINITY, high_x = -INFINITY, low_y = INFINITY, high_y = -INFINITY;
  for (int i = fibres.first; i < fibres.end(); ++i) {
    for (double wave : {wave_min, 0.5 * (wave_min + wave_max), wave_max}) {
      const double x = Evaluate(psf.traces.x, i, wave), y = Evaluate(psf.traces.y, i, wave);
      low_x = std::min(low_x, x), high_x = std::max(high_x, x);
      low_y = std::min(low_y, y), high_y = std::max(high_y, y);
    }
  }
  auto cut = std::make_shared<Psf>(psf);
  cut->fibres = fibres.count;
  cut->columns = static_cast<int>(high_x - low_x) + psf.spot_columns() + 4;
  cut->rows = static_cast<int>(high_y - low_y) + psf.spot_rows() + 4;
  cut->wave_min = wave_min;
  cut->wave_max = wave_max;
  cut->traces.x = SomeFibres(psf.traces.x, fibres, std::floor(low_x) - psf.stamp().x.middle - 2);
  cut->traces.y = SomeFibres(psf.traces.y, fibres, std::floor(low_y) - psf.stamp().y.middle - 2);
  for (LegendreTable* table : GaussHermite(*cut).Tables()) *table = SomeFibres(*table, fibres, 0);
  return cut;
}

class RealPsf : public EngineTest, public ::testing::WithParamInterface<RealPsfCase> {};

TEST_P(RealPsf, EqualsDenseAlgebra) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const RealPsfCase& test = GetParam();
  auto psf = ReadPsf(Source::FromFile(folder + "/" + test.file).value());
  ASSERT_TRUE(psf.ok()) << psf.status();
  Scene scene;
  const int pad = PadBins(*psf, test.grid);
  const WavelengthGrid padded = Padded(test.grid, pad);
  scene.psf = CutPsf(*psf, test.fibres, padded.first, padded.last());
  scene.image = MakeSceneImage(*scene.psf, {.fibres = test.fibres.count});
  if (test.hole) MaskPixels(scene.psf->rows / 2 - 15, 30, 4, 18, scene.image.get());
  ASSERT_EQ(PadBins(*scene.psf, test.grid), pad);
  const Bundles bundles = RunJob(engine(), scene, {.grid = test.grid});
  const OracleResult dense =
      ExtractDensely(*scene.psf, *scene.image, test.grid, pad, 0, IsFineGrid(test.grid));
  Bundles expected = bundles;
  expected.at(0).flux = dense.flux;
  expected.at(0).ivar = dense.ivar;
  expected.at(0).resolution = dense.resolution;
  const ResultDifference difference = Compare(bundles, expected, *scene.image);
  Print(test.name.c_str(), difference);
  EXPECT_GT(difference.bins, test.fibres.count * test.grid.count / 2);
  ExpectWithin(difference, test.limits);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, RealPsf,
    ::testing::Values(
        RealPsfCase{
            "EightTenths", "psf-r0-00051060.fits", {262, 5}, {6650, 0.8, 60}, false, {5e-9, 2e-10, 1e-10}},
        RealPsfCase{"EightTenthsWithAHole",
                    "psf-r0-00051060.fits",
                    {250, 5},
                    {6650, 0.8, 60},
                    true,
                    {5e-9, 2e-10, 1e-10}},
        RealPsfCase{
            "FourTenths", "psf-r0-00051060.fits", {262, 3}, {6650, 0.4, 90}, false, {1e-7, 1e-8, 1e-8}},
        RealPsfCase{
            "ThreeTenths", "psf-r0-00051060.fits", {262, 3}, {6650, 0.3, 120}, false, {1e-2, 1e-6, 1e-5}},
        RealPsfCase{"ThreeTenthsWithAHole",
                    "psf-r0-00051060.fits",
                    {262, 3},
                    {6650, 0.3, 120},
                    true,
                    {1e-2, 1e-6, 1e-5}},
        RealPsfCase{"WideSpots", "psf-v2-wide.fits", {8, 6}, {6650, 0.8, 40}, false, {5e-9, 2e-10, 1e-10}},
        RealPsfCase{
            "WideSpotsWithAHole", "psf-v2-wide.fits", {8, 6}, {6650, 0.8, 40}, true, {5e-9, 2e-10, 1e-10}}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace spexd::testing
