// What is the CPU engine's alone: its memory, and the parts that share it out. What holds of any engine is in
// engine_inputs_test.cc and engine_jobs_test.cc.
#include "core/extract/cpu_engine.h"

#include <atomic>
#include <chrono>
#include <stop_token>
#include <thread>
#include <utility>

#include "core/extract/worker_pool.h"
#include "core/plan/bundle_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/scene.h"

namespace spexd {
namespace {

using ::testing::HasSubstr;

TEST(CpuEngine, RefusesABundleTooLargeForTheMemoryBeforeItIsTaken) {
  const auto engine = MakeCpuEngine({.threads = 1, .max_workspace_bytes = 1 << 20});
  const auto psf = testing::MakeScenePsf({.fibres = 2, .rows = 60});
  const absl::Status status = engine->Prepare(psf, {6006, 0.8, 30}, 2).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("1048576"));
}

// How long `work` goes on after its stop is requested, `after` seconds from its beginning; negative: it had
// ended.
template <typename Work>
double SecondsToStop(double after, const Work& work) {
  using Clock = std::chrono::steady_clock;
  std::stop_source stop;
  Clock::time_point ended;
  bool stopped = false;
  std::jthread worker([&] {
    stopped = work(stop.get_token()).code() == absl::StatusCode::kCancelled;
    ended = Clock::now();
  });
  std::this_thread::sleep_for(std::chrono::duration<double>(after));
  const auto requested = Clock::now();
  stop.request_stop();
  worker.join();
  return stopped ? std::chrono::duration<double>(ended - requested).count() : -1;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kStopSeconds = 2;
#else
constexpr double kStopSeconds = 0.1;
#endif

// A bundle that takes many seconds: 12 fibres of 5000 bins of 0.2 Angstrom.
TEST(CpuEngine, StopsInsideABundle) {
  const auto engine = MakeCpuEngine({.threads = 1});
  const testing::SceneOptions options = {.fibres = 12, .rows = 1700};
  const auto psf = testing::MakeScenePsf(options);
  ExtractRequest request;
  request.prepared = *engine->Prepare(psf, {6005, 0.2, 5000}, 12);
  request.image = testing::MakeSceneImage(*psf, {.fibres = 12, .rows = 1700});
  request.fibres = {0, 12};
  for (double after : {0.02, 0.1, 0.3, 0.6, 1.0, 2.0}) {
    const double seconds = SecondsToStop(after, [&](std::stop_token stop) {
      ExtractRequest stoppable = request;
      stoppable.stop = std::move(stop);
      return engine->Extract(stoppable, [](BundleResult) { return absl::OkStatus(); }).status();
    });
    EXPECT_GE(seconds, 0) << "ended before " << after << " s";
    EXPECT_LT(seconds, kStopSeconds) << "after " << after << " s";
  }
}

TEST(BundlePlan, IsStoppedWhileItIsMade) {
  const auto psf = testing::MakeScenePsf({.fibres = 2000, .rows = 1700, .bundle_size = 2000});
  for (double after : {0.01, 0.05, 0.2}) {
    const double seconds = SecondsToStop(after, [&](const std::stop_token& stop) {
      return MakeBundlePlan(*psf, {6005, 0.05, 20000}, 0, {0, 2000}, stop).status();
    });
    EXPECT_GE(seconds, 0) << "ended before " << after << " s";
    EXPECT_LT(seconds, kStopSeconds) << "after " << after << " s";
  }
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
