// Tests of any engine through its interface: fibre ranges, determinism, cancellation, errors.
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "core/frame/bundle_spectra.h"
#include "core/model/frame.h"
#include "tests/support/matchers.h"
#include "tests/support/scenes/engine_runs.h"
#include "tests/support/scenes/engine_under_test.h"

namespace spexd::testing {
namespace {

class EngineJobs : public EngineTest {
 protected:
  // Makes a request with as many bundles as fibres.
  ExtractRequest Request(int fibres) {
    const Scene scene = MakeScene({.fibres = fibres, .rows = 60, .bundle_size = 1});
    ExtractRequest request;
    auto prepared = engine()->Prepare(scene.psf, {6006, 0.8, 20}, 1);
    EXPECT_TRUE(prepared.ok()) << prepared.status();
    if (prepared.ok()) request.prepared = *std::move(prepared);
    request.image = scene.image;
    request.fibres = {0, fibres};
    return request;
  }
};

TEST_F(EngineJobs, SayWhatRunsThem) {
  EXPECT_FALSE(engine()->Info().kind.empty());
  EXPECT_FALSE(engine()->Info().device.empty());
  EXPECT_TRUE(engine()->Health().ok()) << engine()->Health();
}

TEST_F(EngineJobs, TrimABundleThatTheRangeCuts) {
  const Scene scene = MakeScene({.fibres = 9, .rows = 60, .bundle_size = 4});
  RunOptions options = {.grid = {6006, 0.8, 30}, .bundle_size = 4};
  const Bundles all = RunJob(engine(), scene, options);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all.at(2).fibres, (FibreRange{8, 1}));
  options.fibres = {3, 3};
  const Bundles some = RunJob(engine(), scene, options);
  ASSERT_EQ(some.size(), 2u);
  EXPECT_EQ(some.at(0).fibres, (FibreRange{3, 1}));
  EXPECT_EQ(some.at(1).fibres, (FibreRange{4, 2}));
  for (int j = 0; j < 30; ++j) {
    EXPECT_EQ(some.at(0).flux(0, j), all.at(0).flux(3, j));
    EXPECT_EQ(some.at(1).ivar(1, j), all.at(1).ivar(1, j));
    for (int d = 0; d < kResolutionDiagonals; ++d)
      EXPECT_EQ(some.at(1).resolution(0, d, j), all.at(1).resolution(0, d, j));
  }
}

TEST_F(EngineJobs, LoseAFibreWithoutSpotsAndNoOther) {
  Scene scene = MakeScene({.fibres = 9, .rows = 60, .bundle_size = 9});
  const RunOptions options = {.grid = {6006, 0.8, 30}, .bundle_size = 9};
  const Bundles whole = RunJob(engine(), scene, options);
  const auto psf = std::make_shared<Psf>(*scene.psf);
  for (double& coefficient : GaussHermite(*psf).core().sigma_y.coeff.Row(7)) coefficient = 0;
  scene.psf = psf;
  const Bundles lost = RunJob(engine(), scene, options);
  const BundleResult &all = whole.at(0), &rest = lost.at(0);
  for (int j = 0; j < 30; ++j) {
    EXPECT_EQ(rest.mask(7, j), kMaskSomeBadPix | kMaskAllBadPix | kMaskNoData);
    EXPECT_EQ(rest.flux(7, j), 0);
    EXPECT_EQ(rest.ivar(7, j), 0);
    for (int i = 0; i < 4; ++i) {  // far from the bad fibre's light, which no spot takes
      EXPECT_EQ(rest.mask(i, j), all.mask(i, j));
      EXPECT_NEAR(rest.flux(i, j), all.flux(i, j), 1e-3 / std::sqrt(all.ivar(i, j)));
      EXPECT_NEAR(rest.ivar(i, j), all.ivar(i, j), 1e-4 * all.ivar(i, j));
    }
  }
}

TEST_F(EngineJobs, ReadTheCallersArraysInPlaceByTheMaskRule) {
  const Scene scene = MakeScene({.fibres = 4, .rows = 60, .bundle_size = 2});
  MaskPixels(20, 3, 8, 5, scene.image.get());
  const RunOptions options = {.grid = {6006, 0.8, 30}, .bundle_size = 2, .want_model = true};
  const Bundles want = RunJob(engine(), scene, options);
  // Sets up each reason for which a pixel has no weight.
  Array<float, 2> pixels = scene.image->pixels, ivar = scene.image->ivar;
  Array<int32_t, 2> mask(ivar.shape());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (int64_t k = 0; k < ivar.size(); ++k) {
    mask.data()[k] = k % 3 == 0 ? 256 : 0;  // a bad read noise, which does not matter
    if (ivar.data()[k] > 0) continue;
    pixels.data()[k] = k % 4 == 0 ? nan : 1e4f;
    ivar.data()[k] = k % 4 == 1 ? nan : k % 4 == 2 ? -1.0f : 1.0f;
    if (k % 4 == 3) mask.data()[k] |= 1;
  }
  const auto prepared = engine()->Prepare(scene.psf, options.grid, options.bundle_size);
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  ExtractRequest request;
  request.prepared = *prepared;
  request.fibres = {0, 4};
  request.want_model = true;
  request.planes = {scene.psf->rows, scene.psf->columns, reinterpret_cast<const char*>(pixels.data()),
                    reinterpret_cast<const char*>(ivar.data()), reinterpret_cast<const char*>(mask.data())};
  Bundles bundles;
  const auto times = engine()->Extract(request, [&](BundleResult bundle) {
    const int number = bundle.bundle;
    bundles[number] = std::move(bundle);
    return absl::OkStatus();
  });
  ASSERT_TRUE(times.ok()) << times.status();
  ExpectSame(bundles, want);
}

TEST_F(EngineJobs, TrimFloat32ResultsToo) {
  const Scene scene = MakeScene({.fibres = 6, .rows = 60, .bundle_size = 4});
  RunOptions options = {.grid = {6006, 0.8, 30}, .bundle_size = 4, .fibres = {2, 3}};
  const Bundles wide = RunJob(engine(), scene, options);
  options.float32 = true;
  const Bundles narrow = RunJob(engine(), scene, options);
  ASSERT_EQ(narrow.size(), 2u);
  EXPECT_EQ(narrow.at(0).fibres, (FibreRange{2, 2}));
  EXPECT_EQ(narrow.at(1).fibres, (FibreRange{4, 1}));
  for (const auto& [number, bundle] : narrow)
    EXPECT_TRUE(bundle.spectra == ToBundleSpectra(wide.at(number)).spectra) << number;
}

TEST_F(EngineJobs, RoundToFloat32AsFilesDo) {
  const Scene scene = MakeScene({.fibres = 3, .rows = 110});
  MaskPixels(40, 30, 8, 18, scene.image.get());
  RunOptions options = {.grid = {6006, 0.8, 68}, .want_model = true};
  const Bundles wide = RunJob(engine(), scene, options);
  EXPECT_TRUE(wide.at(0).spectra.flux.empty());
  options.float32 = true;
  const Bundles narrow = RunJob(engine(), scene, options);
  ASSERT_EQ(narrow.size(), 1u);
  const BundleResult& bundle = narrow.at(0);
  EXPECT_TRUE(bundle.flux.empty() && bundle.ivar.empty() && bundle.resolution.empty());
  EXPECT_TRUE(bundle.spectra == ToBundleSpectra(wide.at(0)).spectra);
  EXPECT_TRUE(bundle.model.pixels == wide.at(0).model.pixels);
}

TEST_F(EngineJobs, GiveTheSameBitsWhateverRunsBeside) {
  const Scene scene = MakeScene({.fibres = 12, .rows = 60, .bundle_size = 3});
  const Scene other = MakeScene({.fibres = 4, .rows = 90, .seed = 7});
  RunOptions options = {.grid = {6006, 0.8, 30}, .bundle_size = 3};
  Bundles expected;
  {
    const auto single = MakeEngineUnderTest(1);
    ASSERT_TRUE(single.ok()) << single.status();
    expected = RunJob(single->get(), scene, options);
  }
  const auto several = MakeEngineUnderTest(3);
  ASSERT_TRUE(several.ok()) << several.status();
  std::thread beside([&] {
    for (int k = 0; k < 3; ++k) RunJob(several->get(), other, {.grid = {6010, 0.5, 50}});
  });
  for (int repeat = 0; repeat < 3; ++repeat) {
    options.fibres = {};
    ExpectSame(RunJob(several->get(), scene, options), expected);
    options.fibres = {6, 3};
    const Bundles one = RunJob(several->get(), scene, options);
    EXPECT_EQ(one.size(), 1u);
    if (one.count(2) == 1 && expected.count(2) == 1) ExpectSame(one.at(2), expected.at(2));
  }
  beside.join();
}

TEST_F(EngineJobs, LeaveNothingOfALargerOneInTheNext) {
  const Scene scene = MakeScene({.fibres = 3, .rows = 70});
  const RunOptions options = {.grid = {6006, 0.8, 40}, .want_model = true};
  const Bundles before = RunJob(engine(), scene, options);
  RunJob(engine(), MakeScene({.fibres = 8, .rows = 100, .tail = true}), {.grid = {6003, 0.6, 90}});
  ExpectSame(before, RunJob(engine(), scene, options));
}

// ---- Cancellation and errors

TEST_F(EngineJobs, StopBetweenBundlesWhenCancelled) {
  ExtractRequest request = Request(8);
  std::stop_source stop;
  request.stop = stop.get_token();
  int delivered = 0;
  const auto times = engine()->Extract(request, [&](BundleResult) {
    if (++delivered == 2) stop.request_stop();
    return absl::OkStatus();
  });
  EXPECT_EQ(times.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(delivered, 2);
}

TEST_F(EngineJobs, DeliverNothingWhenCancelledBeforeTheyBegin) {
  ExtractRequest request = Request(2);
  std::stop_source stop;
  stop.request_stop();
  request.stop = stop.get_token();
  int delivered = 0;
  const auto times = engine()->Extract(request, [&](BundleResult) {
    ++delivered;
    return absl::OkStatus();
  });
  EXPECT_EQ(times.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(delivered, 0);
}

TEST_F(EngineJobs, EndWithTheSinksError) {
  const ExtractRequest request = Request(4);
  int calls = 0;
  const auto times = engine()->Extract(request, [&](BundleResult) {
    ++calls;
    return absl::DataLossError("the disk is full");
  });
  EXPECT_EQ(times.status(), absl::DataLossError("the disk is full"));
  EXPECT_EQ(calls, 1);
}

class BadRequest : public EngineTest {
 protected:
  absl::Status Extract(const ExtractRequest& request) {
    return engine()->Extract(request, [](BundleResult) { return absl::OkStatus(); }).status();
  }
  ExtractRequest Request() {
    ExtractRequest request;
    request.prepared = *engine()->Prepare(scene_.psf, {6006, 0.8, 20}, 2);
    request.image = scene_.image;
    request.fibres = {0, 2};
    return request;
  }
  void ExpectRefused(const absl::Status& status, const std::string& words) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(words)));
  }

  Scene scene_ = MakeScene({.fibres = 2, .rows = 60});
};

TEST_F(BadRequest, NamesBothSizesOfAnImageForAnotherCcd) {
  ExtractRequest request = Request();
  auto image = std::make_shared<Image>();
  image->pixels.Assign({30, 20});
  image->ivar.Assign({30, 20});
  request.image = image;
  ExpectRefused(Extract(request), "30 x 20");
}

TEST_F(BadRequest, NamesTheFibresThatThereAre) {
  ExtractRequest request = Request();
  request.fibres = {1, 2};
  ExpectRefused(Extract(request), "the PSF has 0 to 1");
  request.fibres = {0, 0};
  ExpectRefused(Extract(request), "fibres: 0");
  request.fibres = {std::numeric_limits<int>::max(), 2};
  ExpectRefused(Extract(request), "fibres");
}

TEST_F(BadRequest, NamesPsferrAndRegularize) {
  ExtractRequest request = Request();
  request.psferr = -1;
  ExpectRefused(Extract(request), "psferr");
  request = Request();
  request.regularize = std::numeric_limits<double>::quiet_NaN();
  ExpectRefused(Extract(request), "regularize");
}

TEST_F(BadRequest, OfAGridOutsideThePsfIsRefusedWhenPrepared) {
  ExpectRefused(engine()->Prepare(scene_.psf, {9000, 0.8, 20}, 2).status(), "9000");
  ExpectRefused(engine()->Prepare(scene_.psf, {6006, 0.8, 0}, 2).status(), "0 bins");
  ExpectRefused(engine()->Prepare(scene_.psf, {6006, 0.8, 20}, 0).status(), "bundle size: 0");
}

}  // namespace
}  // namespace spexd::testing
