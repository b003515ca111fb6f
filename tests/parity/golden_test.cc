// Any engine's float64 results on a real PSF against golden and peer results.
#include "tests/parity/golden.h"

#include <cstdio>
#include <memory>

#include "absl/strings/str_cat.h"
#include "core/fits/source.h"
#include "gtest/gtest.h"
#include "tests/support/engine_runs.h"
#include "tests/support/engine_under_test.h"
#include "tests/support/goldens.h"

namespace spexd::testing {
namespace {

class GoldenTest : public EngineTest, public ::testing::WithParamInterface<int> {
 protected:
  BundleArrays Extract(const Scene& scene) {
    const int bundle = GetParam();
    Bundles bundles = RunJob(engine(), scene,
                             {.grid = ParseWavelengthGrid(kGoldenGrid).value(),
                              .bundle_size = kGoldenFibres,
                              .fibres = {bundle * kGoldenFibres, kGoldenFibres},
                              .psferr = scene.psf->psferr});
    EXPECT_EQ(bundles.count(bundle), 1u);
    BundleResult& result = bundles[bundle];
    BundleArrays arrays;
    arrays.flux = std::move(result.flux);
    arrays.ivar = std::move(result.ivar);
    arrays.resolution = std::move(result.resolution);
    arrays.mask.Assign(result.mask.shape());
    for (int64_t k = 0; k < result.mask.size(); ++k) arrays.mask.flat()[k] = result.mask.flat()[k];
    return arrays;
  }
};

std::string Name(const char* kind, int bundle) {
  return absl::StrCat("/", kind, "-r0-00051060-bundle", bundle < 10 ? "0" : "", bundle, ".fits");
}

class Golden : public GoldenTest {};

TEST_P(Golden, BundleEqualsTheSeamlessReference) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const Difference difference =
      Compare(Extract(ReadGoldenScene(folder)), ReadBundle(folder + Name("golden", GetParam())));
  std::printf("  pull %.2g sigma, sqrt(ivar) %.2g, resolution %.2g in %d bins\n", difference.pull,
              difference.sqrt_ivar, difference.resolution, static_cast<int>(difference.bins));
  EXPECT_GT(difference.bins, 57000);
  EXPECT_EQ(difference.masks, 0);
  EXPECT_LT(difference.pull, 1e-4);
  EXPECT_LT(difference.sqrt_ivar, 1e-6);
  EXPECT_LT(difference.resolution, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Bundles, Golden, ::testing::Values(0, 10, 19));

class Peer : public GoldenTest {};

TEST_P(Peer, BundleAgreesWithThePatchedExtraction) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const std::string peer = folder + Name("peer", GetParam());
  if (!GoldensAreRequired() && !Source::FromFile(peer).ok()) GTEST_SKIP() << "no peer file: " << peer;
  const Difference difference = Compare(Extract(ReadGoldenScene(folder)), ReadBundle(peer));
  std::printf("  %.3f %% within 0.01 sigma, %.3f %% within 0.05\n", 100 * difference.within_tenth,
              100 * difference.within_half);
  EXPECT_GT(difference.within_half, 0.999);
  EXPECT_GT(difference.within_tenth, 0.99);
}

INSTANTIATE_TEST_SUITE_P(Bundles, Peer, ::testing::Values(0, 10));

}  // namespace
}  // namespace spexd::testing
