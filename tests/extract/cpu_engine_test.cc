// Tests of the CPU engine only: its memory, and how work is divided. engine_inputs_test.cc and
// engine_jobs_test.cc test any engine.
#include "core/extract/cpu/cpu_engine.h"

#include <algorithm>
#include <atomic>
#include <stop_token>
#include <utility>

#include "core/extract/correction.h"
#include "core/extract/cpu/worker_pool.h"
#include "core/plan/bundle_plan.h"
#include "tests/support/matchers.h"
#include "tests/support/scenes/scene.h"
#include "tests/support/time_to_stop.h"

namespace spexd {
namespace {

TEST(CpuEngine, RefusesABundleTooLargeForTheMemoryBeforeItIsTaken) {
  const auto engine = MakeCpuEngine({.threads = 1, .max_workspace_bytes = 1 << 17});
  const auto psf = testing::MakeScenePsf({.fibres = 2, .rows = 60});
  EXPECT_THAT(engine->Prepare(psf, {6006, 0.8, 30}, 2).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("131072")));
}

TEST(CpuEngine, TakesNothingForBundlesThatNobodyAsksFor) {
  const auto engine = MakeCpuEngine({.threads = 1});
  const auto psf = testing::MakeScenePsf({.fibres = 4000, .rows = 60});
  const auto prepared = engine->Prepare(psf, {6006, 0.8, 30}, 25, {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  const int64_t before = (*prepared)->bytes();
  EXPECT_LT(before, 10000);
  auto image = std::make_shared<Image>();
  image->pixels.Assign({psf->rows, psf->columns}, 10);
  image->ivar.Assign({psf->rows, psf->columns}, 0.1f);
  ExtractRequest request;
  request.prepared = *prepared;
  request.image = image;
  request.fibres = {2000, 1};
  ASSERT_TRUE(engine->Extract(request, [](BundleResult) { return absl::OkStatus(); }).ok());
  EXPECT_LT((*prepared)->bytes(), before + 1000);
}

TEST(CpuEngine, LetsAStoppedJobGoThatWaitsBehindAnother) {
  const auto engine = MakeCpuEngine({.threads = 1});
  const auto psf = testing::MakeScenePsf({.fibres = 4, .rows = 60});
  auto image = std::make_shared<Image>();
  image->pixels.Assign({psf->rows, psf->columns}, 10);
  image->ivar.Assign({psf->rows, psf->columns}, 0.1f);
  ExtractRequest request;
  request.prepared = *engine->Prepare(psf, {6006, 0.8, 30}, 4, {});
  request.image = image;
  request.fibres = {0, 4};
  // The sink of the other job holds the only thread until the stopped job has ended.
  std::atomic<bool> gone = false;
  const auto times = engine->Extract(request, [&](BundleResult) {
    std::stop_source stop;
    ExtractRequest stopped = request;
    stopped.stop = stop.get_token();
    std::thread stopper([&] { stop.request_stop(); });
    std::thread waiting([&] {
      EXPECT_TRUE(absl::IsCancelled(
          engine->Extract(stopped, [](BundleResult) { return absl::OkStatus(); }).status()));
      gone = true;
    });
    waiting.join();
    stopper.join();
    return absl::OkStatus();
  });
  EXPECT_TRUE(times.ok()) << times.status();
  EXPECT_TRUE(gone);
}

TEST(CpuEngine, EstimatesGrowWithTheJobAndLearn) {
  const auto engine = MakeCpuEngine({.threads = 2});
  const auto psf = testing::MakeScenePsf({.fibres = 8, .rows = 60});
  JobOutline outline;
  outline.psf = psf.get();
  outline.grid = {6006, 0.8, 30};
  outline.bundle_size = 2;
  outline.fibres = {0, 4};
  const JobEstimate few = engine->Estimate(outline);
  EXPECT_GT(few.seconds, 0);
  EXPECT_EQ(few.device_bytes, 0);
  EXPECT_EQ(few.host_bytes, 2 * few.min_bytes);
  outline.fibres = {0, 8};
  const JobEstimate many = engine->Estimate(outline);
  EXPECT_DOUBLE_EQ(many.seconds, 2 * few.seconds);
  EXPECT_EQ(many.host_bytes, few.host_bytes);
  auto image = std::make_shared<Image>();
  image->pixels.Assign({psf->rows, psf->columns}, 10);
  image->ivar.Assign({psf->rows, psf->columns}, 0.1f);
  ExtractRequest request;
  request.prepared = *engine->Prepare(psf, outline.grid, 2, {});
  request.image = image;
  request.fibres = {0, 8};
  const auto times = engine->Extract(request, [](BundleResult) { return absl::OkStatus(); });
  ASSERT_TRUE(times.ok());
  double seconds = 0;
  for (const double stage : times->seconds) seconds += stage;
  // Both threads were busy for half of that time each; under sanitizers the correction would be larger than
  // its limit.
  const double learnt =
      std::clamp(seconds / 2, many.seconds / Correction::kMaxFactor, many.seconds * Correction::kMaxFactor);
  EXPECT_NEAR(engine->Estimate(outline).seconds, learnt, 1e-6 * learnt);
}

// The bundle takes many seconds: 12 fibres of 5000 bins of 0.2 Angstrom.
TEST(CpuEngine, StopsInsideABundle) {
  const auto engine = MakeCpuEngine({.threads = 1});
  const testing::SceneOptions options = {.fibres = 12, .rows = 1700};
  const auto psf = testing::MakeScenePsf(options);
  ExtractRequest request;
  request.prepared = *engine->Prepare(psf, {6005, 0.2, 5000}, 12);
  request.image = testing::MakeSceneImage(*psf, {.fibres = 12, .rows = 1700});
  request.fibres = {0, 12};
  for (double after : {0.02, 0.1, 0.3, 0.6, 1.0, 2.0}) {
    const double seconds = testing::SecondsToStop(after, [&](std::stop_token stop) {
      ExtractRequest stoppable = request;
      stoppable.stop = std::move(stop);
      return engine->Extract(stoppable, [](BundleResult) { return absl::OkStatus(); }).status();
    });
    EXPECT_GE(seconds, 0) << "ended before " << after << " s";
    EXPECT_LT(seconds, testing::kStopSeconds) << "after " << after << " s";
  }
}

TEST(BundlePlan, IsStoppedWhileItIsMade) {
  const auto psf = testing::MakeScenePsf({.fibres = 2000, .rows = 1700, .bundle_size = 2000});
  for (double after : {0.01, 0.05, 0.2}) {
    const double seconds = testing::SecondsToStop(after, [&](const std::stop_token& stop) {
      return MakeBundlePlan(*psf, {6005, 0.05, 20000}, 0, {0, 2000}, stop).status();
    });
    EXPECT_GE(seconds, 0) << "ended before " << after << " s";
    EXPECT_LT(seconds, testing::kStopSeconds) << "after " << after << " s";
  }
}

TEST(Shares, AreTakenInTheOrderAsked) {
  Shares shares(2);
  EXPECT_TRUE(shares.Take(2, {}));
  std::atomic<int> taken = 0;
  std::thread first([&] {
    EXPECT_TRUE(shares.Take(2, {}));
    ++taken;
    shares.Return(2);
  });
  shares.Return(2);
  first.join();
  EXPECT_EQ(taken, 1);
  EXPECT_TRUE(shares.Take(2, {}));
}

TEST(Shares, LetGoWhoeverIsStoppedWithoutBlockingTheLine) {
  Shares shares(2);
  EXPECT_TRUE(shares.Take(2, {}));
  std::stop_source stop;
  std::thread stopped([&] { EXPECT_FALSE(shares.Take(2, stop.get_token())); });
  stop.request_stop();
  stopped.join();
  shares.Return(2);
  EXPECT_TRUE(shares.Take(1, {}));
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
