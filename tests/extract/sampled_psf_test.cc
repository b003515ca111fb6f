// PSFs of sampled spots: what is refused in them, and lost fibres.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/model/psf_traces/lost_fibres.h"
#include "core/model/psf_traces/move_psf.h"
#include "core/model/reference_spot.h"
#include "core/plan/grid_plan.h"
#include "tests/support/matchers.h"
#include "tests/support/scenes/scene.h"

namespace spexd::testing {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr SceneSpots kKinds[] = {SceneSpots::kImageGrid, SceneSpots::kOneImage, SceneSpots::kPolynomials};

// A PSF of three fibres, with access to its spots.
struct Sampled {
  explicit Sampled(SceneSpots kind) : psf(*MakeScenePsf({.fibres = 3, .rows = 80, .spots = kind})) {}

  SampledSpots& spots() { return std::get<SampledSpots>(psf.spots); }
  SampledLayout& layout() { return spots().layout; }
  // Multiplies an image at all phases.
  void Scale(int64_t image, float factor) {
    Array<float, 2> stamps = spots().stamps;
    const int64_t values = stamps.size() / layout().images;
    for (float& value : stamps.flat().subspan(image * values, values)) value *= factor;
    spots().stamps = SharedArray<float, 2>(std::move(stamps));
  }

  Psf psf;
};

void ExpectRefused(Sampled& sampled, const std::string& text) {
  EXPECT_THAT(CheckPsf(sampled.psf), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
}

TEST(SampledPsf, IsAcceptedWhereItIsSound) {
  for (const SceneSpots kind : kKinds) {
    EXPECT_THAT(CheckPsf(Sampled(kind).psf), IsOk());
    EXPECT_THAT(CheckGrid(Sampled(kind).psf, {6006, 0.8, 30}), IsOk());
  }
}

TEST(SampledPsf, NamesStampsOutOfRange) {
  Sampled large(SceneSpots::kImageGrid);
  large.layout().stamp.x.size = 64;
  ExpectRefused(large, "a spot covers 64 CCD columns, must be 1 to 63");
  Sampled none(SceneSpots::kImageGrid);
  none.layout().stamp.y.size = 0;
  ExpectRefused(none, "a spot covers 0 CCD rows, must be 1 to 63");
  for (const int phases : {0, 65}) {
    Sampled sampled(SceneSpots::kOneImage);
    sampled.layout().phases = phases;
    ExpectRefused(sampled, absl::StrCat("has ", phases, " samples along an axis, must be 1 to 64"));
  }
}

TEST(SampledPsf, NamesImagesOutOfRange) {
  Sampled many(SceneSpots::kImageGrid);
  many.layout().images = 4097;
  ExpectRefused(many, "4097 images of spots, of 0 powers; must be 1 to 4096");
  Sampled powers(SceneSpots::kPolynomials);
  powers.layout().powers = 65;
  ExpectRefused(powers, "of 65 powers; must be 1 to 4096, of at most 64 powers");
  Sampled bytes(SceneSpots::kImageGrid);
  bytes.layout().images = 4096;
  bytes.layout().phases = 64;
  ExpectRefused(bytes, "bytes, the limit is 1073741824");
}

TEST(SampledPsf, NamesSizesThatDoNotAgree) {
  Sampled fibres(SceneSpots::kImageGrid);
  fibres.spots().fibres.resize(2);
  ExpectRefused(fibres, "the spots are of 2 fibres, the traces of 3");
  Sampled images(SceneSpots::kImageGrid);
  images.layout().images = 8;
  ExpectRefused(images, "8 images of spots (SPOTS) for 3 x 3 places, must be one for each of 3 positions");
  Sampled positions(SceneSpots::kImageGrid);
  positions.spots().positions.pop_back();
  ExpectRefused(positions, "must be one for each of 2 positions (SPOTPOS) x 3 wavelengths (SPOTWAVE)");
  Sampled powers(SceneSpots::kPolynomials);
  powers.spots().powers.pop_back();
  ExpectRefused(powers, "8 images of spots for 4 powers, must be one for each of 3 powers (NEXP)");
  Sampled stamps(SceneSpots::kOneImage);
  stamps.spots().stamps = SharedArray<float, 2>(Array<float, 2>({25, 10}, 1));
  ExpectRefused(stamps, "the images of spots are 25 stamps of 10 CCD pixels, must be 25 of 216");
}

TEST(SampledPsf, NamesAnImageWithoutLight) {
  Sampled dark(SceneSpots::kImageGrid);
  dark.Scale(4, 0);
  ExpectRefused(dark, "image 4 of 9, in the file's order from 0, add up to 0, must be positive and finite");
  Sampled negative(SceneSpots::kOneImage);
  negative.Scale(0, -1);
  ExpectRefused(negative, "image 0 of 1, in the file's order from 0, add up to -");
  Sampled bad(SceneSpots::kPolynomials);
  bad.Scale(5, INFINITY);
  ExpectRefused(bad, "image 5 of 8, in the file's order from 0, add up to ");
  Sampled constant(SceneSpots::kPolynomials);
  constant.Scale(4, 0);
  ExpectRefused(constant, "image 4 of 8, in the file's order from 0, add up to 0, must be positive");
  Sampled change(SceneSpots::kPolynomials);
  change.Scale(5, 0);
  EXPECT_THAT(CheckPsf(change.psf), IsOk()) << "which only changes others";
}

TEST(SampledPsf, NamesAxesThatDoNotAscend) {
  Sampled positions(SceneSpots::kImageGrid);
  positions.spots().positions[1] = positions.spots().positions[0];
  ExpectRefused(positions, "number 2 of SPOTPOS is -0.5, must be more than the one before");
  for (const double wave : {6100.0, kNan, 1e10}) {
    Sampled sampled(SceneSpots::kImageGrid);
    sampled.spots().wavelengths.back() = sampled.spots().wavelengths.front();
    sampled.spots().wavelengths[1] = wave;
    ExpectRefused(sampled, " of SPOTWAVE is ");
  }
  Sampled infinite(SceneSpots::kImageGrid);
  infinite.spots().wavelengths.back() = 1e10;
  ExpectRefused(infinite, "number 3 of SPOTWAVE is 1e+10, must be more than the one before and within 1e+09");
}

TEST(SampledPsf, NamesAFibreBeyondThePositions) {
  for (const double position : {-0.6, 2.6, kNan}) {
    Sampled sampled(SceneSpots::kImageGrid);
    sampled.spots().fibres[1].position = position;
    ExpectRefused(sampled,
                  absl::StrFormat("fibre 1 is at %g on the slit (FIBERPOS), but there are spots from "
                                  "-0.5 to 2.5 only (SPOTPOS)",
                                  position));
    sampled.spots().EmptyFibre(1);
    EXPECT_THAT(CheckPsf(sampled.psf), IsOk()) << "an empty fibre is nowhere";
  }
  Sampled rounded(SceneSpots::kImageGrid);
  rounded.spots().fibres[1].position = 2.51;
  EXPECT_THAT(CheckPsf(rounded.psf), IsOk());
}

TEST(SampledPsf, NamesPolynomialsOutOfRange) {
  for (const int group : {-1, 2}) {
    Sampled sampled(SceneSpots::kPolynomials);
    sampled.spots().fibres[1].group = group;
    ExpectRefused(sampled, absl::StrCat("fibre 1 is of group ", group, " (XYSCALE), must be 0 to 1"));
  }
  for (const int exponent : {-1, 33}) {
    Sampled sampled(SceneSpots::kPolynomials);
    sampled.spots().powers[2].y = exponent;
    ExpectRefused(sampled,
                  absl::StrCat("exponents of x and y are 0 and ", exponent, " (NEXP), must be 0 to 32"));
  }
}

TEST(SampledPsf, NamesAPowerThatOverflowsOnTheGrid) {
  for (const double scale : {1e5, kNan}) {
    Sampled sampled(SceneSpots::kPolynomials);
    sampled.spots().powers[1].x = 32;
    EXPECT_THAT(CheckGrid(sampled.psf, {6006, 0.8, 30}), IsOk());
    sampled.spots().fibres[2].x_scale = scale;
    EXPECT_THAT(CheckGrid(sampled.psf, {6006, 0.8, 30}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("x^32 y^0 of fibre 2 (NEXP, XYSCALE) may reach"),
                               HasSubstr("must be finite"))));
  }
}

TEST(SampledPsf, RefusesAGridBeyondTheWavelengthsOfItsImages) {
  Sampled sampled(SceneSpots::kImageGrid);
  sampled.spots().wavelengths = {6010, 6020, 6035};
  EXPECT_THAT(CheckGrid(sampled.psf, {6010, 0.8, 30}), IsOk());
  for (const WavelengthGrid& grid : {WavelengthGrid{6007.9, 0.8, 30}, WavelengthGrid{6013.2, 0.8, 31}}) {
    EXPECT_THAT(
        CheckGrid(sampled.psf, grid),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(HasSubstr("exceeds the PSF's domain of its spots, 6010 to 6035, by more than 2"),
                       HasSubstr("use -w 60"))));
  }
  EXPECT_THAT(CheckGrid(Sampled(SceneSpots::kOneImage).psf, {5999, 0.8, 30}), IsOk())
      << "one image is of all wavelengths";
}

// ---- Lost fibres

Spot SpotOf(const Psf& psf, int fibre, double wave) {
  Spot spot;
  EvaluateSpot(psf, fibre, wave, &spot);
  return spot;
}

bool HasNoLight(const Spot& spot) {
  return std::ranges::all_of(spot.values, [](double value) { return value == 0; });
}

TEST(SampledPsf, LosesAFibreWithoutTracesAndNoOther) {
  for (const SceneSpots kind : kKinds) {
    for (const int lost : {0, 1, 2}) {
      SCOPED_TRACE(::testing::Message() << "kind " << static_cast<int>(kind) << ", fibre " << lost);
      const Sampled whole(kind);
      Psf psf = whole.psf;
      psf.traces.y.coeff(lost, 1) = kNan;
      EmptyLostFibres(&psf);
      ASSERT_THAT(CheckPsf(psf), IsOk());
      ASSERT_THAT(CheckGrid(psf, {6006, 0.8, 30}), IsOk());
      for (const double wave : {5990.0, 6012.0, 6050.0}) {
        for (int fibre = 0; fibre < 3; ++fibre) {
          const Spot spot = SpotOf(psf, fibre, wave), before = SpotOf(whole.psf, fibre, wave);
          if (fibre == lost) {
            EXPECT_TRUE(HasNoLight(spot));
            continue;
          }
          EXPECT_EQ(spot.first_row, before.first_row);
          EXPECT_EQ(spot.first_column, before.first_column);
          EXPECT_EQ(spot.values, before.values);
        }
      }
      // The lost fibre is on a straight line with the others.
      const auto x = [&psf](int fibre) { return Evaluate(psf.traces.x, fibre, 6020); };
      EXPECT_NEAR(x(2) - x(1), x(1) - x(0), 1e-9);
    }
  }
}

TEST(SampledPsf, KeepsAFibreLostWhereItIsMoved) {
  for (const SceneSpots kind : kKinds) {
    Psf psf = Sampled(kind).psf;
    psf.traces.x.coeff(1, 0) = kNan;
    EmptyLostFibres(&psf);
    const ShiftSeries shift({1, 1}, 0.3);
    const Psf moved = MovePsf(psf, shift, ShiftSeries());
    EXPECT_EQ(LostFibres(moved), (std::vector<bool>{false, true, false}));
    EXPECT_TRUE(HasNoLight(SpotOf(moved, 1, 6020)));
    EXPECT_FALSE(HasNoLight(SpotOf(moved, 2, 6020)));
    for (int fibre = 0; fibre < 3; ++fibre) {
      EXPECT_NEAR(Evaluate(moved.traces.x, fibre, 6020), Evaluate(psf.traces.x, fibre, 6020) + 0.3, 1e-9);
      EXPECT_EQ(Evaluate(moved.traces.y, fibre, 6020), Evaluate(psf.traces.y, fibre, 6020));
    }
  }
}

}  // namespace
}  // namespace spexd::testing
