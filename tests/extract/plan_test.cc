#include "core/plan/bundle_plan.h"
#include "core/plan/grid_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/scene.h"

namespace spexd {
namespace {

using ::testing::HasSubstr;
using testing::MakeScenePsf;

WavelengthGrid Grid(double first, double step, int count) { return {first, step, count}; }

TEST(Groups, KeepFiveFibresWithTwoGuardsClippedAtTheBundle) {
  const std::vector<FibreGroup> groups = MakeGroups(25);
  ASSERT_EQ(groups.size(), 5u);
  EXPECT_EQ(groups[0].solved, (FibreRange{0, 7}));
  EXPECT_EQ(groups[0].kept, (FibreRange{0, 5}));
  EXPECT_EQ(groups[2].solved, (FibreRange{8, 9}));
  EXPECT_EQ(groups[2].kept, (FibreRange{10, 5}));
  EXPECT_EQ(groups[4].solved, (FibreRange{18, 7}));
}

TEST(Groups, OfOneFibreAreOneGroup) {
  const std::vector<FibreGroup> groups = MakeGroups(1);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].solved, (FibreRange{0, 1}));
}

TEST(Groups, KeepEveryFibreOnce) {
  for (int fibres = 1; fibres < 40; ++fibres) {
    int next = 0;
    for (const FibreGroup& group : MakeGroups(fibres)) {
      EXPECT_EQ(group.kept.first, next);
      next = group.kept.end();
    }
    EXPECT_EQ(next, fibres);
  }
}

TEST(BundlePlan, ReachesAsFarAsSpotsOverlap) {
  const auto psf = MakeScenePsf({.fibres = 4, .rows = 100});
  // 0.6 Angstrom a row, 11 rows a spot: rows differ by less than 11 for up to 8 bins of 0.8 Angstrom, traces
  // curved or not.
  const BundlePlan coarse = MakeBundlePlan(*psf, Grid(6005, 0.8, 60), 0, {0, 4});
  EXPECT_GE(coarse.reach, 8);
  EXPECT_LE(coarse.reach, 9);
  EXPECT_EQ(coarse.fibre_reach, 2);  // 14.6 columns are less than 17, 21.9 are not
  const BundlePlan fine = MakeBundlePlan(*psf, Grid(6005, 0.1, 400), 0, {0, 4});
  EXPECT_GE(fine.reach, 60);
}

TEST(BundlePlan, BoundsTheReachOfEveryPair) {
  const auto psf = MakeScenePsf({.fibres = 3, .rows = 80});
  const BundlePlan plan = MakeBundlePlan(*psf, Grid(6004, 0.5, 80), 0, {0, 3});
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 3; ++k) {
      for (int j = 0; j < plan.bins(); ++j) {
        for (int m = j + plan.reach + 1; m < plan.bins(); ++m) {
          EXPECT_GE(plan.first_row(k, m) - plan.first_row(i, j), psf->spot_rows());
        }
      }
    }
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
  const absl::Status below = CheckGrid(*psf, Grid(5990, 0.8, 20));
  EXPECT_EQ(below.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(below.message()), HasSubstr("5990"));
  EXPECT_THAT(std::string(below.message()), HasSubstr("XTRACE"));
  EXPECT_FALSE(CheckGrid(*psf, Grid(6030, 0.8, 200)).ok());
}

TEST(Grid, FinerThanALimitIsRefused) {
  const auto psf = MakeScenePsf({});
  const absl::Status status = CheckGrid(*psf, Grid(6010, 1e-3, 1000));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("0.05"));
}

TEST(Grid, BelowFourTenthsOfAnAngstromIsFine) {
  EXPECT_TRUE(IsFineGrid(Grid(6000, 0.3, 10)));
  EXPECT_FALSE(IsFineGrid(Grid(6000, 0.4, 10)));
  EXPECT_FALSE(IsFineGrid(
      Grid(6000, 0.4, 10).Scaled(1 / 1.0001)));  // a barycentric correction does not change what it is
}

}  // namespace
}  // namespace spexd
