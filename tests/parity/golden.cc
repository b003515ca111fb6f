#include "tests/parity/golden.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "core/fits/readers.h"
#include "core/model/frame.h"
#include "gtest/gtest.h"

namespace spexd::testing {

Scene ReadGoldenScene(const std::string& folder) {
  auto psf = ReadPsf(Source::FromFile(folder + kGoldenPsf).value());
  auto preproc = ReadPreproc(Source::FromFile(folder + kGoldenPreproc).value());
  EXPECT_TRUE(psf.ok()) << psf.status();
  EXPECT_TRUE(preproc.ok()) << preproc.status();
  return {std::make_shared<Psf>(std::move(psf).value()),
          std::make_shared<Image>(std::move(std::move(preproc).value().image))};
}

BundleArrays ReadBundle(const std::string& path) {
  BundleArrays bundle;
  const auto source = Source::FromFile(path);
  EXPECT_TRUE(source.ok()) << source.status();
  if (!source.ok()) return bundle;
  bundle.flux = ReadImageHduDouble(*source, "FLUX").value();
  bundle.ivar = ReadImageHduDouble(*source, "IVAR").value();
  if (auto mask = ReadImageHduDouble(*source, "MASK"); mask.ok()) {
    bundle.mask = *std::move(mask);
  } else {  // a peer's file has only the masked fraction
    bundle.mask = ReadImageHduDouble(*source, "PIXMASK").value();
    for (double& value : bundle.mask.flat()) value = value > 0.5 ? kMaskSomeBadPix : 0;
  }
  bundle.resolution = ReadCubeHduDouble(*source, "RESOLUTION").value();
  return bundle;
}

BundleArrays CutBundle(const BundleArrays& bundle, const FibreRange& fibres, int first_bin, int bins) {
  BundleArrays cut;
  for (auto* array : {&cut.flux, &cut.ivar, &cut.mask}) array->Assign({fibres.count, bins});
  cut.resolution.Assign({fibres.count, kResolutionDiagonals, bins});
  if (!bundle.beside.empty()) cut.beside.Assign({fibres.count, bins});
  for (int i = 0; i < fibres.count; ++i) {
    for (int j = 0; j < bins; ++j) {
      const int fibre = fibres.first + i, bin = first_bin + j;
      cut.flux(i, j) = bundle.flux(fibre, bin);
      cut.ivar(i, j) = bundle.ivar(fibre, bin);
      if (!bundle.beside.empty()) cut.beside(i, j) = bundle.beside(fibre, bin);
      cut.mask(i, j) = static_cast<uint32_t>(bundle.mask(fibre, bin)) & kMaskNoData;
      for (int d = 0; d < kResolutionDiagonals; ++d)
        cut.resolution(i, d, j) = bundle.resolution(fibre, d, bin);
    }
  }
  return cut;
}

Difference Compare(const BundleArrays& result, const BundleArrays& expected) {
  Difference difference;
  EXPECT_EQ(result.flux.shape(), expected.flux.shape());
  if (result.flux.shape() != expected.flux.shape()) return difference;
  int64_t tenth = 0, half = 0;
  for (int i = 0; i < result.flux.shape(0); ++i) {
    for (int j = 0; j < result.flux.shape(1); ++j) {
      const auto mask = static_cast<uint32_t>(result.mask(i, j)) & ~kMaskBad2dFit;
      const auto expected_mask = static_cast<uint32_t>(expected.mask(i, j)) & ~kMaskBad2dFit;
      difference.masks += mask != expected_mask;
      if (mask != 0 || expected_mask != 0 || (!result.beside.empty() && result.beside(i, j))) continue;
      ++difference.bins;
      const double sigma = std::sqrt(expected.ivar(i, j));
      const double pull = std::abs(result.flux(i, j) - expected.flux(i, j)) * sigma;
      difference.pull = std::max(difference.pull, pull);
      tenth += pull < 0.01;
      half += pull < 0.05;
      difference.rounding = std::max(difference.rounding, 6e-8 * std::abs(expected.flux(i, j)) * sigma);
      difference.sqrt_ivar =
          std::max(difference.sqrt_ivar, std::abs(std::sqrt(result.ivar(i, j)) / sigma - 1));
      for (int d = 0; d < kResolutionDiagonals; ++d) {
        difference.resolution = std::max(difference.resolution,
                                         std::abs(result.resolution(i, d, j) - expected.resolution(i, d, j)));
      }
    }
  }
  difference.within_hundredth = static_cast<double>(tenth) / difference.bins;
  difference.within_twentieth = static_cast<double>(half) / difference.bins;
  return difference;
}

}  // namespace spexd::testing
