#include "core/frame/frame_assembler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/extract/rounding.h"
#include "core/frame/bundle_spectra.h"
#include "tests/support/matchers.h"

namespace spexd {
namespace {

const WavelengthGrid kGrid = {6000, 0.8, 7};
constexpr uint32_t kNoDataBits = kMaskNoData | kMaskSomeBadPix | kMaskAllBadPix;

// Returns spectra whose values encode fibre and bin.
BundleResult MakeResult(int bundle, FibreRange fibres, int64_t bins = kGrid.count) {
  const int64_t n = fibres.count;
  BundleResult result;
  result.bundle = bundle;
  result.fibres = fibres;
  result.flux.Assign({n, bins});
  result.ivar.Assign({n, bins});
  result.mask.Assign({n, bins});
  result.resolution.Assign({n, kResolutionDiagonals, bins});
  result.chi2pix.Assign({n, bins});
  result.pixmask.Assign({n, bins});
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < bins; ++j) {
      const double tag = 100.0 * static_cast<double>(fibres.first + i) + static_cast<double>(j);
      result.flux(i, j) = tag;
      result.ivar(i, j) = tag + 1;
      result.chi2pix(i, j) = 1;
      for (int64_t d = 0; d < kResolutionDiagonals; ++d) {
        result.resolution(i, d, j) = tag + 0.01 * static_cast<double>(d);
      }
    }
  }
  return result;
}

BundleSpectra MakeBundle(int bundle, FibreRange fibres) {
  return ToBundleSpectra(MakeResult(bundle, fibres));
}

TEST(ToBundleSpectra, RoundsToFloat) {
  BundleResult result = MakeResult(3, {75, 2});
  result.flux(1, 2) = 1.0 / 3;
  result.mask(0, 1) = kMaskSomeBadPix;
  result.model.first_column = 4;
  result.model.pixels.Assign({5, 6}, 1);
  const BundleSpectra bundle = ToBundleSpectra(result);
  EXPECT_EQ(bundle.bundle, 3);
  EXPECT_EQ(bundle.fibres, (FibreRange{75, 2}));
  EXPECT_EQ(bundle.spectra.flux(1, 2), 1.0f / 3);
  EXPECT_EQ(bundle.spectra.ivar(0, 0), 7501);
  EXPECT_EQ(bundle.spectra.mask(0, 1), kMaskSomeBadPix);
  EXPECT_EQ(bundle.spectra.resolution(0, 10, 3), 7503.1f);
  EXPECT_EQ(bundle.model.pixels.size(), 30);
}

// A tiny ivar beside masked pixels underflows, a huge flux overflows. Such bins get NODATA; no bin has ivar 0
// with mask 0, or NaN.
TEST(ToBundleSpectra, LeavesNoBinWithIvarZeroAndMaskZero) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  BundleResult result = MakeResult(0, {0, 1});
  result.ivar(0, 0) = 1e-60;
  result.flux(0, 1) = 1e60;
  result.ivar(0, 2) = 1e60;
  result.flux(0, 3) = std::numeric_limits<double>::quiet_NaN();
  result.flux(0, 4) = -kInfinity;
  result.ivar(0, 5) = std::numeric_limits<double>::quiet_NaN();
  result.chi2pix(0, 6) = 1e60;
  result.resolution(0, 3, 6) = std::numeric_limits<double>::quiet_NaN();
  const Spectra spectra = ToBundleSpectra(result).spectra;
  for (int64_t j = 0; j < 6; ++j) {
    EXPECT_EQ(spectra.flux(0, j), 0) << j;
    EXPECT_EQ(spectra.ivar(0, j), 0) << j;
    EXPECT_EQ(spectra.chi2pix(0, j), 0) << j;
    EXPECT_EQ(spectra.mask(0, j), kNoDataBits) << j;
  }
  EXPECT_EQ(spectra.mask(0, 6), 0);
  for (const float value : spectra.chi2pix.flat()) EXPECT_TRUE(std::isfinite(value));
  for (const float value : spectra.resolution.flat()) EXPECT_TRUE(std::isfinite(value));
}

TEST(ToBundleSpectra, TakesWhatTheEngineRounded) {
  BundleResult result = MakeResult(3, {75, 2});
  KeepFloat32(&result);
  result.spectra.flux(1, 2) = 42;
  const BundleSpectra bundle = ToBundleSpectra(result);
  EXPECT_EQ(bundle.fibres, (FibreRange{75, 2}));
  EXPECT_TRUE(bundle.spectra == result.spectra);
}

TEST(FrameAssembler, PutsABundleInItsPlace) {
  FrameAssembler assembler(kGrid, {13, 19});  // fibres 13-31: 13-24 of bundle 0, 25-31 of bundle 1
  EXPECT_FALSE(assembler.complete());
  ASSERT_TRUE(assembler.Add(MakeBundle(1, {25, 7})).ok());
  EXPECT_FALSE(assembler.complete());
  ASSERT_TRUE(assembler.Add(MakeBundle(0, {13, 12})).ok());
  ASSERT_TRUE(assembler.complete());
  FrameOrigin origin;
  origin.input_image = "preproc.fits";
  const Frame frame = assembler.Finish(origin, assembler.Summarise(false));
  EXPECT_EQ(frame.grid, kGrid);
  EXPECT_EQ(frame.fibres, (FibreRange{13, 19}));
  EXPECT_EQ(frame.origin.input_image, "preproc.fits");
  EXPECT_FALSE(frame.scores.has_value());
  for (int64_t i = 0; i < 19; ++i) {
    EXPECT_EQ(frame.spectra.flux(i, 5), 100 * (13 + i) + 5);
    EXPECT_EQ(frame.spectra.ivar(i, 5), 100 * (13 + i) + 6);
    EXPECT_EQ(frame.spectra.resolution(i, 4, 2),
              static_cast<float>(100.0 * (13 + static_cast<double>(i)) + 2.04));
  }
}

TEST(FrameAssembler, GivesTheSameFrameInAnyOrder) {
  std::vector<BundleSpectra> bundles;
  for (int bundle = 0; bundle < 6; ++bundle) {
    bundles.push_back(MakeBundle(bundle, {5 * bundle, 5}));
    bundles.back().spectra.chi2pix(2, 3) = static_cast<float>(3 + 2 * bundle);
    // The sum of these values in float depends on their order.
    bundles.back().model.first_column = 3 * bundle;
    bundles.back().model.pixels.Assign({4, 8}, static_cast<float>(std::pow(-37.7, bundle) / 3));
  }
  bundles[4].status = absl::InternalError("singular");
  const unsigned seed = 20200219;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::optional<Frame> first;
  std::optional<Array<float, 2>> first_model;
  for (int repeat = 0; repeat < 10; ++repeat) {
    FrameAssembler assembler(kGrid, {0, 30}, 4, 30);
    for (const BundleSpectra& bundle : bundles) ASSERT_TRUE(assembler.Add(bundle).ok());
    const FrameSummary summary = assembler.Summarise(true);
    EXPECT_THAT(summary.failed_bundles, ElementsAre("bundle 4 (fibres 20-24): singular"));
    const Array<float, 2> model = assembler.Model();
    const Frame frame = assembler.Finish({}, summary);
    if (!first) {
      first = frame;
      first_model = model;
    }
    EXPECT_EQ(frame.spectra, first->spectra);
    EXPECT_EQ(frame.scores, first->scores);
    EXPECT_EQ(model, *first_model);
    std::shuffle(bundles.begin(), bundles.end(), random);
  }
}

TEST(FrameAssembler, GivesTheSameSummaryWithoutResolution) {
  FrameAssembler whole(kGrid, {0, 10}), summary = FrameAssembler::ForSummary(kGrid, {0, 10});
  BundleSpectra good = MakeBundle(0, {0, 5}), failed;
  good.spectra.chi2pix(2, 3) = 50;
  failed.bundle = 1;
  failed.fibres = {5, 5};
  failed.status = absl::InternalError("singular");
  for (FrameAssembler* assembler : {&whole, &summary}) {
    ASSERT_TRUE(assembler->Add(good).ok());
    ASSERT_TRUE(assembler->Add(failed).ok());
    ASSERT_TRUE(assembler->complete());
  }
  const FrameSummary a = whole.Summarise(true), b = summary.Summarise(true);
  EXPECT_FALSE(a.bad2dfit.empty());
  EXPECT_EQ(a.bad2dfit, b.bad2dfit);
  EXPECT_EQ(a.scores, b.scores);
  EXPECT_EQ(a.failed_bundles, b.failed_bundles);
  EXPECT_EQ(a.masked_bins, b.masked_bins);
  EXPECT_EQ(a.nodata_bins, b.nodata_bins);
}

TEST(FrameAssembler, TakesValuesThatWereWrittenInPlace) {
  FrameAssembler copied(kGrid, {0, 5}), in_place(kGrid, {0, 5});
  BundleSpectra bundle = MakeBundle(0, {0, 5});
  ASSERT_TRUE(copied.Add(bundle).ok());
  *in_place.spectra() = std::move(bundle.spectra);
  bundle.spectra = Spectra();
  EXPECT_FALSE(in_place.Add(bundle).ok()) << "they are not there";
  ASSERT_TRUE(in_place.Add(bundle, true).ok());
  ASSERT_TRUE(in_place.complete());
  const FrameSummary summary = copied.Summarise(true);
  EXPECT_TRUE(in_place.Finish({}, summary).spectra == copied.Finish({}, summary).spectra);
}

TEST(FrameAssembler, SumsModelsInBundleOrder) {
  FrameAssembler assembler(kGrid, {0, 3}, 2, 5);
  for (const int bundle : {2, 0, 1}) {
    BundleSpectra spectra = MakeBundle(bundle, {bundle, 1});
    spectra.model.first_column = bundle;
    spectra.model.pixels.Assign({2, 3}, bundle == 0 ? 1e8f : bundle == 1 ? 1.0f : -1e8f);
    ASSERT_TRUE(assembler.Add(spectra).ok());
  }
  const float sum = (1e8f + 1.0f) + -1e8f;
  EXPECT_THAT(assembler.Model().Row(1), ElementsAre(1e8f, 1e8f + 1.0f, sum, 1.0f + -1e8f, -1e8f));
}

TEST(FrameAssembler, RefusesWhatDoesNotFit) {
  FrameAssembler assembler(kGrid, {10, 10}, 4, 30);
  const auto message = [&](const BundleSpectra& bundle) {
    const absl::Status status = assembler.Add(bundle);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  const auto with_model = [](BundleSpectra bundle, int first_column, int64_t rows) {
    bundle.model.first_column = first_column;
    bundle.model.pixels.Assign({rows, 8});
    return bundle;
  };
  EXPECT_THAT(message(MakeBundle(0, {9, 5})), HasSubstr("5 fibres from 9, the frame has fibres 10 to 19"));
  EXPECT_THAT(message(MakeBundle(0, {18, 3})), HasSubstr("3 fibres from 18"));
  EXPECT_THAT(message(MakeBundle(0, {10, 0})), HasSubstr("0 fibres"));
  EXPECT_THAT(message(ToBundleSpectra(MakeResult(1, {10, 5}, 8))),
              AllOf(HasSubstr("bundle 1"), HasSubstr("flux has 8 elements, must have 7")));
  BundleSpectra thin = MakeBundle(0, {10, 5});
  thin.spectra.resolution.Assign({5, 9, kGrid.count});
  EXPECT_THAT(message(thin), HasSubstr("resolution has 9 elements, must have 11"));
  EXPECT_THAT(message(with_model(MakeBundle(0, {10, 5}), 0, 3)),
              HasSubstr("model has 3 elements, must have 4"));
  EXPECT_THAT(message(with_model(MakeBundle(0, {10, 5}), 23, 4)), HasSubstr("model columns 23 to 30"));
  EXPECT_THAT(message(with_model(MakeBundle(0, {10, 5}), -1, 4)), HasSubstr("model columns -1"));
  EXPECT_THAT(message(MakeBundle(0, {10, 5})), HasSubstr("model"));
  ASSERT_TRUE(assembler.Add(with_model(MakeBundle(0, {10, 5}), 0, 4)).ok());
  EXPECT_THAT(message(with_model(MakeBundle(1, {14, 5}), 0, 4)), HasSubstr("fibre 14 came before"));
  EXPECT_FALSE(assembler.complete());
}

TEST(FrameAssembler, MakesAFailedBundleNoData) {
  FrameAssembler assembler(kGrid, {0, 4}, 4, 30);
  BundleSpectra good = MakeBundle(0, {0, 2}), failed;
  good.model.pixels.Assign({4, 8}, 1);
  failed.bundle = 1;
  failed.fibres = {2, 2};
  failed.status = absl::InternalError("not positive definite");
  ASSERT_TRUE(assembler.Add(failed).ok());
  ASSERT_TRUE(assembler.Add(good).ok());
  const FrameSummary summary = assembler.Summarise(true);
  EXPECT_THAT(summary.failed_bundles, ElementsAre("bundle 1 (fibres 2-3): not positive definite"));
  EXPECT_EQ(summary.nodata_bins, 2 * kGrid.count);
  EXPECT_EQ(summary.masked_bins, 2 * kGrid.count);
  const Frame frame = assembler.Finish({}, summary);
  EXPECT_THAT(frame.spectra.mask.Row(3), Each(kNoDataBits));
  EXPECT_THAT(frame.spectra.flux.Row(2), Each(0));
  EXPECT_THAT(frame.spectra.ivar.Row(2), Each(0));
  for (const float value : frame.spectra.resolution.flat()) EXPECT_TRUE(std::isfinite(value));
}

TEST(FrameAssembler, ReturnsAFrameThatIsMaskedWhole) {
  FrameAssembler assembler(kGrid, {0, 5});
  BundleResult result = MakeResult(0, {0, 5});
  for (double& value : result.flux.flat()) value = 0;
  for (double& value : result.ivar.flat()) value = 0;
  for (double& value : result.chi2pix.flat()) value = 0;
  for (uint32_t& mask : result.mask.flat()) mask = kNoDataBits;
  ASSERT_TRUE(assembler.Add(ToBundleSpectra(result)).ok());
  const FrameSummary summary = assembler.Summarise(true);
  EXPECT_THAT(summary.bad2dfit, IsEmpty());
  EXPECT_EQ(summary.nodata_bins, 5 * kGrid.count);
  ASSERT_TRUE(summary.scores.has_value());
  EXPECT_THAT(summary.scores->sum_counts, Each(0));
  EXPECT_THAT(summary.scores->median_snr, Each(0));
  EXPECT_THAT(assembler.Finish({}, summary).spectra.mask.flat(), Each(kNoDataBits));
}

TEST(FrameAssembler, TellsTheLargestResidualAndRootErrorInSummaryAndFrame) {
  FrameAssembler assembler(kGrid, {0, 50});
  BundleSpectra first = MakeBundle(0, {0, 25}), second = MakeBundle(1, {25, 25});
  first.residual = 3e-12;
  first.root_error = 1e-11;
  second.residual = 1e-12;
  second.root_error = 2e-11;
  ASSERT_TRUE(assembler.Add(second).ok());
  ASSERT_TRUE(assembler.Add(first).ok());
  const FrameSummary summary = assembler.Summarise(false);
  EXPECT_EQ(summary.largest_residual, 3e-12);
  EXPECT_EQ(summary.largest_root_error, 2e-11);
  const FrameOrigin origin = assembler.Finish({}, summary).origin;
  EXPECT_EQ(origin.flux_residual, 3e-12);
  EXPECT_EQ(origin.root_error, 2e-11);
}

TEST(FrameAssembler, AppliesBad2dFitAndCountsIt) {
  FrameAssembler assembler(kGrid, {0, 5});
  BundleSpectra bundle = MakeBundle(0, {0, 5});
  bundle.spectra.chi2pix(1, 2) = 10;
  bundle.spectra.chi2pix(3, 4) = 10;
  bundle.spectra.mask(3, 4) = kMaskSomeBadPix;
  ASSERT_TRUE(assembler.Add(bundle).ok());
  FrameSummary summary = assembler.Summarise(true);
  EXPECT_THAT(summary.bad2dfit, ElementsAre(1 * 7 + 2, 3 * 7 + 4));
  EXPECT_EQ(summary.masked_bins, 2);
  EXPECT_EQ(summary.nodata_bins, 0);
  ASSERT_TRUE(summary.scores.has_value());
  EXPECT_EQ(summary.scores->band, 'R');
  summary.bad2dfit.push_back(1 << 20);  // a summary that was received may have any values
  const Frame frame = assembler.Finish({}, summary);
  EXPECT_EQ(frame.spectra.mask(1, 2), kMaskBad2dFit);
  EXPECT_EQ(frame.spectra.mask(3, 4), kMaskBad2dFit | kMaskSomeBadPix);
  EXPECT_EQ(frame.spectra.mask(0, 0), 0);
  EXPECT_EQ(frame.scores->sum_counts, summary.scores->sum_counts);
}

}  // namespace
}  // namespace spexd
