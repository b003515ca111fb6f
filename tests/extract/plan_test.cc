#include <cmath>
#include <map>
#include <stop_token>
#include <string>

#include "core/extract/cost_model.h"
#include "core/model/spots/gauss_hermite_formula.h"
#include "core/plan/bundle_plan.h"
#include "core/plan/grid_plan.h"
#include "tests/support/matchers.h"
#include "tests/support/scenes/scene.h"

namespace spexd::testing {
namespace {

WavelengthGrid Grid(double first, double step, int count) { return {first, step, count}; }

TEST(BundlePlan, ReachesAsFarAsSpotsOverlap) {
  const auto psf = MakeScenePsf({.fibres = 4, .rows = 100});
  // The rows have 0.6 Angstrom, a spot has 11 rows: the rows of two bins of 0.8 Angstrom differ by less than
  // 11 if the bins are at most 8 apart, whether traces are curved or not.
  const BundlePlan coarse = MakeBundlePlan(*psf, Grid(6005, 0.8, 60), 0, {0, 4}).value();
  EXPECT_GE(coarse.reach, 8);
  EXPECT_LE(coarse.reach, 9);
  EXPECT_EQ(coarse.fibre_reach, 2);  // 14.6 columns are less than 17, 21.9 are not
  const BundlePlan fine = MakeBundlePlan(*psf, Grid(6005, 0.1, 400), 0, {0, 4}).value();
  EXPECT_GE(fine.reach, 60);
}

TEST(BundlePlan, BoundsTheReachOfEveryPair) {
  const auto psf = MakeScenePsf({.fibres = 3, .rows = 80});
  const WavelengthGrid grid = Grid(6004, 0.5, 80);
  const BundlePlan plan = MakeBundlePlan(*psf, grid, 0, {0, 3}).value();
  const auto row = [&](int fibre, int bin) {
    return LocateSpot(Evaluate(psf->traces.y, fibre, grid.Wave(bin)), psf->stamp().y).first;
  };
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 3; ++k) {
      for (int j = 0; j < plan.bins; ++j) {
        for (int m = j + plan.reach + 1; m < plan.bins; ++m)
          EXPECT_GE(row(k, m) - row(i, j), psf->spot_rows());
      }
    }
  }
}

TEST(BundlePlan, EstimatesBoundTheReaches) {
  const auto psf = MakeScenePsf({.fibres = 9, .rows = 100});
  for (double step : {0.3, 0.8, 2.5}) {
    const WavelengthGrid grid = Grid(6005, step, 60);
    const BundlePlan plan = MakeBundlePlan(*psf, grid, 0, {0, 9}).value();
    EXPECT_GE(ReachEstimate(*psf, grid), plan.reach);
    EXPECT_GE(FibreReachEstimate(*psf), plan.fibre_reach);
  }
}

TEST(BundlePlan, NamesTheColumnsOfItsSpots) {
  const auto psf = MakeScenePsf({.fibres = 4, .rows = 100});
  const BundlePlan plan = MakeBundlePlan(*psf, Grid(6005, 0.8, 60), 0, {1, 2}).value();
  EXPECT_NEAR(plan.first_column, 10 + 7.3 - 8, 1);
  EXPECT_NEAR(plan.end_column, 10 + 2 * 7.3 + 9, 1.5);
}

TEST(BundlePlan, IsNotMadeOnceItsStopIsRequested) {
  const auto psf = MakeScenePsf({.fibres = 2, .rows = 100});
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(MakeBundlePlan(*psf, Grid(6005, 0.8, 60), 0, {0, 2}, stop.get_token()).status().code(),
            absl::StatusCode::kCancelled);
}

int BlockOf(const SceneOptions& options) {
  const auto psf = MakeScenePsf(options);
  return MakeBundlePlan(*psf, Grid(6005, 0.8, 40), 0, {0, options.fibres}).value().block;
}

TEST(FibreBlocks, AreOfOneFibreWhereNeighboursHardlyOverlap) {
  EXPECT_EQ(BlockOf({.fibres = 1, .rows = 60}), 1);
  EXPECT_EQ(BlockOf({.fibres = 6, .rows = 60}), 1);
  EXPECT_EQ(BlockOf({.fibres = 6, .rows = 60, .spacing = 20}), 1);
}

TEST(FibreBlocks, GrowAsFibresOverlap) {
  EXPECT_EQ(BlockOf({.fibres = 6, .rows = 60, .widen = 2}), 2);
  EXPECT_EQ(BlockOf({.fibres = 2, .rows = 60, .widen = 2}), 1);
  EXPECT_EQ(BlockOf({.fibres = 8, .rows = 60, .spacing = 5.2, .widen = 2}), 3);
}

TEST(FibreBlocks, AreAsLargeWhereAFibreHasNoSpots) {
  for (int lost = 0; lost < 8; ++lost) {
    Psf psf = *MakeScenePsf({.fibres = 8, .rows = 60, .widen = 2});
    GaussHermite(psf).core().sigma_x.coeff(lost, 0) = 0;
    EXPECT_EQ(MakeBundlePlan(psf, Grid(6005, 0.8, 40), 0, {0, 8}).value().block, 2) << lost;
  }
}

TEST(Pads, AreTwelveBinsOrASpotsHeight) {
  const auto psf = MakeScenePsf({});
  EXPECT_EQ(PadBins(*psf, Grid(6010, 0.8, 30)), 12);
  EXPECT_GE(PadBins(*psf, Grid(6010, 0.1, 300)), 70);
}

TEST(Grid, OutsideThePsfsDomainIsRefusedByName) {
  const auto psf = MakeScenePsf({});
  EXPECT_TRUE(CheckGrid(*psf, Grid(5998.5, 0.8, 20)).ok());
  EXPECT_THAT(CheckGrid(*psf, Grid(5990, 0.8, 20)),
              StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr("5990"), HasSubstr("XTRACE"))));
  EXPECT_FALSE(CheckGrid(*psf, Grid(6030, 0.8, 200)).ok());
}

// Returns the grid after "-w " in a message.
WavelengthGrid ProposedGrid(const absl::Status& refusal) {
  const std::string message(refusal.message());
  const size_t at = message.find("use -w ");
  EXPECT_NE(at, std::string::npos) << message;
  return ParseWavelengthGrid(message.substr(at + 7)).value_or(WavelengthGrid());
}

TEST(Grid, ThatIsRefusedIsAnsweredWithOneThatFits) {
  const auto psf = MakeScenePsf({});
  const WaveRange range = RangeOnCcd(*psf);
  for (const WavelengthGrid& wrong : {Grid(3000, 1, 6000), Grid(3000, 1, 100), Grid(9000, 0.7, 100)}) {
    const WavelengthGrid proposed = ProposedGrid(CheckGrid(*psf, wrong));
    EXPECT_TRUE(CheckGrid(*psf, proposed).ok());
    EXPECT_EQ(proposed.first, range.first);
    EXPECT_NEAR(proposed.step, wrong.step, 1e-9);
    EXPECT_NEAR(proposed.last(), range.last, proposed.step);
  }
  const double inside = range.first + 3.25;
  EXPECT_EQ(ProposedGrid(CheckGrid(*psf, Grid(inside, 0.8, 5000))).first, inside);
}

TEST(Grid, RangeOnTheCcdIsThatOfAllFibres) {
  Psf psf = *MakeScenePsf({});
  const WaveRange whole = RangeOnCcd(psf);
  for (double wave : {whole.first, whole.last}) {
    for (int fibre = 0; fibre < psf.fibres; ++fibre) {
      EXPECT_GE(Evaluate(psf.traces.y, fibre, wave), 0);
      EXPECT_LE(Evaluate(psf.traces.y, fibre, wave), psf.rows - 1);
    }
  }
  const double shift = Evaluate(psf.traces.y, 1, whole.first + 5) - 0.01;
  psf.traces.y.coeff(1, 0) -= shift;  // moves the first wavelengths off the CCD
  EXPECT_EQ(RangeOnCcd(psf).first, whole.first + 5);
  for (int k = 0; k < psf.traces.y.coeff.shape(1); ++k) psf.traces.y.coeff(1, k) = std::nan("");
  EXPECT_EQ(RangeOnCcd(psf).first, whole.first);
}

TEST(Grid, FinerThanALimitIsRefused) {
  const auto psf = MakeScenePsf({});
  EXPECT_THAT(CheckGrid(*psf, Grid(6010, 1e-3, 1000)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0.05")));
}

// Makes a PSF with a tail and returns the table with this name.
LegendreTable* TableOf(const std::string& name, Psf* psf) {
  GaussHermiteSpots& spots = GaussHermite(*psf);
  GaussHermiteCore& core = spots.core();
  spots.tail_amplitude = spots.tail_core = spots.tail_index = spots.tail_scale_x = spots.tail_scale_y =
      core.sigma_x;
  const std::map<std::string, LegendreTable*> tables = {{"XTRACE", &psf->traces.x},
                                                        {"YTRACE", &psf->traces.y},
                                                        {"GHSIGX", &core.sigma_x},
                                                        {"GHSIGY", &core.sigma_y},
                                                        {"GH-0-0", &core.terms.front().amplitude},
                                                        {"TAILAMP", &spots.tail_amplitude},
                                                        {"TAILCORE", &spots.tail_core},
                                                        {"TAILINDE", &spots.tail_index},
                                                        {"TAILXSCA", &spots.tail_scale_x},
                                                        {"TAILYSCA", &spots.tail_scale_y}};
  return tables.at(name);
}

class SeriesOfPsf : public ::testing::TestWithParam<const char*> {};

TEST_P(SeriesOfPsf, ThatOverflowsForOneFibreIsRefusedByNameAndFibre) {
  for (const double value : {1e308, -1e308, 1e200}) {
    Psf psf = *MakeScenePsf({.fibres = 4});
    LegendreTable* const table = TableOf(GetParam(), &psf);
    EXPECT_TRUE(CheckGrid(psf, Grid(6010, 0.8, 30)).ok());
    table->coeff(2, table->coeff.shape(1) - 1) = value;
    EXPECT_THAT(CheckGrid(psf, Grid(6010, 0.8, 30)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(std::string(GetParam()) + " of fibre 2 may reach")));
  }
}

INSTANTIATE_TEST_SUITE_P(Names, SeriesOfPsf,
                         ::testing::Values("XTRACE", "YTRACE", "GHSIGX", "GHSIGY", "GH-0-0", "TAILAMP",
                                           "TAILCORE", "TAILINDE", "TAILXSCA", "TAILYSCA"));

TEST(Grid, BeyondANarrowDomainWhereASeriesOverflowsIsRefused) {
  Psf psf = *MakeScenePsf({});
  LegendreTable& sigma_y = GaussHermite(psf).core().sigma_y;
  sigma_y.wave_min = 6010;
  sigma_y.wave_max = 6010 + 1e-11;
  sigma_y.coeff.Assign({psf.fibres, kMaxLegendreCoefficients});
  for (int fibre = 0; fibre < psf.fibres; ++fibre) {
    sigma_y.coeff(fibre, 0) = 1;
    sigma_y.coeff(fibre, kMaxLegendreCoefficients - 1) = 1e-3;
  }
  EXPECT_THAT(std::string(CheckGrid(psf, Grid(6010, 0.8, 30)).message()),
              HasSubstr("GHSIGY of fibre 0 may reach"));
}

TEST(Grid, OfWavelengthsWherePolynomialsOverflowIsRefusedForAnyCoefficient) {
  for (const double width : {1e-3, 1e-300}) {
    Psf psf = *MakeScenePsf({});
    LegendreTable& sigma_y = GaussHermite(psf).core().sigma_y;
    sigma_y.wave_min = 0;
    sigma_y.wave_max = width;
    sigma_y.coeff.Assign({psf.fibres, kMaxLegendreCoefficients});
    sigma_y.coeff(0, kMaxLegendreCoefficients - 1) = 1e-285;
    EXPECT_THAT(std::string(CheckGrid(psf, Grid(6010, 0.8, 30)).message()),
                HasSubstr("GHSIGY of fibre 0 may reach inf"));
  }
}

TEST(Grid, OnWhichEverySeriesIsFiniteHasFiniteEstimates) {
  for (const double value : {1e29, -1e29, 5e-324}) {
    for (const char* name : {"XTRACE", "GHSIGX", "GHSIGY", "GH-0-0"}) {
      Psf psf = *MakeScenePsf({});
      LegendreTable* const table = TableOf(name, &psf);
      for (int fibre = 0; fibre < psf.fibres; ++fibre) table->coeff(fibre, 0) = value;
      const WavelengthGrid grid = Grid(6010, 0.8, 30);
      ASSERT_TRUE(CheckGrid(psf, grid).ok()) << CheckGrid(psf, grid);
      const BundleCost cost = CostOfBundle(psf, grid, psf.fibres);
      for (const double flops : cost.flops) EXPECT_TRUE(std::isfinite(flops) && flops >= 0) << name << value;
      EXPECT_TRUE(std::isfinite(cost.pairs) && std::isfinite(cost.precision)) << name << value;
    }
  }
}

TEST(Grid, BelowFourTenthsOfAnAngstromIsFine) {
  EXPECT_TRUE(IsFineGrid(Grid(6000, 0.3, 10)));
  EXPECT_FALSE(IsFineGrid(Grid(6000, 0.4, 10)));
  EXPECT_FALSE(IsFineGrid(
      Grid(6000, 0.4, 10).Scaled(1 / 1.0001)));  // a barycentric correction does not make it a fine grid
}

}  // namespace
}  // namespace spexd::testing
