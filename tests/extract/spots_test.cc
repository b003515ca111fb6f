// Spots of every model: compares the CPU engine's with the formula, and the formula with plain code.
#include "core/extract/cpu/spots/spots.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "core/model/reference_spot.h"
#include "gtest/gtest.h"
#include "tests/extract/every_target.h"
#include "tests/support/scenes/sampled_psf.h"
#include "tests/support/scenes/scene.h"

namespace spexd::cpu {
namespace {

using spexd::testing::GridImages;
using spexd::testing::kGridSide;
using spexd::testing::MakeScenePsf;
using spexd::testing::OneImage;
using spexd::testing::OnEveryTarget;
using spexd::testing::PolynomialImages;
using spexd::testing::SampledImages;
using spexd::testing::SceneOptions;
using spexd::testing::SceneSpots;

const std::pair<const char*, SceneOptions> kModels[] = {
    {"Gauss-Hermite", {.fibres = 3, .rows = 80}},
    {"with a tail", {.fibres = 3, .rows = 80, .tail = true}},
    {"two cores", {.fibres = 3, .rows = 80, .spots = SceneSpots::kTwoCores}},
    {"a grid of images", {.fibres = 3, .rows = 80, .spots = SceneSpots::kImageGrid}},
    {"one image", {.fibres = 3, .rows = 80, .spots = SceneSpots::kOneImage}},
    {"polynomials", {.fibres = 3, .rows = 80, .spots = SceneSpots::kPolynomials}}};

// Compares spots of all fibres on a grid that begins before and ends after the wavelengths of the PSF.
constexpr double kBeyond = 8;
void ExpectSpotsEqualReference(const Psf& psf) {
  const WavelengthGrid grid = {psf.wave_min - kBeyond, 0.7, 91};
  ASSERT_GT(grid.last(), psf.wave_max + 0.5 * kBeyond);
  Spots spots;
  ASSERT_TRUE(spots.Evaluate(psf, grid, {0, psf.fibres}));
  Spot expected;
  for (int i = 0; i < psf.fibres; ++i) {
    const bool is_empty = std::visit([i](const auto& model) { return model.IsEmptyFibre(i); }, psf.spots);
    for (int j = 0; j < grid.count; ++j) {
      EvaluateSpot(psf, i, grid.Wave(j), &expected);
      ASSERT_EQ(spots.first_column(i, j), expected.first_column);
      ASSERT_EQ(spots.first_row(i, j), expected.first_row);
      double sum = 0;
      for (size_t k = 0; k < expected.values.size(); ++k) {
        ASSERT_NEAR(spots.Spot(i, j)[k], expected.values[k], 2e-15)
            << "fibre " << i << " bin " << j << " pixel " << k;
        ASSERT_GE(spots.Spot(i, j)[k], 0);
        sum += spots.Spot(i, j)[k];
      }
      EXPECT_NEAR(sum, is_empty ? 0 : 1, 1e-13) << "fibre " << i << " bin " << j;
    }
  }
}

class SpotStage : public OnEveryTarget {};

TEST_P(SpotStage, EqualsTheFormulaOfEveryModel) {
  for (const auto& [name, options] : kModels) {
    SCOPED_TRACE(name);
    ExpectSpotsEqualReference(*MakeScenePsf(options));
  }
}

// Products of spots read whole vectors, even beyond the last spot made so far. Memory left by another frame
// may hold anything there.
TEST_P(SpotStage, IsFollowedByNumbersWhileTheNextSpotsAreToCome) {
  const auto psf = MakeScenePsf(kModels[0].second);
  const WavelengthGrid grid = {psf->wave_min + 1, 0.7, 45};
  const int last = psf->fibres - 1, pixels = psf->stamp().pixels();
  Spots spots;
  ASSERT_TRUE(spots.Evaluate(*psf, grid, {0, psf->fibres}));
  auto* const left = const_cast<double*>(spots.Spot(0, 0));
  std::fill(left, left + int64_t{grid.count} * psf->fibres * pixels + Spots::kSlack, NAN);
  int calls = 0;
  ASSERT_TRUE(spots.Evaluate(*psf, grid, {0, psf->fibres}, {}, [&](int bins) {
    ++calls;
    const double* const behind = spots.Spot(last, bins - 1) + pixels;
    EXPECT_TRUE(
        std::all_of(behind, behind + Spots::kSlack, [](double value) { return std::isfinite(value); }))
        << "behind bin " << bins - 1;
  }));
  EXPECT_GT(calls, 1);
}

TEST_P(SpotStage, IsZeroForAnEmptyFibreOfEveryModel) {
  for (const auto& [name, options] : kModels) {
    SCOPED_TRACE(name);
    const auto psf = MakeScenePsf(options);
    std::visit([](auto& model) { model.EmptyFibre(1); }, psf->spots);
    ExpectSpotsEqualReference(*psf);
  }
}

// At positions beyond the range of integers, or without a position, a spot still has finite values.
TEST_P(SpotStage, HoldsFarOffTheCcd) {
  for (const auto& [name, options] : kModels) {
    for (const double away : {-1e5, 1e7, -1e12, 1e30, -1e300}) {
      SCOPED_TRACE(::testing::Message() << name << " " << away);
      const auto psf = MakeScenePsf(options);
      psf->traces.x.coeff(0, 0) = psf->traces.y.coeff(1, 0) = away;
      const WavelengthGrid grid = {psf->wave_min, 0.7, 40};
      Spots spots;
      ASSERT_TRUE(spots.Evaluate(*psf, grid, {0, psf->fibres}));
      for (int i = 0; i < psf->fibres; ++i) {
        for (int j = 0; j < grid.count; ++j) {
          double sum = 0;
          for (int k = 0; k < psf->stamp().pixels(); ++k) {
            ASSERT_GE(spots.Spot(i, j)[k], 0);
            sum += spots.Spot(i, j)[k];
          }
          ASSERT_TRUE(sum == 0 || std::abs(sum - 1) < 1e-13) << sum << " fibre " << i << " bin " << j;
        }
      }
    }
  }
}

TEST_P(SpotStage, IsEmptyWhereAWidthIsNotPositive) {
  for (const auto kind : {SceneSpots::kGaussHermite, SceneSpots::kTwoCores}) {
    const auto psf = MakeScenePsf({.fibres = 2, .rows = 80, .spots = kind});
    for (double& c : GaussHermite(*psf).cores.back().sigma_y.coeff.Row(1)) c = -1;
    const WavelengthGrid grid = {psf->wave_min + 3, 0.7, 10};
    Spots spots;
    ASSERT_TRUE(spots.Evaluate(*psf, grid, {0, 2}));
    for (int k = 0; k < psf->stamp().pixels(); ++k) EXPECT_EQ(spots.Spot(1, 4)[k], 0);
  }
}

SPEXD_ON_EVERY_TARGET(SpotStage);

// ---- The formulas in plain code. Light is indexed by (row, column) of the CCD.

using Light = std::map<std::pair<int, int>, double>;

int FloorOf(double value) { return static_cast<int>(std::floor(value)); }

// Expects that the spot has this light, clipped at 0 and scaled to sum 1, and no other.
void ExpectSpotIs(const Psf& psf, int fibre, double wave, Light light) {
  double sum = 0;
  for (auto& [pixel, value] : light) sum += value = std::max(value, 0.0);
  Spot spot;
  EvaluateSpot(psf, fibre, wave, &spot);
  for (int y = 0; y < psf.spot_rows(); ++y) {
    for (int x = 0; x < psf.spot_columns(); ++x) {
      const auto at = light.find({spot.first_row + y, spot.first_column + x});
      const double expected = at == light.end() ? 0 : at->second / sum;
      if (at != light.end()) light.erase(at);
      ASSERT_NEAR(spot.values[y * psf.spot_columns() + x], expected, 1e-13)
          << "fibre " << fibre << " at " << wave << ": row " << y << " column " << x;
    }
  }
  for (const auto& [pixel, value] : light) ASSERT_EQ(value, 0) << "off the stamp";
}

// Returns wavelengths inside and on either side of the PSF's range.
std::vector<double> Wavelengths(const Psf& psf) {
  std::vector<double> waves;
  for (double wave = psf.wave_min - 9.3; wave < psf.wave_max + 11; wave += 3.17) waves.push_back(wave);
  return waves;
}

// Returns the indices of the two numbers that a value lies between or beyond, with their weights.
std::map<int, double> LinearWeights(const std::vector<double>& numbers, double value) {
  const int last = static_cast<int>(numbers.size()) - 1;
  int low = 0;
  while (low < last - 1 && numbers[low + 1] < value) ++low;
  const double part = (value - numbers[low]) / (numbers[low + 1] - numbers[low]);
  return {{low, 1 - part}, {low + 1, part}};
}

// Puts each sample of the interpolated image on a CCD of the same pitch, sharing it between the two columns
// and rows that it covers, and sums the fine pixels into CCD pixels.
Light PlaceLinearly(const SampledImages& images, const std::map<int, double>& weights, double x, double y) {
  const int n = images.oversampling;
  const double left = n * (x + 0.5) - (images.centre_x + 0.5), low = n * (y + 0.5) - (images.centre_y + 0.5);
  Light light;
  for (int row = 0; row < images.rows(); ++row) {
    for (int column = 0; column < images.columns(); ++column) {
      double value = 0;
      for (const auto& [image, weight] : weights) value += weight * images.samples(image, row, column);
      const int fine_x = FloorOf(left + column), fine_y = FloorOf(low + row);
      const double part_x = left + column - fine_x, part_y = low + row - fine_y;
      for (int dy : {0, 1}) {
        for (int dx : {0, 1}) {
          light[{FloorOf((fine_y + dy) / (1.0 * n)), FloorOf((fine_x + dx) / (1.0 * n))}] +=
              value * (dx ? part_x : 1 - part_x) * (dy ? part_y : 1 - part_y);
        }
      }
    }
  }
  return light;
}

TEST(ImageGrid, IsInterpolatedBetweenFourImagesAndShiftedLinearly) {
  const auto psf = MakeScenePsf({.fibres = 4, .rows = 80, .spots = SceneSpots::kImageGrid});
  const SampledImages images = GridImages();
  const auto& spots = std::get<SampledSpots>(psf->spots);
  bool beyond = false;
  for (int fibre = 0; fibre < psf->fibres; ++fibre) {
    for (const double wave : Wavelengths(*psf)) {
      std::map<int, double> weights;
      for (const auto& [p, of_position] : LinearWeights(spots.positions, spots.fibres[fibre].position)) {
        for (const auto& [w, of_wave] : LinearWeights(spots.wavelengths, wave)) {
          weights[p * kGridSide + w] = of_position * of_wave;
          beyond |= of_wave < 0;
        }
      }
      ExpectSpotIs(*psf, fibre, wave,
                   PlaceLinearly(images, weights, Evaluate(psf->traces.x, fibre, wave),
                                 Evaluate(psf->traces.y, fibre, wave)));
    }
  }
  EXPECT_TRUE(beyond);
}

TEST(ImageGrid, OfOneImageIsThatImageEverywhere) {
  const auto psf = MakeScenePsf({.fibres = 2, .rows = 80, .spots = SceneSpots::kImageGrid});
  auto& spots = std::get<SampledSpots>(psf->spots);
  spots.layout.positions = spots.layout.wavelengths = spots.layout.images = 1;
  spots.positions.resize(1);
  spots.wavelengths.resize(1);
  for (const double wave : Wavelengths(*psf)) {
    ExpectSpotIs(*psf, 1, wave,
                 PlaceLinearly(GridImages(), {{0, 1.0}}, Evaluate(psf->traces.x, 1, wave),
                               Evaluate(psf->traces.y, 1, wave)));
  }
}

// Convolves a line with a damped sinc that is shifted by `shift`.
std::vector<double> Convolved(const std::vector<double>& line, double shift) {
  if (std::abs(shift) <= 1e-6) return line;
  const int count = static_cast<int>(line.size());
  std::vector<double> shifted(line.size(), 0.0);
  for (int to = 0; to < count; ++to) {
    for (int from = std::max(to - 10, 0); from <= std::min(to + 10, count - 1); ++from) {
      const double x = to - from - shift;
      const double sinc = x == 0 ? 1 : std::sin(std::numbers::pi * x) / (std::numbers::pi * x);
      shifted[to] += std::exp(-std::pow(x / 3.25, 2)) * sinc * line[from];
    }
  }
  return shifted;
}

// Shifts the light of a rectangle of pixels as one line, first row after row, then column after column.
Light ShiftedBySinc(Light light, int first_row, int rows, int first_column, int columns, double shift_x,
                    double shift_y) {
  std::vector<double> line;
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column)
      line.push_back(light[{first_row + row, first_column + column}]);
  }
  const std::vector<double> by_row = Convolved(line, shift_x);
  line.clear();
  for (int column = 0; column < columns; ++column) {
    for (int row = 0; row < rows; ++row) line.push_back(by_row[row * columns + column]);
  }
  const std::vector<double> by_column = Convolved(line, shift_y);
  Light shifted;
  for (int column = 0; column < columns; ++column) {
    for (int row = 0; row < rows; ++row)
      shifted[{first_row + row, first_column + column}] = by_column[column * rows + row];
  }
  return shifted;
}

// Bins the image at whole samples; a sinc shifts it by the remaining fraction of a sample.
Light PlaceOneImage(const SampledImages& image, const Stamp& stamp, double x, double y) {
  const int n = image.oversampling;
  const double left = n * (x + 0.5) - (image.centre_x + 0.5), low = n * (y + 0.5) - (image.centre_y + 0.5);
  Light binned;
  for (int row = 0; row < image.rows(); ++row) {
    for (int column = 0; column < image.columns(); ++column) {
      binned[{FloorOf((FloorOf(low) + row) / (1.0 * n)), FloorOf((FloorOf(left) + column) / (1.0 * n))}] +=
          image.samples(0, row, column);
    }
  }
  return ShiftedBySinc(binned, FloorOf(low / n), stamp.y.size, FloorOf(left / n), stamp.x.size,
                       (left - FloorOf(left)) / n, (low - FloorOf(low)) / n);
}

TEST(OneImage, IsBinnedAtWholeSamplesAndShiftedByASinc) {
  const auto psf = MakeScenePsf({.fibres = 3, .rows = 80, .spots = SceneSpots::kOneImage});
  const SampledImages image = OneImage();
  for (int fibre = 0; fibre < psf->fibres; ++fibre) {
    for (const double wave : Wavelengths(*psf)) {
      ExpectSpotIs(*psf, fibre, wave,
                   PlaceOneImage(image, psf->stamp(), Evaluate(psf->traces.x, fibre, wave),
                                 Evaluate(psf->traces.y, fibre, wave)));
    }
  }
}

// Gives a fibre constant traces.
void PutFibre(int fibre, double x, double y, Psf* psf) {
  for (const auto& [table, value] : {std::pair{&psf->traces.x, x}, std::pair{&psf->traces.y, y}}) {
    std::ranges::fill(table->coeff.Row(fibre), 0.0);
    table->coeff(fibre, 0) = value;
  }
}

TEST(OneImage, IsNotShiftedByLessThanAMillionthOfAPixel) {
  const auto psf = MakeScenePsf({.fibres = 1, .rows = 80, .spots = SceneSpots::kOneImage});
  const SampledImages image = OneImage();
  Spot at_a_sample, beside, further;
  PutFibre(0, 15, 40, psf.get());
  EvaluateSpot(*psf, 0, psf->wave_min, &at_a_sample);
  PutFibre(0, 15 + 0x1p-21, 40 + 0x1p-21, psf.get());
  EvaluateSpot(*psf, 0, psf->wave_min, &beside);
  PutFibre(0, 15 + 0x1p-19, 40 + 0x1p-19, psf.get());
  EvaluateSpot(*psf, 0, psf->wave_min, &further);
  EXPECT_EQ(beside.values, at_a_sample.values);
  EXPECT_NE(further.values, at_a_sample.values);
  ExpectSpotIs(*psf, 0, psf->wave_min, PlaceOneImage(image, psf->stamp(), 15 + 0x1p-19, 40 + 0x1p-19));
}

TEST(ImagePolynomials, AreOfTheScaledPositionOfAFibresGroup) {
  const auto psf = MakeScenePsf({.fibres = 4, .rows = 80, .spots = SceneSpots::kPolynomials});
  const SampledImages images = PolynomialImages();
  const auto& spots = std::get<SampledSpots>(psf->spots);
  for (int fibre = 0; fibre < psf->fibres; ++fibre) {
    const SampledFibre& of = spots.fibres[fibre];
    for (const double wave : Wavelengths(*psf)) {
      const double x = Evaluate(psf->traces.x, fibre, wave), y = Evaluate(psf->traces.y, fibre, wave);
      const double u = of.x_scale * (x - of.x0), v = of.y_scale * (y - of.y0);
      const int column = FloorOf(x + 0.5), row = FloorOf(y + 0.5);  // the pixel of the centre
      Light light;
      for (int k = 0; k < images.rows(); ++k) {
        for (int m = 0; m < images.columns(); ++m) {
          const auto sample = [&](int power) { return images.samples(4 * of.group + power, k, m); };
          light[{row + k - 5, column + m - 8}] =
              sample(0) + u * sample(1) + v * sample(2) + u * v * sample(3);
        }
      }
      ExpectSpotIs(*psf, fibre, wave, ShiftedBySinc(light, row - 5, 11, column - 8, 17, x - column, y - row));
    }
  }
}

// ---- Two cores

double HermitePolynomial(int degree, double u) {
  switch (degree) {
    case 0:
      return 1;
    case 1:
      return u;
    case 2:
      return u * u - 1;
    default:
      return u * u * u - 3 * u;
  }
}

// Integrates f over the pixel around (x, y) by Gauss's five-point rule in 4 x 4 parts of the pixel.
template <typename Function>
double OverPixel(double x, double y, const Function& f) {
  const double inner = std::sqrt(5 - 2 * std::sqrt(10.0 / 7)) / 3;
  const double outer = std::sqrt(5 + 2 * std::sqrt(10.0 / 7)) / 3;
  const double of_inner = (322 + 13 * std::sqrt(70)) / 900, of_outer = (322 - 13 * std::sqrt(70)) / 900;
  const std::pair<double, double> points[] = {
      {0, 128.0 / 225}, {inner, of_inner}, {-inner, of_inner}, {outer, of_outer}, {-outer, of_outer}};
  double sum = 0;
  for (int part = 0; part < 16; ++part) {
    const double middle_x = x - 0.375 + 0.25 * (part % 4), middle_y = y - 0.375 + 0.25 * (part / 4);
    for (const auto& [at_x, weight_x] : points) {
      for (const auto& [at_y, weight_y] : points)
        sum += weight_x * weight_y / 64 * f(middle_x + 0.125 * at_x, middle_y + 0.125 * at_y);
    }
  }
  return sum;
}

TEST(TwoCores, AreIntegratedOverPixelsTheFirstOneUpToItsCutoff) {
  const auto psf = MakeScenePsf({.fibres = 3, .rows = 80, .spots = SceneSpots::kTwoCores});
  const GaussHermiteSpots& spots = GaussHermite(*psf);
  int pixels_cut = 0;
  for (int fibre = 0; fibre < psf->fibres; ++fibre) {
    for (const double wave : Wavelengths(*psf)) {
      const auto at = [&](const LegendreTable& table) { return Evaluate(table, fibre, wave); };
      const double x = at(psf->traces.x), y = at(psf->traces.y);
      Light light;
      for (int row = FloorOf(y + 0.5) - 5; row <= FloorOf(y + 0.5) + 5; ++row) {
        for (int column = FloorOf(x + 0.5) - 8; column <= FloorOf(x + 0.5) + 8; ++column) {
          const double tail_x = (column - x) * at(spots.tail_scale_x);
          const double tail_y = (row - y) * at(spots.tail_scale_y);
          const double r2 = tail_x * tail_x + tail_y * tail_y;
          const double core2 = std::pow(at(spots.tail_core), 2);
          double value = at(spots.tail_amplitude) * r2 / std::pow(core2 + r2, 1 + 0.5 * at(spots.tail_index));
          for (const GaussHermiteCore& core : spots.cores) {
            const double sigma_x = at(core.sigma_x), sigma_y = at(core.sigma_y);
            if (&core == &spots.core() &&
                std::hypot((column - x) / sigma_x, (row - y) / sigma_y) >= at(spots.cutoff)) {
              ++pixels_cut;
              continue;
            }
            value += OverPixel(column, row, [&](double at_x, double at_y) {
              const double u = (at_x - x) / sigma_x, v = (at_y - y) / sigma_y;
              double polynomial = 0;
              for (const GaussHermiteTerm& term : core.terms) {
                polynomial += at(term.amplitude) * HermitePolynomial(term.degree_x, u) *
                              HermitePolynomial(term.degree_y, v);
              }
              return polynomial * std::exp(-0.5 * (u * u + v * v)) /
                     (2 * std::numbers::pi * sigma_x * sigma_y);
            });
          }
          light[{row, column}] = value;
        }
      }
      ExpectSpotIs(*psf, fibre, wave, light);
    }
  }
  EXPECT_GT(pixels_cut, 1000);
}

}  // namespace
}  // namespace spexd::cpu
