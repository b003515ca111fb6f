// What is the CPU engine's alone: its memory, and the parts that share it out. What holds of any engine is in
// engine_inputs_test.cc and engine_jobs_test.cc.
#include "core/extract/cpu_engine.h"

#include <atomic>
#include <stop_token>
#include <thread>

#include "core/extract/worker_pool.h"
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
