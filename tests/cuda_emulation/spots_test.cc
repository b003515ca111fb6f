// The kernels of the stage "spots", called directly: spots of any model and size equal the formula, their
// positions equal the host's to the bit, and each row of the CCD knows the bins that cover it.
#include "cuda/kernels/spots/spots.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/types/span.h"
#include "core/model/reference_spot.h"
#include "core/plan/grid_plan.h"
#include "cuda/kernels/locate.h"
#include "gtest/gtest.h"
#include "tests/support/scenes/scene.h"

namespace spexd::cuda {
namespace {

constexpr int kShared = 99 << 10;

struct SpotsCase {
  std::string name;
  testing::SceneOptions options = {.fibres = 3, .rows = 60};
  void (*change)(Psf*) = [](Psf*) {};
};
std::ostream& operator<<(std::ostream& out, const SpotsCase& c) { return out << c.name; }

void Resize(int half_x, int half_y, Psf* psf) {
  GaussHermite(*psf).stamp = {CentredAxis(half_x), CentredAxis(half_y)};
}

// Adds the term of the largest degrees.
void AddTerm(int degree_x, int degree_y, Psf* psf) {
  GaussHermite(*psf).core().max_degree_x = degree_x;
  GaussHermite(*psf).core().max_degree_y = degree_y;
  GaussHermiteTerm term = {degree_x, degree_y, GaussHermite(*psf).core().terms.front().amplitude};
  for (double& c : term.amplitude.coeff.flat()) c *= 1e-5;
  GaussHermite(*psf).core().terms.push_back(std::move(term));
}

// Replaces a series by one of this length with the same values.
void Lengthen(int length, LegendreTable* table) {
  Array<double, 2> coeff;
  coeff.Assign({table->coeff.shape(0), length});
  for (int i = 0; i < coeff.shape(0); ++i)
    for (int k = 0; k < length; ++k) coeff(i, k) = k < 3 ? table->coeff(i, k) : 1e-3 / (i + k);
  table->coeff = coeff;
}

// Makes rows a parabola in wavelength, with its vertex inside the grid.
void TurnTrace(Psf* psf) {
  for (int i = 0; i < psf->fibres; ++i) {
    psf->traces.y.coeff(i, 1) = 3;
    psf->traces.y.coeff(i, 2) = 0.4 * psf->rows;
  }
}

// Adds a second, wider core with these largest degrees, and a cutoff to the first one.
void AddCore(int degree_x, int degree_y, Psf* psf) {
  GaussHermiteSpots& spots = GaussHermite(*psf);
  GaussHermiteCore core = spots.core();
  core.max_degree_x = degree_x;
  core.max_degree_y = degree_y;
  for (LegendreTable* width : {&core.sigma_x, &core.sigma_y})
    for (double& c : width->coeff.flat()) c *= 1.7;
  core.terms.resize(1);
  for (double& c : core.terms.front().amplitude.coeff.flat()) c *= 0.2;
  core.terms.push_back({degree_x, degree_y, core.terms.front().amplitude});
  for (double& c : core.terms.back().amplitude.coeff.flat()) c *= 1e-3;
  spots.cutoff = spots.core().sigma_x;
  for (double& c : spots.cutoff.coeff.flat()) c *= 2.1;
  spots.cores.push_back(std::move(core));
}

struct Images {
  int columns, rows, oversampling;
  SubpixelShift shift;
  int positions = 0, wavelengths = 0;  // of a grid of images
  int powers = 0, groups = 0;          // of polynomials
};

// Gives the PSF images with different amounts of blur; those of higher powers are small.
void Sample(const Images& images, Psf* psf) {
  SampledSpots spots;
  SampledLayout& layout = spots.layout;
  layout.shift = images.shift;
  layout.positions = images.positions;
  layout.wavelengths = images.wavelengths;
  layout.powers = images.powers;
  layout.images = images.powers > 0 ? images.groups * images.powers : images.positions * images.wavelengths;
  // The first sample shifted by a sinc begins at the edge of a CCD pixel.
  const auto centre = [&](double near) {
    const int n = images.oversampling;
    return images.shift == SubpixelShift::kSinc && n > 1 ? n * (std::floor(near / n) + 0.5) - 0.5 : near;
  };
  const double centre_x = centre(0.47 * images.columns), centre_y = centre(0.52 * images.rows);
  LayOutImages(images.columns, images.rows, images.oversampling, centre_x, centre_y, &layout);
  Array<float, 2> stamps;
  stamps.Assign({layout.stamps(), layout.stamp.pixels()});
  const int64_t of_an_image = stamps.size() / layout.images;
  for (int k = 0; k < layout.images; ++k) {
    const int power = images.powers > 0 ? k % images.powers : 0;
    const double width = images.oversampling * (1.1 + 0.3 * k / layout.images);
    std::vector<double> image;
    for (int row = 0; row < images.rows; ++row) {
      for (int column = 0; column < images.columns; ++column) {
        const double u = (column - centre_x) / width, v = (row - centre_y) / (1.2 * width);
        const double sign = power % 2 == 0 ? 1 : -1;
        image.push_back((1 + 0.3 * u * v) * sign / (1 + 20 * power) * std::exp(-0.5 * (u * u + v * v)));
      }
    }
    BinImage(image, images.columns, images.rows, layout,
             absl::MakeSpan(stamps.data() + k * of_an_image, of_an_image));
  }
  spots.stamps = SharedArray<float, 2>(std::move(stamps));
  for (int k = 0; k < images.positions; ++k) spots.positions.push_back(k);
  for (int k = 0; k < images.wavelengths; ++k) spots.wavelengths.push_back(psf->wave_min + 9.0 * k);
  for (int k = 0; k < images.powers; ++k) spots.powers.push_back({k / 8, k % 8});
  for (int i = 0; i < psf->fibres; ++i) {
    spots.fibres.push_back({.position = 0.7 * i * (images.positions - 1) / psf->fibres,
                            .group = images.groups > 0 ? i % images.groups : 0,
                            .x0 = 20,
                            .x_scale = 1.0 / 60,
                            .y0 = 30,
                            .y_scale = 1.0 / 50});
  }
  psf->spots = std::move(spots);
}

const std::vector<SpotsCase>& SpotsCases() {
  static const std::vector<SpotsCase> cases = {
      {"OfUsualSize"},
      {"WithATail", {.fibres = 2, .rows = 60, .tail = true}},
      {"OfThreePixelsAcross", {.fibres = 2, .rows = 60}, [](Psf* psf) { Resize(1, 1, psf); }},
      {"WhoseEdgesAreThoseOfAWarp", {.fibres = 2, .rows = 60}, [](Psf* psf) { Resize(9, 5, psf); }},
      {"WithTwoEdgesMore", {.fibres = 2, .rows = 60}, [](Psf* psf) { Resize(10, 5, psf); }},
      {"OfSeventeenRows", {.fibres = 2, .rows = 60}, [](Psf* psf) { Resize(4, 8, psf); }},
      {"OfTheLargestSizeAndDegreesWithATail",
       {.fibres = 1, .rows = 60, .tail = true},
       [](Psf* psf) {
         Resize(kMaxHalfSpot, kMaxHalfSpot, psf);
         AddTerm(kMaxHermiteDegree, kMaxHermiteDegree, psf);
       }},
      {"OfMoreDegreesInY", {.fibres = 2, .rows = 60}, [](Psf* psf) { AddTerm(3, 8, psf); }},
      {"WhoseSeriesHaveLengthsOfTheirOwn",
       {.fibres = 2, .rows = 60},
       [](Psf* psf) {
         Lengthen(5, &GaussHermite(*psf).core().sigma_y);
         Lengthen(1, &GaussHermite(*psf).core().terms[1].amplitude);
         Lengthen(7, &psf->traces.x);
       }},
      {"WhoseSeriesHaveDomainsOfTheirOwn",
       {.fibres = 2, .rows = 60},
       [](Psf* psf) {
         GaussHermite(*psf).core().sigma_x.wave_min -= 3;
         GaussHermite(*psf).core().terms[2].amplitude.wave_max += 11;
         GaussHermite(*psf).core().terms[3].amplitude.wave_min -= 40;
       }},
      {"WithoutAPositiveWidth",
       {.fibres = 2, .rows = 60, .tail = true},
       [](Psf* psf) {
         for (double& c : GaussHermite(*psf).core().sigma_y.coeff.Row(1)) c = -1;
         GaussHermite(*psf).core().sigma_x.coeff(0, 1) = 1.5;  // negative at short wavelengths
       }},
      {"OfTwoCores", {.fibres = 2, .rows = 60}, [](Psf* psf) { AddCore(1, 2, psf); }},
      {"OfTwoCoresWithATail",
       {.fibres = 2, .rows = 60, .tail = true},
       [](Psf* psf) { AddCore(kMaxTwoCoreDegree, kMaxTwoCoreDegree, psf); }},
      {"OfTwoCoresInAStampOfEvenSides",
       {.fibres = 2, .rows = 60},
       [](Psf* psf) {
         AddCore(1, 1, psf);
         GaussHermite(*psf).stamp = {{16, 8, 0.5}, {10, 5, 0}};
       }},
      {"OfTwoCoresWithoutAnEnd",
       {.fibres = 2, .rows = 60},
       [](Psf* psf) {
         AddCore(3, 0, psf);
         GaussHermite(*psf).cutoff = {};
       }},
      {"OfTwoCoresInALargeStamp",
       {.fibres = 1, .rows = 60, .tail = true},
       [](Psf* psf) {
         AddCore(2, 2, psf);
         Resize(kMaxHalfSpot, 18, psf);
       }},
      {"WhoseCoresLackPositiveWidths",
       {.fibres = 3, .rows = 60},
       [](Psf* psf) {
         AddCore(1, 1, psf);
         for (double& c : GaussHermite(*psf).cores[0].sigma_x.coeff.Row(0)) c = -1;
         GaussHermite(*psf).cores[0].sigma_y.coeff(1, 1) = 1.5;  // negative at short wavelengths
         for (double& c : GaussHermite(*psf).cores[1].sigma_y.coeff.Row(2)) c = 0;
       }},
      {"OfAGridOfImages",
       {.fibres = 3, .rows = 60},
       [](Psf* psf) {
         Sample({52, 47, 4, SubpixelShift::kLinear, 3, 4}, psf);
       }},
      {"OfAGridOfImagesShiftedByASinc",
       {.fibres = 2, .rows = 60},
       [](Psf* psf) {
         Sample({40, 35, 3, SubpixelShift::kSinc, 2, 3}, psf);
       }},
      {"OfOneImageShiftedByASinc",
       {.fibres = 2, .rows = 60},
       [](Psf* psf) {
         Sample({130, 110, 10, SubpixelShift::kSinc, 1, 1}, psf);
       }},
      {"OfImagesAtOnePosition",
       {.fibres = 2, .rows = 60},
       [](Psf* psf) {
         Sample({33, 41, 5, SubpixelShift::kLinear, 1, 3}, psf);
       }},
      {"OfPolynomialsShiftedByASinc",
       {.fibres = 3, .rows = 60},
       [](Psf* psf) {
         Sample({13, 11, 1, SubpixelShift::kSinc, 0, 0, 12, 2}, psf);
       }},
      {"OfTheMostTerms",
       {.fibres = 1, .rows = 60},
       [](Psf* psf) {
         Sample({12, 10, 2, SubpixelShift::kLinear, 0, 0, kMaxImagePowers, 1}, psf);
       }},
      {"OfTheLargestImagesShiftedByASinc",
       {.fibres = 1, .rows = 60},
       [](Psf* psf) {
         Sample({kMaxStampSide - 1, kMaxStampSide - 1, 1, SubpixelShift::kSinc, 1, 1}, psf);
       }},
      {"OfOneSample",
       {.fibres = 1, .rows = 60},
       [](Psf* psf) {
         Sample({1, 1, 1, SubpixelShift::kLinear, 1, 1}, psf);
       }},
      {"OfAFibreWithoutImages",
       {.fibres = 2, .rows = 60},
       [](Psf* psf) {
         Sample({24, 20, 2, SubpixelShift::kSinc, 2, 2}, psf);
         std::get<SampledSpots>(psf->spots).EmptyFibre(1);
       }},
      {"OfImagesOffTheCcd",
       {.fibres = 3, .rows = 60},
       [](Psf* psf) {
         Sample({24, 20, 2, SubpixelShift::kLinear, 2, 2}, psf);
         psf->traces.x.coeff(0, 0) = -20;
         psf->traces.x.coeff(1, 0) = 9e5;
         psf->traces.y.coeff(2, 0) += 50;
       }},
      {"OnDescendingRows",
       {.fibres = 2, .rows = 60},
       [](Psf* psf) {
         for (int i = 0; i < psf->fibres; ++i) psf->traces.y.coeff(i, 1) *= -1;
       }},
      {"OnATraceThatTurns", {.fibres = 2, .rows = 60}, TurnTrace},
      {"OffTheCcd",
       {.fibres = 3, .rows = 60},
       [](Psf* psf) {
         psf->traces.x.coeff(0, 0) = -20;
         psf->traces.x.coeff(1, 0) = 9e5;
         psf->traces.y.coeff(2, 0) += 50;
       }},
  };
  return cases;
}

class Spots : public ::testing::TestWithParam<SpotsCase> {
 protected:
  void SetUp() override {
    GetParam().change(psf_.get());
    ASSERT_EQ(CheckPsf(*psf_), absl::OkStatus());
    const WavelengthGrid grid = {psf_->wave_min + 3, 0.8, 30};
    shape_ = ShapeOf(*psf_, grid, psf_->fibres);
    block_.resize(static_cast<size_t>(PsfBytes(shape_)), std::byte{0xff});
    PackPsf(*psf_, shape_, block_.data());
    at_ = LayOutPsf(shape_, block_.data());
    ASSERT_EQ(ConfigureSpots(kShared), cudaSuccess);
    ASSERT_EQ(LocateSpots(at_, nullptr), cudaSuccess);
    ASSERT_EQ(EvaluateSpots(at_, kShared, nullptr), cudaSuccess);
  }
  int SpotOf(int fibre, int bin) const { return fibre * shape_.bins + bin; }

  const std::shared_ptr<Psf> psf_ = testing::MakeScenePsf(GetParam().options);
  PsfShape shape_;
  std::vector<std::byte> block_;
  PsfArrays at_;
};

TEST_P(Spots, EqualTheFormula) {
  Spot expected;
  for (int i = 0; i < shape_.fibres; ++i) {
    for (int j = 0; j < shape_.bins; ++j) {
      EvaluateSpot(*psf_, i, shape_.first_wave + j * shape_.step, &expected);
      const double* const values = at_.spots + SpotOf(i, j) * shape_.spot_pixels();
      for (int p = 0; p < shape_.spot_pixels(); ++p)
        ASSERT_NEAR(values[p], expected.values[static_cast<size_t>(p)], 2e-15)
            << "fibre " << i << " bin " << j << " pixel " << p;
    }
  }
}

TEST_P(Spots, LieWhereTheHostPlacesThem) {
  Spot expected;
  for (int i = 0; i < shape_.fibres; ++i) {
    for (int j = 0; j < shape_.bins; ++j) {
      EvaluateSpot(*psf_, i, shape_.first_wave + j * shape_.step, &expected);
      EXPECT_EQ(at_.first_column[SpotOf(i, j)], expected.first_column);
      EXPECT_EQ(at_.first_row[SpotOf(i, j)], expected.first_row);
    }
  }
}

TEST_P(Spots, AreKnownToTheRowsThatTheyCover) {
  for (int i = 0; i < shape_.fibres; ++i) {
    for (int row = 0; row < shape_.ccd_rows; ++row) {
      std::vector<int> expected = {shape_.bins, 0, INT_MAX, INT_MIN};
      for (int j = 0; j < shape_.bins; ++j) {
        const int first = at_.first_row[SpotOf(i, j)], column = at_.first_column[SpotOf(i, j)];
        if (first > row || first + shape_.spot_rows() <= row) continue;
        if (column <= -shape_.spot_columns() || column >= shape_.ccd_columns) continue;
        expected = {std::min(expected[0], j), j + 1, std::min(expected[2], column),
                    std::max(expected[3], column)};
      }
      const int32_t* const found = at_.row_bins + 4 * (i * shape_.ccd_rows + row);
      EXPECT_EQ(std::vector<int>(found, found + 4), expected) << "fibre " << i << " row " << row;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(SpotsCases, Spots, ::testing::ValuesIn(SpotsCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace spexd::cuda
