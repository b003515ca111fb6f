// Bundles as engines return them: rounded, and cut to the requested fibres.
#include "core/extract/rounding.h"

#include "core/extract/bundle_trim.h"
#include "gtest/gtest.h"

namespace spexd {
namespace {

constexpr uint32_t kEmptyBinBits = kMaskNoData | kMaskAllBadPix | kMaskSomeBadPix;

BundleResult Failed() { return FailedBundle({10, 5}, 7, absl::InternalError("failed")); }

TEST(KeepFloat32, PutsTheRoundedResultInThePlaceOfTheOther) {
  BundleResult result = Failed();
  for (double& ivar : result.ivar.flat()) ivar = 1.0 / 3;
  const Spectra expected = RoundToFloat32(result);
  KeepFloat32(&result);
  EXPECT_TRUE(result.spectra == expected);
  EXPECT_EQ(result.spectra.ivar(4, 6), 1.0f / 3);
  EXPECT_TRUE(result.flux.empty() && result.ivar.empty() && result.mask.empty() &&
              result.resolution.empty() && result.chi2pix.empty() && result.pixmask.empty());
}

TEST(Trim, CutsTheFloat32SpectraToo) {
  BundleResult result = Failed();
  for (int i = 0; i < 5; ++i) {
    result.ivar(i, 6) = 1;
    result.flux(i, 6) = i;
  }
  KeepFloat32(&result);
  Trim({12, 2}, &result);
  EXPECT_EQ(result.fibres, (FibreRange{12, 2}));
  EXPECT_TRUE(result.flux.empty());
  EXPECT_EQ(result.spectra.flux.shape(), (Array<float, 2>::Shape{2, 7}));
  EXPECT_EQ(result.spectra.flux(0, 6), 2);
  EXPECT_EQ(result.spectra.flux(1, 6), 3);
  EXPECT_EQ(result.spectra.mask(1, 0), kEmptyBinBits);
  EXPECT_EQ(result.spectra.chi2pix.shape(0), 2);
  ASSERT_EQ(result.spectra.resolution.shape(), (Array<float, 3>::Shape{2, kResolutionDiagonals, 7}));
  EXPECT_EQ(result.spectra.resolution(1, kResolutionHalfWidth, 6), 1);
}

TEST(Trim, CutsTheFloat64Arrays) {
  BundleResult result = Failed();
  result.pixmask(3, 2) = 0.25;
  Trim({0, 14}, &result);
  EXPECT_EQ(result.fibres, (FibreRange{10, 4}));
  EXPECT_EQ(result.pixmask(3, 2), 0.25);
  EXPECT_EQ(result.mask.shape(0), 4);
  EXPECT_EQ(result.resolution.shape(0), 4);
  EXPECT_TRUE(result.spectra.flux.empty());
}

}  // namespace
}  // namespace spexd
