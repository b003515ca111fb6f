// Reports of an engine's health while the engine itself hangs.
#include "server/operation/engine_health.h"

#include <atomic>
#include <sstream>
#include <thread>

#include "tests/support/matchers.h"

namespace spexd {
namespace {

// An engine that is healthy, except for its first answer, which comes only when the test allows it.
class HangingEngine : public Engine {
 public:
  EngineInfo Info() const override { return {}; }
  absl::Status Health() const override {
    if (asked_++ > 0) return absl::OkStatus();
    asked_.notify_all();
    answers_.wait(false);
    return absl::UnavailableError("it was unwell");
  }
  absl::StatusOr<std::shared_ptr<const PreparedPsf>> Prepare(std::shared_ptr<const Psf>,
                                                             const WavelengthGrid&, int,
                                                             std::stop_token) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<StageTimes> Extract(const ExtractRequest&, const BundleSink&) override {
    return absl::UnimplementedError("");
  }
  void WaitUntilAsked() const { asked_.wait(0); }
  void GoOn() {
    answers_ = true;
    answers_.notify_all();
  }

 private:
  mutable std::atomic<int> asked_ = 0;
  std::atomic<bool> answers_ = false;
};

class EngineHealthTest : public ::testing::Test {
 protected:
  HangingEngine engine_;
  std::ostringstream out_;
  Logger log_{LogLevel::kInfo, MakeStreamSink(&out_)};
  EngineHealth health_{&engine_, &log_};
  std::vector<bool> announced_;
};

TEST_F(EngineHealthTest, HoldsUpNobodyWhileTheEngineHangs) {
  std::thread asks([&] { EXPECT_EQ(health_.Check().code(), absl::StatusCode::kUnavailable); });
  engine_.WaitUntilAsked();
  health_.StartServing([&](bool serving) { announced_.push_back(serving); });
  EXPECT_TRUE(health_.Check().ok());
  health_.StopServing();
  EXPECT_THAT(announced_, ElementsAre(true, false));
  engine_.GoOn();
  asks.join();
}

TEST_F(EngineHealthTest, AnnouncesNothingAfterTheServerStoppedServing) {
  health_.StartServing([&](bool serving) { announced_.push_back(serving); });
  health_.StopServing();
  engine_.GoOn();
  EXPECT_FALSE(health_.Check().ok());
  EXPECT_TRUE(health_.Check().ok());
  EXPECT_THAT(announced_, ElementsAre(true, false));
}

TEST_F(EngineHealthTest, TellsNobodyAnAnswerOlderThanTheLast) {
  health_.StartServing([&](bool serving) { announced_.push_back(serving); });
  std::thread asks([&] { EXPECT_EQ(health_.Check().code(), absl::StatusCode::kUnavailable); });
  engine_.WaitUntilAsked();
  EXPECT_TRUE(health_.Check().ok());
  engine_.GoOn();
  asks.join();
  EXPECT_THAT(announced_, ElementsAre(true));
  log_.Flush();
  EXPECT_THAT(out_.str(), Not(HasSubstr("engine_failed")));
}

}  // namespace
}  // namespace spexd
