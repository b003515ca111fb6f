// The program while its wall clock is set back and forth, or to a time before 1970: deadlines, limits of
// time, slots and results are not affected. The clock is set_clock, which is preloaded.
#include <grpcpp/grpcpp.h>
#include <signal.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/service/support/calls.h"
#include "tests/service/support/inputs.h"
#include "tests/service/support/server_command.h"
#include "tests/support/build_paths.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

using grpc::StatusCode;
using std::chrono::steady_clock;

constexpr std::chrono::hours kJump(1);
constexpr std::chrono::hours kBefore1970(-24 * 366 * 80);
// The delay that a busy machine may add to a second or two; far less than the jump.
constexpr std::chrono::seconds kPatience(60);

class ClockTest : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a program with a sanitizer takes no preloaded library before it";
#endif
    SetClock(std::chrono::nanoseconds(0));
    StartServer();
  }
  void StartServer() {
    ProcessOptions options;
    options.environment = {"LD_PRELOAD=" + BuildFolder() + "/tests/support/libspexd_set_clock.so",
                           "SPEXD_CLOCK_FILE=" + (folder_ / "clock")};
    spexd_ = std::make_unique<Process>(
        DetachedServerCommand(folder_, {"--header-seconds", "1", "--input-seconds", "2"}), options);
    ASSERT_TRUE(spexd_->WaitForLine("\"started\"")) << spexd_->output();
    const auto ports = nlohmann::json::parse(ReadBytes(folder_ / "ports.json"));
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto channel =
        grpc::CreateCustomChannel(ports["grpc"].get<std::string>(), grpc::InsecureChannelCredentials(), own);
    extraction_ = v1::Extraction::NewStub(channel);
    jobs_ = v1::Jobs::NewStub(channel);
  }
  // Sets how far the program's wall clock is ahead. The file is changed in place, because the program has
  // mapped it.
  void SetClock(std::chrono::nanoseconds ahead) {
    const auto mode =
        std::filesystem::exists(folder_ / "clock") ? std::ios::in | std::ios::out : std::ios::out;
    std::fstream file(folder_ / "clock", mode | std::ios::binary);
    const int64_t offset = ahead.count();
    file.write(reinterpret_cast<const char*>(&offset), sizeof(offset));
  }

  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<ExtractStream> stream;
  };
  // A job that takes seconds: its fine grid gives its bundle many bins.
  v1::JobHeader LongHeader() const {
    v1::JobHeader header = testing::PathHeader(folder_, kFibres);
    header.mutable_grid()->set_first(kWaveMin);
    header.mutable_grid()->set_step(0.04);
    header.mutable_grid()->set_count(1000);
    return header;
  }
  void SendHeader(const v1::JobHeader& header, Call* call) {
    call->stream = extraction_->Extract(&call->context);
    testing::SendHeader(call->stream.get(), header);
  }
  static grpc::Status End(Call* call) { return ReadToTheEnd(call->stream.get()); }
  using Calls = std::vector<std::unique_ptr<Call>>;
  // Takes the server's only slot for far longer than this test, by consecutive long jobs. Waits until the
  // first runs and the others are in the queue.
  Calls Occupy() {
    Calls calls;
    for (int k = 0; k < 20; ++k) {
      calls.push_back(std::make_unique<Call>());
      Call& call = *calls.back();
      SendHeader(LongHeader(), &call);
      call.stream->WritesDone();
      v1::ExtractEvent event;
      bool there = false;
      while (!there && call.stream->Read(&event)) {
        there = k == 0 ? event.progress().state() == "reading" : event.has_accepted();
      }
      if (!there) ADD_FAILURE() << call.stream->Finish().error_message();
    }
    return calls;
  }
  // Frees the slot. Until then there was always a job that had it.
  static void Release(const Calls& calls) {
    for (const auto& call : calls) call->context.TryCancel();
    EXPECT_EQ(End(calls.back().get()).error_code(), StatusCode::CANCELLED);
    for (const auto& call : calls) {
      if (call != calls.back()) End(call.get());
    }
  }
  std::string Submit(const std::string& request_id, uint32_t keep_seconds = 1000,
                     uint32_t deadline_seconds = 0) {
    v1::SubmitHeader header = Submission(request_id, testing::PathHeader(folder_, 5));
    header.set_keep_seconds(keep_seconds);
    header.set_deadline_seconds(deadline_seconds);
    grpc::ClientContext context;
    v1::SubmitReply reply;
    const grpc::Status status = SubmitJob(jobs_.get(), &context, header, &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply.job_id();
  }
  grpc::Status Watch(const std::string& id) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    return WatchJob(jobs_.get(), &context, id, 0, [](const v1::WatchEvent&) {});
  }
  grpc::Status Get(const std::string& id, v1::JobRecord* record) { return GetJob(jobs_.get(), id, record); }
  StatusCode CodeOf(const std::string& id) {
    v1::JobRecord record;
    return Get(id, &record).error_code();
  }

  InputFolder folder_;
  std::unique_ptr<Process> spexd_;
  std::unique_ptr<v1::Extraction::Stub> extraction_;
  std::unique_ptr<v1::Jobs::Stub> jobs_;
};

TEST_F(ClockTest, LimitsOfTimeHoldThoughItIsSetBackOrForth) {
  for (const std::chrono::hours jump : {-kJump, kJump}) {
    SetClock(std::chrono::nanoseconds(0));
    const auto since = steady_clock::now();
    const auto running = Occupy();
    Call silent, sends_nothing, waiting;
    silent.stream = extraction_->Extract(&silent.context);
    SendHeader(RawHeader(folder_, 5), &sends_nothing);
    waiting.context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(2));
    SendHeader(testing::PathHeader(folder_, 5), &waiting);
    SetClock(jump);
    for (const auto& [name, call] : {std::pair("silent", &silent), std::pair("sends nothing", &sends_nothing),
                                     std::pair("waiting", &waiting)}) {
      const grpc::Status status = End(call);
      EXPECT_EQ(status.error_code(), StatusCode::DEADLINE_EXCEEDED) << name << ": " << status.error_message();
    }
    EXPECT_GE(steady_clock::now() - since, std::chrono::seconds(2));
    EXPECT_LT(steady_clock::now() - since, kPatience);
    Release(running);
    Call next;
    SendHeader(testing::PathHeader(folder_, 5), &next);
    next.stream->WritesDone();
    EXPECT_THAT(End(&next), IsOk());
  }
}

TEST_F(ClockTest, DetachedJobsKeepTheirOrderAndEndThoughItIsSetBack) {
  const auto running = Occupy();
  std::vector<std::string> before, after;
  for (int k = 0; k < 4; ++k) before.push_back(Submit(absl::StrCat("before ", k)));
  SetClock(-kJump);
  for (int k = 0; k < 2; ++k) after.push_back(Submit(absl::StrCat("after ", k)));
  Release(running);
  EXPECT_TRUE(Watch(after.front()).ok());
  for (const std::string& id : before) {
    v1::JobRecord record;
    ASSERT_TRUE(Get(id, &record).ok());
    EXPECT_EQ(record.state(), v1::DETACHED_STATE_DONE) << record.request_id() << " was passed by";
  }
  EXPECT_TRUE(Watch(after.back()).ok());
  spexd_->Signal(SIGTERM);
  EXPECT_EQ(spexd_->Wait(), 0);
}

TEST_F(ClockTest, ResultsStayForTheirTimeAndTheJumpAtMost) {
  const std::string kept = Submit("kept", 10);
  ASSERT_TRUE(Watch(kept).ok());
  SetClock(-kJump);
  const std::string brief = Submit("brief", 1);
  ASSERT_TRUE(Watch(brief).ok());
  // The end of a job makes the server check the times of the others.
  auto let_one_end = [this, n = 0]() mutable { EXPECT_TRUE(Watch(Submit(absl::StrCat("job ", n++))).ok()); };
  let_one_end();
  EXPECT_EQ(CodeOf(kept), StatusCode::OK);
  const auto end = steady_clock::now() + kPatience;
  while (CodeOf(brief) == StatusCode::OK && steady_clock::now() < end) continue;
  EXPECT_EQ(CodeOf(brief), StatusCode::NOT_FOUND);  // its whole time has passed since the jump
  SetClock(std::chrono::seconds(11));
  let_one_end();
  while (CodeOf(kept) == StatusCode::OK && steady_clock::now() < end + kPatience) continue;
  EXPECT_EQ(CodeOf(kept), StatusCode::NOT_FOUND);
}

TEST_F(ClockTest, DetachedJobsRunEndAndExpireThoughItShowsATimeBefore1970) {
  const std::string before = Submit("before");
  ASSERT_TRUE(Watch(before).ok());
  SetClock(kBefore1970);
  EXPECT_TRUE(Watch(Submit("kept")).ok());
  spexd_->Signal(SIGTERM);
  EXPECT_EQ(spexd_->Wait(), 0);
  EXPECT_EQ(spexd_->output().find("Z\",\"level\":\"error\""), std::string::npos) << spexd_->output();
  StartServer();
  v1::JobRecord record;
  EXPECT_EQ(CodeOf(before), StatusCode::OK);
  const std::string brief = Submit("brief", 1);
  ASSERT_TRUE(Watch(brief).ok());
  const auto end = steady_clock::now() + kPatience;
  while (CodeOf(brief) == StatusCode::OK && steady_clock::now() < end) continue;
  EXPECT_EQ(CodeOf(brief), StatusCode::NOT_FOUND) << "its time to live passes";
  const auto running = Occupy();
  const std::string late = Submit("late", 1000, 2);
  EXPECT_EQ(Watch(late).error_code(), StatusCode::DEADLINE_EXCEEDED);
  Release(running);
  ASSERT_TRUE(Get(late, &record).ok());
  EXPECT_GT(record.submitted(), 0);
  EXPECT_GE(record.ended(), record.submitted() + 2);
}

}  // namespace
}  // namespace spexd::testing
