#include "core/frame/fit_quality.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/support/matchers.h"

namespace spexd {
namespace {

constexpr int kFibres = 40, kBins = 500;

// Returns spectra with the chi2pix of a good fit: 0.85 chi-square / N for spots of N pixels.
Spectra GoodFit(double pixels, unsigned seed) {
  std::mt19937 random(seed);
  std::chi_squared_distribution<double> chi2(pixels);
  Spectra spectra;
  spectra.mask.Assign({kFibres, kBins});
  for (Array<float, 2>* plane : {&spectra.flux, &spectra.ivar, &spectra.chi2pix})
    plane->Assign({kFibres, kBins}, 1);
  for (float& value : spectra.chi2pix.flat()) value = static_cast<float>(0.85 * chi2(random) / pixels);
  return spectra;
}

FrameFit Measure(const Spectra& spectra) { return MeasureFit(spectra, FindBad2dFit(spectra)); }

float MedianOf(std::vector<float> values) {
  std::sort(values.begin(), values.end());
  return 0.5f * (values[(values.size() - 1) / 2] + values[values.size() / 2]);
}

TEST(FitQuality, IsNotBadInGoodFramesOfAnyPsfThatPixelsSample) {
  for (const double pixels : {9.0, 15.0, 40.0}) {
    for (unsigned seed = 1; seed <= 25; ++seed) {
      const FrameFit fit = Measure(GoodFit(pixels, seed));
      EXPECT_FALSE(fit.bad) << pixels << " pixels, seed " << seed;
      EXPECT_FALSE(WarnOfFit(fit, {0, kFibres}).has_value());
    }
  }
}

TEST(FitQuality, HasTheExactMedianAndOutliersOfBinsWithData) {
  Spectra spectra = GoodFit(9, 1);
  std::mt19937 random(2);
  std::vector<float> all, first;
  int outliers = 0;
  for (int64_t i = 0; i < kFibres; ++i) {
    for (int64_t j = 0; j < kBins; ++j) {
      spectra.chi2pix(i, j) *= static_cast<float>(i + 1);
      if (j % 9 == 0) spectra.chi2pix(i, j) = -0.001f;  // spots have negative wings
      if (random() % 5 == 0) {
        spectra.mask(i, j) = kMaskNoData;
        continue;
      }
      all.push_back(spectra.chi2pix(i, j));
      if (i == 0) first.push_back(spectra.chi2pix(i, j));
      outliers += spectra.chi2pix(i, j) > 1.88f ? 1 : 0;
    }
  }
  const FrameFit fit = MeasureFit(spectra, {});
  EXPECT_EQ(fit.all.median, MedianOf(all));
  EXPECT_EQ(fit.fibres[0].median, MedianOf(first));
  EXPECT_EQ(fit.all.bins, static_cast<int64_t>(all.size()));
  EXPECT_FLOAT_EQ(fit.all.outliers, static_cast<float>(outliers) / static_cast<float>(all.size()));
  EXPECT_EQ(MeasureFit(spectra, {}, 3), fit) << "of any number of threads";
}

TEST(FitQuality, WarnsOfAFibreWhoseMedianIsTooLargeAndNamesIt) {
  Spectra spectra = GoodFit(15, 1);
  for (float& value : spectra.chi2pix.Row(7)) value *= 1000;
  const FrameFit fit = Measure(spectra);
  EXPECT_TRUE(fit.bad);
  EXPECT_FALSE(fit.all.bad());
  const std::string warning = WarnOfFit(fit, {100, kFibres}).value_or("");
  EXPECT_THAT(warning, AllOf(HasSubstr("chi2pix"), HasSubstr("in 1 of 40 fibres"), HasSubstr("107 (median 8")));
}

TEST(FitQuality, WarnsOfBrightBinsThatDoNotFitWhereTheMedianIsGood) {
  Spectra spectra = GoodFit(15, 1);
  for (int64_t i = 0; i < kFibres; ++i)
    for (int64_t j = 0; j < kBins; j += 12) spectra.chi2pix(i, j) *= 10;
  const FrameFit fit = Measure(spectra);
  EXPECT_LT(fit.all.median, kGoodMedian);
  EXPECT_TRUE(fit.all.bad());
}

TEST(FitQuality, DoesNotCountCosmicRays) {
  Spectra spectra = GoodFit(15, 1);
  std::mt19937 random(3);
  for (int k = 0; k < kFibres * kBins / 10; ++k) spectra.chi2pix.data()[random() % (kFibres * kBins)] = 300;
  EXPECT_FALSE(Measure(spectra).bad);
}

TEST(FitQuality, DoesNotJudgeFewBins) {
  Spectra spectra = GoodFit(15, 1);
  std::fill(spectra.mask.flat().begin(), spectra.mask.flat().end(), kMaskNoData);
  for (int64_t j = 0; j < kMinBinsToJudge - 1; ++j) {
    spectra.mask(3, j) = 0;
    spectra.chi2pix(3, j) = 5;
  }
  FrameFit fit = Measure(spectra);
  EXPECT_EQ(fit.all.median, 5);
  EXPECT_FALSE(fit.bad);
  spectra.mask(3, kBins - 1) = 0;
  spectra.chi2pix(3, kBins - 1) = 5;
  EXPECT_TRUE(Measure(spectra).bad);
}

TEST(FitQuality, OfAFrameWithoutDataIsZero) {
  Spectra spectra = GoodFit(15, 1);
  std::fill(spectra.mask.flat().begin(), spectra.mask.flat().end(), kMaskNoData);
  EXPECT_EQ(Measure(spectra).all, FitQuality());
  EXPECT_THAT(DescribeFit(Measure(spectra), {0, kFibres}), Not(HasSubstr("worst")));
}

TEST(FitQuality, IsDescribedInOneLineWithTheWorstFibres) {
  FrameFit fit;
  fit.all = {.median = 0.8f, .outliers = 0.005f};
  for (const float median : {0.85f, 0.7f, 0.86f, 0.8f, 0.0f}) fit.fibres.push_back({.median = median});
  EXPECT_EQ(DescribeFit(fit, {25, 5}),
            "Fit: median chi2pix 0.80, 0.5 % of bins above 1.88 (in a good frame at most 1.00 and 5 %); worst "
            "fibres 27 (median 0.86), 25 (0.85), 28 (0.80)");
}

TEST(FitQuality, ComesWithHeaderAndScoresOfAFrame) {
  Frame frame;
  frame.scores.emplace();
  AddFit({.all = {.median = 0.8f, .outliers = 0.25f}, .fibres = {{.median = 1}, {.median = 2, .outliers = 0.5f}}},
         &frame);
  EXPECT_EQ(frame.origin.chi2pix_median, 0.8f);
  EXPECT_EQ(frame.origin.chi2pix_outliers, 0.25f);
  EXPECT_THAT(frame.scores->median_chi2pix, testing::ElementsAre(1, 2));
  EXPECT_THAT(frame.scores->outliers_chi2pix, testing::ElementsAre(0, 0.5));
}

}  // namespace
}  // namespace spexd
