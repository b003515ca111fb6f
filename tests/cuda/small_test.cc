// Every kernel on as little data as possible, for tools that make it a hundred times slower.
// compute-sanitizer runs only these (--gtest_filter='Small*').
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "core/extract/cpu/cpu_engine.h"
#include "core/fits/readers.h"
#include "core/fits/writers.h"
#include "core/model/psf_traces/move_psf.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda/cuda_fixture.h"
#include "tests/support/scenes/engine_runs.h"
#include "tests/support/temp_folder.h"
#include "tests/traces/shifted_frame.h"

namespace spexd::testing {
namespace {

constexpr ResultLimits kSmallLimits = {.pull = 1e-6, .sqrt_ivar = 1e-8, .resolution = 1e-8};

// One engine for all of the tests. Its chunks are short, so that a few bins make several.
class Small : public CudaTest {
 protected:
  static void TearDownTestSuite() { engine_.reset(); }
  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (engine_ == nullptr) engine_ = Load({.device_memory_bytes = kSceneMemory / 8, .chunk_bins = 16});
    ASSERT_NE(engine_, nullptr);
  }
  void ExpectParity(const Scene& scene, RunOptions options, const ResultLimits& limits = kSmallLimits) {
    options.want_model = true;
    const ResultDifference difference =
        Compare(RunJob(engine_.get(), scene, options),
                RunJob(MakeCpuEngine({.threads = 1}).get(), scene, options), *scene.image);
    Print("with data", difference);
    ExpectWithin(difference, limits);
  }

  static std::unique_ptr<Engine> engine_;
};

std::unique_ptr<Engine> Small::engine_;

TEST_F(Small, SeveralChunksWithAHoleAndADeadColumn) {
  const Scene scene = MakeScene({.fibres = 3, .rows = 90});
  MaskPixels(40, 22, 8, 18, scene.image.get());
  MaskPixels(0, 90, 27, 1, scene.image.get());
  ExpectParity(scene, {.grid = {6003, 0.8, 54}});
}

// Elimination processes runs of 128 bins; this hole lies across their border.
TEST_F(Small, SeveralRunsWithAHoleBetweenThem) {
  const Scene scene = MakeScene({.fibres = 3, .rows = 480});
  MaskPixels(165, 0, 30, 24, scene.image.get());
  ExpectParity(scene, {.grid = {6003, 0.8, 300}});
}

TEST_F(Small, TwoBundlesAndATail) {
  const Scene scene = MakeScene({.fibres = 9, .rows = 50, .bundle_size = 6, .tail = true});
  ExpectParity(scene, {.grid = {6004, 0.8, 24}, .bundle_size = 6});
}

TEST_F(Small, AGridOffBothEnds) {
  ExpectParity(MakeScene({.fibres = 1, .rows = 40}), {.grid = {5998.1, 0.8, 35}});
}

TEST_F(Small, OneBin) { ExpectParity(MakeScene({.fibres = 2, .rows = 40}), {.grid = {6010, 0.8, 1}}); }

TEST_F(Small, NothingToSee) {
  const Scene scene = MakeScene({.fibres = 2, .rows = 40});
  MaskPixels(0, 1000, 0, 1000, scene.image.get());
  ExpectParity(scene, {.grid = {6006, 0.8, 20}});
}

TEST_F(Small, FineBins) {
  ExpectParity(MakeScene({.fibres = 2, .rows = 40}), {.grid = {6006, 0.3, 40}},
               {.pull = 2e-3, .sqrt_ivar = 2e-4, .resolution = 2e-4});
}

TEST_F(Small, CoarseBins) {
  ExpectParity(MakeScene({.fibres = 2, .rows = 80}), {.grid = {6006, 2.5, 14}, .regularize = 0.02});
}

TEST_F(Small, BinsThatReachFurtherAtOneEnd) {
  Scene scene = MakeScene({.fibres = 4, .rows = 70});
  const auto psf = std::make_shared<Psf>(*scene.psf);
  for (int i = 0; i < psf->fibres; ++i) psf->traces.y.coeff(i, 2) += 3;  // 1 to 1.7 rows a bin
  scene.psf = psf;
  ExpectParity(scene, {.grid = {6005, 0.8, 40}});
}

TEST_F(Small, ACodedImageGivesTheBitsOfTheSameDecoded) {
  Scene scene = MakeScene({.fibres = 2, .rows = 40});
  const TempFolder folder;
  const Array<float, 2>::Shape shape = scene.image->pixels.shape();
  PreprocFile file{scene.image->pixels, scene.image->ivar, {}, {}, {}, {}};
  file.ivar(20, 15) = file.ivar(20, 16) = -1;
  file.mask.Assign({shape[0], shape[1]}, 0);
  file.mask(20, 15) = 1;
  file.readnoise.Assign(shape, 3);
  ASSERT_TRUE(WritePreproc(file, folder / "preproc.fits", /*rice=*/true).ok());
  const Source source = Source::FromFile(folder / "preproc.fits").value();
  *scene.image = ReadPreprocImage(source).value();
  auto coded = std::make_shared<CodedImage>(ReadPreprocCoded(source).value());

  ExtractRequest request;
  request.prepared = *engine_->Prepare(scene.psf, {6005, 0.8, 20}, 2);
  request.coded = coded;
  request.fibres = {0, 2};
  int64_t negative = -1;
  request.negative_ivar = &negative;
  ASSERT_TRUE(engine_->Info().decodes);
  Bundles bundles;
  const auto times = engine_->Extract(request, [&](BundleResult bundle) {
    bundles[bundle.bundle] = std::move(bundle);
    return absl::OkStatus();
  });
  ASSERT_TRUE(times.ok()) << times.status();
  ExpectSame(bundles, RunJob(engine_.get(), request.prepared, scene, {}));
  EXPECT_EQ(scene.image->negative_ivar, 1) << "the other one is flagged";
  EXPECT_EQ(negative, 1);

  coded->coded[7].size -= 5;
  const absl::Status damaged =
      engine_->Extract(request, [](BundleResult) { return absl::OkStatus(); }).status();
  EXPECT_TRUE(absl::IsInvalidArgument(damaged));
  EXPECT_THAT(std::string(damaged.message()),
              ::testing::EndsWith("preproc.fits, HDU IMAGE: tile 8: the Rice data ends too early"));
}

TEST_F(Small, TraceShiftsOfACodedImageWhichStaysForItsExtraction) {
  ShiftedFrameOptions shifted;
  shifted.simulator.fibres = 10;
  shifted.simulator.rows = 300;
  shifted.x = MakeSeries({{0.35}});
  const ShiftedFrame frame = MakeShiftedFrame(shifted);
  const TempFolder folder;
  PreprocFile file{frame.image.pixels, frame.image.ivar, {}, {}, {}, {}};
  file.mask.Assign({frame.psf.rows, frame.psf.columns});
  file.readnoise.Assign(frame.image.pixels.shape(), 3);
  ASSERT_TRUE(WritePreproc(file, folder / "preproc.fits", /*rice=*/true).ok());
  const Source source = Source::FromFile(folder / "preproc.fits").value();
  TraceRequest measurement;
  measurement.psf = std::make_shared<const Psf>(frame.psf);
  measurement.coded = std::make_shared<const CodedImage>(ReadPreprocCoded(source).value());
  measurement.reference = std::make_shared<const ReferenceSpectrum>(frame.sky);
  const auto measured = engine_->MeasureTraces(measurement);
  ASSERT_TRUE(measured.ok()) << measured.status();

  measurement.image = std::make_shared<const Image>(ReadPreprocImage(source).value());
  const auto expected = MakeCpuEngine({.threads = 2})->MeasureTraces(measurement);
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (const auto axis : {&TraceShifts::x, &TraceShifts::y}) {
    EXPECT_EQ((measured->shifts.*axis).status, (expected->shifts.*axis).status);
    EXPECT_LT(Difference(frame.psf, (measured->shifts.*axis).series, (expected->shifts.*axis).series).largest,
              1e-4);
  }

  const auto moved = std::make_shared<const Psf>(MovePsf(frame.psf, measured->shifts));
  const WavelengthGrid grid = {0.5 * (moved->traces.y.wave_min + moved->traces.y.wave_max), 0.8, 20};
  ExtractRequest request;
  request.prepared = *engine_->Prepare(moved, grid, 2);
  request.coded = measurement.coded;
  request.fibres = {0, 4};
  const auto run = [&] {
    Bundles bundles;
    const auto times = engine_->Extract(request, [&](BundleResult bundle) {
      bundles[bundle.bundle] = std::move(bundle);
      return absl::OkStatus();
    });
    EXPECT_TRUE(times.ok()) << times.status();
    return bundles;
  };
  const Bundles of_its_own_copy = run();
  ASSERT_NE(measured->image, nullptr);
  request.loaded = measured->image;
  ExpectSame(run(), of_its_own_copy);
}

TEST_F(Small, Float32AndAPartOfABundle) {
  const Scene scene = MakeScene({.fibres = 4, .rows = 50});
  const Bundles bundles = RunJob(
      engine_.get(), scene, {.grid = {6005, 0.8, 20}, .fibres = {1, 2}, .want_model = true, .float32 = true});
  ASSERT_EQ(bundles.size(), 1u);
  EXPECT_EQ(bundles.at(0).spectra.flux.shape(), (Array<float, 2>::Shape{2, 20}));
}

TEST_F(Small, TwoJobsAtOnce) {
  const Scene scene = MakeScene({.fibres = 2, .rows = 50});
  const RunOptions options = {.grid = {6005, 0.8, 20}};
  const Bundles expected = RunJob(engine_.get(), scene, options);
  std::vector<std::thread> threads;
  for (int k = 0; k < 2; ++k)
    threads.emplace_back([&] { ExpectSame(RunJob(engine_.get(), scene, options), expected); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace spexd::testing
