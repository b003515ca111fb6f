// The engine's float64 results on a real PSF against golden and peer results.
#include "tests/parity/golden.h"

#include <cstdio>
#include <memory>

#include "absl/strings/str_cat.h"
#include "core/extract/cpu_engine.h"
#include "core/fits/readers.h"
#include "gtest/gtest.h"
#include "tests/support/goldens.h"

namespace spexd::testing {
namespace {

BundleArrays ExtractBundle(const std::string& folder, int bundle) {
  auto psf = ReadPsf(Source::FromFile(folder + kGoldenPsf).value());
  auto preproc = ReadPreproc(Source::FromFile(folder + kGoldenPreproc).value());
  EXPECT_TRUE(psf.ok()) << psf.status();
  EXPECT_TRUE(preproc.ok()) << preproc.status();
  const auto engine = MakeCpuEngine({.threads = 1});
  ExtractRequest request;
  request.psferr = psf->psferr;
  request.prepared = engine
                         ->Prepare(std::make_shared<Psf>(*std::move(psf)),
                                   ParseWavelengthGrid(kGoldenGrid).value(), kGoldenFibres)
                         .value();
  request.image = std::make_shared<Image>(std::move(preproc->image));
  request.fibres = {bundle * kGoldenFibres, kGoldenFibres};
  BundleArrays arrays;
  const auto times = engine->Extract(request, [&](BundleResult result) {
    arrays.flux = result.flux;
    arrays.ivar = result.ivar;
    arrays.resolution = result.resolution;
    arrays.mask.Assign(result.mask.shape());
    for (int64_t k = 0; k < result.mask.size(); ++k) arrays.mask.flat()[k] = result.mask.flat()[k];
    return absl::OkStatus();
  });
  EXPECT_TRUE(times.ok()) << times.status();
  return arrays;
}

std::string Name(const char* kind, int bundle) {
  return absl::StrCat("/", kind, "-r0-00051060-bundle", bundle < 10 ? "0" : "", bundle, ".fits");
}

class Golden : public ::testing::TestWithParam<int> {};

TEST_P(Golden, BundleEqualsTheSeamlessReference) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const Difference difference =
      Compare(ExtractBundle(folder, GetParam()), ReadBundle(folder + Name("golden", GetParam())));
  std::printf("  pull %.2g sigma, sqrt(ivar) %.2g, resolution %.2g in %d bins\n", difference.pull,
              difference.sqrt_ivar, difference.resolution, static_cast<int>(difference.bins));
  EXPECT_GT(difference.bins, 57000);
  EXPECT_EQ(difference.masks, 0);
  EXPECT_LT(difference.pull, 1e-4);
  EXPECT_LT(difference.sqrt_ivar, 1e-6);
  EXPECT_LT(difference.resolution, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Bundles, Golden, ::testing::Values(0, 10, 19));

class Peer : public ::testing::TestWithParam<int> {};

TEST_P(Peer, BundleAgreesWithThePatchedExtraction) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const Difference difference =
      Compare(ExtractBundle(folder, GetParam()), ReadBundle(folder + Name("peer", GetParam())));
  std::printf("  %.3f %% within 0.01 sigma, %.3f %% within 0.05\n", 100 * difference.within_tenth,
              100 * difference.within_half);
  EXPECT_GT(difference.within_half, 0.999);
  EXPECT_GT(difference.within_tenth, 0.99);
}

INSTANTIATE_TEST_SUITE_P(Bundles, Peer, ::testing::Values(0, 10));

}  // namespace
}  // namespace spexd::testing
