#include "core/frame/summary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "core/base/median.h"
#include "tests/support/matchers.h"

namespace spexd {
namespace {

Spectra Flat(int64_t fibres, int64_t bins, float chi2pix) {
  Spectra spectra;
  spectra.flux.Assign({fibres, bins}, 1);
  spectra.ivar.Assign({fibres, bins}, 1);
  spectra.mask.Assign({fibres, bins});
  spectra.resolution.Assign({fibres, kResolutionDiagonals, bins});
  spectra.chi2pix.Assign({fibres, bins}, chi2pix);
  return spectra;
}

TEST(Bad2dFit, IsWhatAllMediansSay) {
  std::mt19937 random(20200220);
  Spectra spectra = Flat(31, 300, 1);
  for (int64_t k = 0; k < spectra.chi2pix.size(); ++k) {
    spectra.chi2pix.data()[k] =
        std::exp(std::normal_distribution<float>(0, k % 7 == 0 ? 2.0f : 0.3f)(random));
    if (k % 11 == 0) spectra.mask.data()[k] = kMaskNoData;
    if (k % 97 == 0) spectra.chi2pix.data()[k] = std::numeric_limits<float>::infinity();
  }
  const auto median = [&](int64_t first, int64_t count, int64_t step) {
    std::vector<double> values;
    for (int64_t k = 0; k < count; ++k) {
      const int64_t at = first + k * step;
      if (spectra.mask.data()[at] == 0 && std::isfinite(spectra.chi2pix.data()[at]))
        values.push_back(spectra.chi2pix.data()[at]);
    }
    return Median(values);
  };
  std::vector<int64_t> expected;
  for (int64_t i = 0; i < 31; ++i) {
    for (int64_t j = 0; j < 300; ++j) {
      const double value = spectra.chi2pix(i, j);
      if (spectra.mask(i, j) == 0 && std::isfinite(value) && value > 5 * median(i * 300, 300, 1) &&
          value > 5 * median(j, 31, 300)) {
        expected.push_back(i * 300 + j);
      }
    }
  }
  EXPECT_GT(expected.size(), 100u);
  EXPECT_EQ(FindBad2dFit(spectra), expected);
}

TEST(Bad2dFit, NeedsBothMedians) {
  Spectra spectra = Flat(9, 11, 1);
  // All fibres are bad at one wavelength, and one fibre is bad at all: neither stands out both ways.
  for (int64_t i = 0; i < 9; ++i) spectra.chi2pix(i, 3) = 50;
  for (int64_t j = 0; j < 11; ++j) spectra.chi2pix(4, j) = 50;
  spectra.chi2pix(2, 7) = 5.01f;
  spectra.chi2pix(6, 0) = 5.0f;
  spectra.chi2pix(8, 10) = 1e9f;
  EXPECT_THAT(FindBad2dFit(spectra), ElementsAre(2 * 11 + 7, 8 * 11 + 10));
}

TEST(Bad2dFit, TakesMediansOverBinsWithData) {
  Spectra spectra = Flat(5, 5, 1);
  // If zeros were counted, the medians of bin 2 would be 0 and all of the bin would be bad.
  for (const int64_t i : {0, 1, 2}) {
    spectra.chi2pix(i, 2) = 0;
    spectra.mask(i, 2) = kMaskNoData;
  }
  EXPECT_THAT(FindBad2dFit(spectra), IsEmpty());
  spectra.chi2pix(4, 4) = 100;
  spectra.mask(4, 4) = kMaskNoData;
  EXPECT_THAT(FindBad2dFit(spectra), IsEmpty());
  spectra.mask(4, 4) = kMaskSomeBadPix;
  EXPECT_THAT(FindBad2dFit(spectra), ElementsAre(24));
}

TEST(Bad2dFit, IsSilentWithoutAnyData) {
  Spectra spectra = Flat(3, 4, 0);
  spectra.mask.Assign({3, 4}, kMaskNoData);
  EXPECT_THAT(FindBad2dFit(spectra), IsEmpty());
  EXPECT_THAT(FindBad2dFit(Flat(1, 1, 7)), IsEmpty());
}

TEST(Scores, PickTheBandByMeanWavelength) {
  EXPECT_EQ(BandOf({3600, 0.8, 2751}), 'B');
  EXPECT_EQ(BandOf({5760, 0.8, 2326}), 'R');
  EXPECT_EQ(BandOf({7520, 0.8, 2881}), 'Z');
  EXPECT_EQ(BandOf({5800, 1, 1}), 'B');
  EXPECT_EQ(BandOf({5800.5, 1, 1}), 'R');
  EXPECT_EQ(BandOf({7600, 1, 1}), 'Z');
}

// Expected values are from numpy: sum, median of flux / gradient(wave), median of sqrt(ivar / gradient(wave))
// * flux.
TEST(Scores, EqualNumpys) {
  const WavelengthGrid grid = {5790, 0.8, 40};  // 27 bins at 5800 Angstrom and above
  Spectra spectra = Flat(3, 40, 1);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 40; ++j) {
      spectra.flux(i, j) = static_cast<float>((i * 37 + j * 17) % 101 - 20);
      spectra.ivar(i, j) = static_cast<float>((i * 13 + j * 7) % 29) / 10.0f;
    }
  }
  spectra.mask.Assign({3, 40}, kMaskSomeBadPix);  // scores include masked bins
  const auto scores = ComputeScores(grid, spectra);
  ASSERT_TRUE(scores.has_value());
  EXPECT_EQ(scores->band, 'R');
  const double sums[] = {688, 879, 868};
  const double counts[] = {25.000000000008527, 46.249999999989484, 32.49999999999261};
  const double ratios[] = {18.761663242615633, 35.00000026076634, 25.80939770560838};
  for (int i = 0; i < 3; ++i) {
    EXPECT_DOUBLE_EQ(scores->sum_counts[i], sums[i]);
    EXPECT_NEAR(scores->median_counts[i], counts[i], 1e-10);
    EXPECT_NEAR(scores->median_snr[i], ratios[i], 1e-10);
  }
}

TEST(Scores, AreTheSameWhateverTheNumberOfThreads) {
  Spectra spectra = Flat(60, 40, 1);  // more than two blocks of fibres
  for (int i = 0; i < 60; ++i) {
    for (int j = 0; j < 40; ++j) spectra.flux(i, j) = static_cast<float>((i * 37 + j * 17) % 101 - 20);
  }
  const auto one = ComputeScores({6000, 0.8, 40}, spectra), five = ComputeScores({6000, 0.8, 40}, spectra, 5);
  ASSERT_TRUE(one.has_value() && five.has_value());
  EXPECT_EQ(five->sum_counts, one->sum_counts);
  EXPECT_EQ(five->median_counts, one->median_counts);
  EXPECT_EQ(five->median_snr, one->median_snr);
  EXPECT_NE(one->sum_counts[0], one->sum_counts[59]);
}

TEST(Scores, LeaveOutTheWindowsEnd) {
  const auto scores = ComputeScores({7598, 1, 3}, Flat(1, 3, 1));  // 7598, 7599, 7600
  ASSERT_TRUE(scores.has_value());
  EXPECT_EQ(scores->sum_counts[0], 2);
}

TEST(Scores, AreNoneOutsideTheWindow) {
  EXPECT_FALSE(ComputeScores({3600, 0.8, 10}, Flat(1, 10, 1)).has_value());
  EXPECT_FALSE(ComputeScores({9800, 0.8, 10}, Flat(1, 10, 1)).has_value());
}

}  // namespace
}  // namespace spexd
