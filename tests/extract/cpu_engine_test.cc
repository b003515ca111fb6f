// The CPU engine through its interface: awkward inputs, determinism, cancellation, errors.
#include "core/extract/cpu_engine.h"

#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "core/extract/worker_pool.h"
#include "core/model/frame.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/scene.h"

namespace spexd {
namespace {

using ::testing::HasSubstr;
using testing::MakeSceneImage;
using testing::MakeScenePsf;
using testing::MaskPixels;
using testing::SceneOptions;

struct Scene {
  std::shared_ptr<Psf> psf;
  std::shared_ptr<Image> image;
};

Scene MakeScene(const SceneOptions& options) {
  Scene scene;
  scene.psf = MakeScenePsf(options);
  scene.image = MakeSceneImage(*scene.psf, options);
  return scene;
}

constexpr WavelengthGrid kGrid = {6006, 0.8, 40};

// Runs a job that must succeed; bundles by number.
std::map<int, BundleResult> Extract(Engine* engine, const Scene& scene, const WavelengthGrid& grid,
                                    int bundle_size, FibreRange fibres, bool want_model = false) {
  std::map<int, BundleResult> bundles;
  const auto prepared = engine->Prepare(scene.psf, grid, bundle_size);
  EXPECT_TRUE(prepared.ok()) << prepared.status();
  if (!prepared.ok()) return bundles;
  ExtractRequest request;
  request.prepared = *prepared;
  request.image = scene.image;
  request.fibres = fibres;
  request.want_model = want_model;
  const auto times = engine->Extract(request, [&](BundleResult bundle) {
    bundles[bundle.bundle] = std::move(bundle);
    return absl::OkStatus();
  });
  EXPECT_TRUE(times.ok()) << times.status();
  return bundles;
}

BundleResult ExtractOne(const Scene& scene, const WavelengthGrid& grid) {
  const auto engine = MakeCpuEngine({.threads = 1});
  auto bundles = Extract(engine.get(), scene, grid, scene.psf->fibres, {0, scene.psf->fibres}, true);
  EXPECT_EQ(bundles.size(), 1u);
  return std::move(bundles[0]);
}

// What holds of any result: finite, and never an ivar of 0 without a mask or a mask of NODATA with data.
void ExpectSound(const BundleResult& bundle) {
  EXPECT_TRUE(bundle.status.ok()) << bundle.status;
  for (int i = 0; i < bundle.fibres.count; ++i) {
    for (int j = 0; j < bundle.flux.shape(1); ++j) {
      const uint32_t mask = bundle.mask(i, j);
      ASSERT_TRUE(std::isfinite(bundle.flux(i, j)) && std::isfinite(bundle.ivar(i, j)) &&
                  std::isfinite(bundle.chi2pix(i, j)) && std::isfinite(bundle.pixmask(i, j)))
          << i << " " << j;
      ASSERT_TRUE(bundle.ivar(i, j) > 0 || (mask & kMaskNoData)) << i << " " << j;
      if (mask & kMaskNoData) {
        ASSERT_EQ(mask, kMaskNoData | kMaskAllBadPix | kMaskSomeBadPix);
        ASSERT_EQ(bundle.flux(i, j), 0);
        ASSERT_EQ(bundle.ivar(i, j), 0);
        ASSERT_EQ(bundle.chi2pix(i, j), 0);
        ASSERT_EQ(bundle.pixmask(i, j), 1);
      }
      for (int d = 0; d < kResolutionDiagonals; ++d) ASSERT_TRUE(std::isfinite(bundle.resolution(i, d, j)));
    }
  }
}

int NoDataBins(const BundleResult& bundle) {
  int count = 0;
  for (uint32_t mask : bundle.mask.flat()) count += (mask & kMaskNoData) != 0;
  return count;
}

void ExpectSame(const BundleResult& a, const BundleResult& b) {
  EXPECT_EQ(a.fibres, b.fibres);
  EXPECT_TRUE(a.flux == b.flux);
  EXPECT_TRUE(a.ivar == b.ivar);
  EXPECT_TRUE(a.mask == b.mask);
  EXPECT_TRUE(a.resolution == b.resolution);
  EXPECT_TRUE(a.chi2pix == b.chi2pix);
  EXPECT_TRUE(a.pixmask == b.pixmask);
}

// ---- awkward inputs

TEST(CpuEngine, KeepsAHoleWiderThanASpotToItsBins) {
  Scene scene = MakeScene({.fibres = 4, .rows = 110});
  const BundleResult clean = ExtractOne(scene, {6006, 0.8, 68});
  MaskPixels(40, 30, 8, 18, scene.image.get());
  const BundleResult holed = ExtractOne(scene, {6006, 0.8, 68});
  ExpectSound(holed);
  EXPECT_EQ(NoDataBins(clean), 0);
  EXPECT_GT(NoDataBins(holed), 5);
  EXPECT_LT(NoDataBins(holed), 68);
  // Far from the hole nothing moved much.
  for (int j = 0; j < 10; ++j)
    EXPECT_NEAR(holed.flux(3, j), clean.flux(3, j), 1e-3 * std::abs(clean.flux(3, j)));
}

TEST(CpuEngine, FlagsOnlyTheBinsOffTheCcd) {
  const Scene scene = MakeScene({.fibres = 3, .rows = 60});
  Scene cut = scene;
  // A CCD that ends 20 rows earlier at both ends.
  MaskPixels(0, 12, 0, 1000, cut.image.get());
  MaskPixels(48, 12, 0, 1000, cut.image.get());
  const BundleResult result = ExtractOne(cut, {5998.4, 0.8, 49});
  ExpectSound(result);
  EXPECT_GT(NoDataBins(result), 3 * 10);
  EXPECT_LT(NoDataBins(result), 3 * 30);
  for (int j = 20; j < 30; ++j) EXPECT_EQ(result.mask(1, j), 0u);
}

TEST(CpuEngine, TakesAGridThatRunsOffBothEnds) {
  const Scene scene = MakeScene({.fibres = 2, .rows = 60});
  const BundleResult result = ExtractOne(scene, {5998.1, 0.8, 50});
  ExpectSound(result);
  EXPECT_LT(NoDataBins(result), 20);
}

TEST(CpuEngine, ReturnsADeadFibreAsNoData) {
  Scene scene = MakeScene({.fibres = 3, .rows = 70, .spacing = 20});
  const int column = static_cast<int>(scene.psf->x.coeff(1, 0));
  MaskPixels(0, 70, column - 10, 21, scene.image.get());
  const BundleResult result = ExtractOne(scene, kGrid);
  ExpectSound(result);
  for (int j = 0; j < kGrid.count; ++j) {
    EXPECT_TRUE(result.mask(1, j) & kMaskNoData);
    EXPECT_EQ(result.mask(0, j) & kMaskNoData, 0u);
    EXPECT_EQ(result.mask(2, j) & kMaskNoData, 0u);
  }
}

TEST(CpuEngine, ReturnsAMaskedImageAsNoData) {
  Scene scene = MakeScene({.fibres = 7, .rows = 60, .bundle_size = 5});
  MaskPixels(0, 1000, 0, 1000, scene.image.get());
  const auto engine = MakeCpuEngine({.threads = 2});
  for (auto& [number, bundle] : Extract(engine.get(), scene, {6006, 0.8, 30}, 5, {0, 7})) {
    ExpectSound(bundle);
    EXPECT_EQ(NoDataBins(bundle), bundle.mask.size());
  }
}

TEST(CpuEngine, ReturnsOneMaskedBundleOfSeveral) {
  Scene scene = MakeScene({.fibres = 6, .rows = 60, .bundle_size = 3});
  const int end = static_cast<int>(scene.psf->x.coeff(2, 0)) + 11;
  MaskPixels(0, 1000, 0, end, scene.image.get());
  const auto engine = MakeCpuEngine({.threads = 1});
  auto bundles = Extract(engine.get(), scene, {6006, 0.8, 30}, 3, {0, 6});
  EXPECT_EQ(NoDataBins(bundles[0]), bundles[0].mask.size());
  EXPECT_EQ(NoDataBins(bundles[1]), 0);
}

TEST(CpuEngine, TakesCoarseAndFineGrids) {
  const Scene scene = MakeScene({.fibres = 2, .rows = 70});
  for (const auto& [step, count] : {std::pair{0.1, 60}, {0.3, 60}, {0.4, 60}, {0.8, 40}, {2.5, 12}}) {
    SCOPED_TRACE(step);
    const BundleResult result = ExtractOne(scene, {6006, step, count});
    ExpectSound(result);
    EXPECT_EQ(NoDataBins(result), 0);
  }
}

TEST(CpuEngine, TakesAGridOfOneBin) {
  const Scene scene = MakeScene({.fibres = 2, .rows = 70});
  const BundleResult result = ExtractOne(scene, {6020, 0.8, 1});
  ExpectSound(result);
  EXPECT_EQ(result.flux.shape(1), 1);
}

// The same bins come out of a grid that ends anywhere: there are no patches to end with a partial one.
TEST(CpuEngine, DoesNotDependOnWhereTheGridEnds) {
  const Scene scene = MakeScene({.fibres = 2, .rows = 110});
  const BundleResult all = ExtractOne(scene, {6006, 0.8, 61});
  for (int count : {60, 53, 41}) {
    const BundleResult part = ExtractOne(scene, {6006, 0.8, count});
    for (int j = 0; j < count - 25; ++j) {
      EXPECT_LT(std::abs(part.flux(0, j) - all.flux(0, j)) * std::sqrt(all.ivar(0, j)), 1e-4);
    }
  }
}

TEST(CpuEngine, ModelsTheImage) {
  const Scene scene = MakeScene({.fibres = 5, .rows = 90});
  const BundleResult result = ExtractOne(scene, {6004, 0.8, 58});
  ASSERT_EQ(result.model.pixels.shape(0), 90);
  double chi2 = 0, pixels = 0;
  for (int row = 20; row < 70; ++row) {
    for (int column = 5; column < 42; ++column) {
      const double residual =
          scene.image->pixels(row, column) - result.model.pixels(row, column - result.model.first_column);
      chi2 += residual * residual * scene.image->ivar(row, column);
      ++pixels;
    }
  }
  EXPECT_NEAR(chi2 / pixels, 0.85, 0.25);  // each bin takes a degree of freedom
}

// ---- fibre ranges and determinism

TEST(CpuEngine, TrimsABundleThatTheRangeCuts) {
  const Scene scene = MakeScene({.fibres = 9, .rows = 60, .bundle_size = 4});
  const auto engine = MakeCpuEngine({.threads = 1});
  auto all = Extract(engine.get(), scene, {6006, 0.8, 30}, 4, {0, 9});
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[2].fibres, (FibreRange{8, 1}));
  auto some = Extract(engine.get(), scene, {6006, 0.8, 30}, 4, {3, 3});
  ASSERT_EQ(some.size(), 2u);
  EXPECT_EQ(some[0].fibres, (FibreRange{3, 1}));
  EXPECT_EQ(some[1].fibres, (FibreRange{4, 2}));
  for (int j = 0; j < 30; ++j) {
    EXPECT_EQ(some[0].flux(0, j), all[0].flux(3, j));
    EXPECT_EQ(some[1].ivar(1, j), all[1].ivar(1, j));
    for (int d = 0; d < kResolutionDiagonals; ++d)
      EXPECT_EQ(some[1].resolution(0, d, j), all[1].resolution(0, d, j));
  }
}

TEST(CpuEngine, GivesTheSameBitsWhateverRunsBeside) {
  const Scene scene = MakeScene({.fibres = 12, .rows = 60, .bundle_size = 3});
  const Scene other = MakeScene({.fibres = 4, .rows = 90, .seed = 7});
  const auto single = MakeCpuEngine({.threads = 1});
  const auto expected = Extract(single.get(), scene, {6006, 0.8, 30}, 3, {0, 12});
  const auto engine = MakeCpuEngine({.threads = 3});
  std::thread beside([&] {
    for (int k = 0; k < 3; ++k) Extract(engine.get(), other, {6010, 0.5, 50}, 4, {0, 4});
  });
  for (int repeat = 0; repeat < 3; ++repeat) {
    const auto bundles = Extract(engine.get(), scene, {6006, 0.8, 30}, 3, {0, 12});
    ASSERT_EQ(bundles.size(), expected.size());
    for (const auto& [number, bundle] : bundles) ExpectSame(bundle, expected.at(number));
    const auto one = Extract(engine.get(), scene, {6006, 0.8, 30}, 3, {6, 3});
    ExpectSame(one.at(2), expected.at(2));
  }
  beside.join();
}

TEST(CpuEngine, LeavesNothingOfALargerJobInTheNext) {
  const Scene scene = MakeScene({.fibres = 3, .rows = 70});
  const auto engine = MakeCpuEngine({.threads = 1});
  const auto before = Extract(engine.get(), scene, kGrid, 3, {0, 3});
  Extract(engine.get(), MakeScene({.fibres = 8, .rows = 100, .tail = true}), {6003, 0.6, 90}, 8, {0, 8});
  const auto after = Extract(engine.get(), scene, kGrid, 3, {0, 3});
  ExpectSame(before.at(0), after.at(0));
}

// ---- cancellation and errors

TEST(CpuEngine, StopsBetweenBundlesWhenCancelled) {
  const Scene scene = MakeScene({.fibres = 8, .rows = 60, .bundle_size = 1});
  const auto engine = MakeCpuEngine({.threads = 1});
  const auto prepared = engine->Prepare(scene.psf, {6006, 0.8, 20}, 1);
  ASSERT_TRUE(prepared.ok());
  std::atomic<int> delivered = 0;
  ExtractRequest request;
  request.prepared = *prepared;
  request.image = scene.image;
  request.fibres = {0, 8};
  request.cancelled = [&] { return delivered >= 2; };
  const auto times = engine->Extract(request, [&](BundleResult) {
    ++delivered;
    return absl::OkStatus();
  });
  EXPECT_EQ(times.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(delivered, 2);
}

TEST(CpuEngine, EndsWithTheSinksError) {
  const Scene scene = MakeScene({.fibres = 4, .rows = 60, .bundle_size = 1});
  const auto engine = MakeCpuEngine({.threads = 2});
  const auto prepared = engine->Prepare(scene.psf, {6006, 0.8, 20}, 1);
  ASSERT_TRUE(prepared.ok());
  ExtractRequest request;
  request.prepared = *prepared;
  request.image = scene.image;
  request.fibres = {0, 4};
  int calls = 0;
  const auto times = engine->Extract(request, [&](BundleResult) {
    ++calls;
    return absl::DataLossError("the disk is full");
  });
  EXPECT_EQ(times.status(), absl::DataLossError("the disk is full"));
  EXPECT_EQ(calls, 1);
}

class BadRequest : public ::testing::Test {
 protected:
  absl::Status Extract(const ExtractRequest& request) {
    return engine_->Extract(request, [](BundleResult) { return absl::OkStatus(); }).status();
  }
  ExtractRequest Request() {
    ExtractRequest request;
    request.prepared = *engine_->Prepare(scene_.psf, {6006, 0.8, 20}, 2);
    request.image = scene_.image;
    request.fibres = {0, 2};
    return request;
  }
  void ExpectRefused(const absl::Status& status, const std::string& words) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  }

  Scene scene_ = MakeScene({.fibres = 2, .rows = 60});
  std::unique_ptr<Engine> engine_ = MakeCpuEngine({.threads = 1});
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
  ExpectRefused(engine_->Prepare(scene_.psf, {9000, 0.8, 20}, 2).status(), "9000");
  ExpectRefused(engine_->Prepare(scene_.psf, {6006, 0.8, 0}, 2).status(), "0 bins");
  ExpectRefused(engine_->Prepare(scene_.psf, {6006, 0.8, 20}, 0).status(), "bundle size: 0");
}

TEST_F(BadRequest, OfABundleTooLargeForTheMemoryIsRefusedBeforeItIsTaken) {
  const auto engine = MakeCpuEngine({.threads = 1, .max_workspace_bytes = 1 << 20});
  const absl::Status status = engine->Prepare(scene_.psf, {6006, 0.8, 30}, 2).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("1048576"));
}

TEST(Shares, AreTakenInTheOrderAsked) {
  Shares shares(2);
  shares.Take(2);
  std::atomic<int> taken = 0;
  std::thread first([&] {
    shares.Take(2);
    ++taken;
    shares.Return(2);
  });
  shares.Return(2);
  first.join();
  EXPECT_EQ(taken, 1);
  shares.Take(2);
}

TEST(WorkerPool, RunsWhatIsQueuedBeforeItEnds) {
  std::atomic<int> ran = 0;
  {
    WorkerPool pool(3);
    for (int k = 0; k < 50; ++k) pool.Run([&](int) { ++ran; });
  }
  EXPECT_EQ(ran, 50);
}

}  // namespace
}  // namespace spexd
