#include "core/model/low_pass.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "tests/support/matchers.h"

namespace spexd {
namespace {

using ::testing::IsNan;

const WavelengthGrid kGrid{6000, 0.8, 100};

// Returns wavelengths from 20 bins before the grid to 20 bins after it.
std::vector<double> Wavelengths(double step) {
  std::vector<double> wave;
  for (double at = 5984; at < 6096; at += step) wave.push_back(at);
  return wave;
}

std::vector<double> Sine(const std::vector<double>& wave, double cycles_per_bin) {
  std::vector<double> flux;
  for (const double at : wave)
    flux.push_back(std::cos(2 * std::numbers::pi * cycles_per_bin * (at - 6000.3) / kGrid.step));
  return flux;
}

double LargestDifference(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (size_t k = 0; k < a.size(); ++k) most = std::max(most, std::abs(a[k] - b[k]));
  return most;
}

std::vector<double> Filtered(const std::vector<double>& wave, const std::vector<double>& flux) {
  return LowPass(wave, kGrid).Apply(absl::MakeConstSpan(flux));
}

TEST(LowPass, KeepsWhatBinsCanHoldAndNothingElse) {
  const std::vector<double> wave = Wavelengths(0.2);
  for (const double cycles : {0.0, 0.1, 0.3, 0.4}) {
    EXPECT_LT(LargestDifference(Filtered(wave, Sine(wave, cycles)), Sine(kGrid.Values(), cycles)), 3e-3)
        << cycles;
  }
  for (const double cycles : {0.53, 0.7, 1.0, 1.9}) {
    EXPECT_LT(LargestDifference(Filtered(wave, Sine(wave, cycles)), std::vector<double>(100, 0)), 3e-3)
        << cycles;
  }
}

TEST(LowPass, SamplesNeedNotBeUniform) {
  std::vector<double> wave;
  for (double at = 5984; at < 6096; at *= 1 + 2e-5 * (1 + 0.3 * std::sin(at))) wave.push_back(at);
  EXPECT_LT(LargestDifference(Filtered(wave, Sine(wave, 0.3)), Sine(kGrid.Values(), 0.3)), 3e-3);
}

TEST(LowPass, CoarserSamplesAreInterpolated) {
  const std::vector<double> wave = Wavelengths(1.6);
  EXPECT_LT(LargestDifference(Filtered(wave, Sine(wave, 0.1)), Sine(kGrid.Values(), 0.1)), 5e-3);
}

TEST(LowPass, BinsThatSamplesDoNotCoverAreNan) {
  const std::vector<double> wave = {6007.6, 6007.8, 6008, 6008.2, 6008.4, 6008.6, 6008.8};
  const std::vector<double> values = Filtered(wave, std::vector<double>(wave.size(), 7));
  for (int bin = 0; bin < kGrid.count; ++bin) {
    if (bin == 10) {
      EXPECT_NEAR(values[bin], 7, 1e-12) << "its whole width lies between 6007.5 and 6008.9";
    } else {
      EXPECT_THAT(values[bin], IsNan()) << bin;
    }
  }
  EXPECT_THAT(Filtered({6000}, {1}), Each(IsNan()));
  EXPECT_THAT(Filtered(Wavelengths(0.2), std::vector<double>(Wavelengths(0.2).size(), 1)),
              Each(Not(IsNan())));
}

}  // namespace
}  // namespace spexd
