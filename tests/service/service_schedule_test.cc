// The queue through a real channel: priorities, shares of identities, limits, slow readers, deadlines.
#include "absl/strings/str_cat.h"
#include "core/base/digest/sha256.h"
#include "tests/service/support/harness.h"
#include "tests/support/matchers.h"

namespace spexd::testing {
namespace {

using grpc::StatusCode;

class ServiceScheduleTest : public ServiceTest {
 protected:
  // Starts a server with one slot and a gate that holds it.
  void StartWith(const std::vector<std::string>& identities) {
    std::string text;
    for (const std::string& name : identities)
      absl::StrAppend(&text, name, " submit token sha256:", Sha256Hex("token of " + name), "\n");
    WriteText(folder_ / "identities", text);
    options_.identities = folder_ / "identities";
    if (options_.max_running_jobs == 0) options_.max_running_jobs = 1;
    Start();
    engine_->Set([](auto& b) { b.gate_closed = true; });
  }
  // Sends a job's header as that identity. Its answers come later.
  std::unique_ptr<Call> Begin(const std::string& identity, int priority = 0,
                              std::chrono::milliseconds timeout = std::chrono::hours(1)) {
    auto call = std::make_unique<Call>();
    call->context.AddMetadata("authorization", "Bearer token of " + identity);
    call->context.set_deadline(std::chrono::system_clock::now() + timeout);
    call->stub = NewStub();
    call->stream = call->stub->Extract(&call->context);
    v1::JobHeader header = PathHeader();
    header.set_priority(priority);
    SendHeader(call->stream.get(), header);
    call->stream->WritesDone();
    return call;
  }
  // Reads until the job is in that state; returns false if the stream ends first.
  static bool Reaches(Call* call, const std::string& state) {
    v1::ExtractEvent event;
    while (call->stream->Read(&event)) {
      if (event.progress().state() == state) return true;
    }
    return false;
  }
  // Puts a job into the queue.
  std::unique_ptr<Call> Queue(const std::string& identity, int priority = 0) {
    const double before = Metric("spexd_queue_ready_jobs");
    auto call = Begin(identity, priority);
    EXPECT_TRUE(Reaches(call.get(), "queued"));  // the event is sent just before the job joins the queue
    EXPECT_TRUE(Eventually([&] { return Metric("spexd_queue_ready_jobs") > before; }));
    return call;
  }
  static Answer Cancel(Call* call) {
    call->context.TryCancel();
    return End(call);
  }
};

TEST_F(ServiceScheduleTest, AJobOfHigherPriorityGoesFirst) {
  StartWith({"user"});
  const auto running = Begin("user");
  ASSERT_TRUE(AtGate(1));
  const auto low = Queue("user", -1), high = Queue("user", 10);
  EXPECT_TRUE(Eventually([&] {
    return Metric("spexd_queue_priority_jobs{priority=\"low\"}") == 1 &&
           Metric("spexd_queue_priority_jobs{priority=\"high\"}") == 1;
  }));
  EXPECT_GT(Metric("spexd_queue_device_seconds"), 0);
  EXPECT_GT(Metric("spexd_queue_oldest_seconds"), 0);
  Cancel(running.get());
  EXPECT_TRUE(Reaches(high.get(), "extracting"));
  EXPECT_EQ(Metric("spexd_queue_priority_jobs{priority=\"low\"}"), 1);
}

TEST_F(ServiceScheduleTest, AFloodOfOneIdentityDelaysAnotherByNoJobThatHasNotBegun) {
  StartWith({"flood", "other"});
  const auto running = Begin("flood", 10);
  ASSERT_TRUE(AtGate(1));
  std::vector<std::unique_ptr<Call>> flood;
  for (int k = 0; k < 20; ++k) flood.push_back(Queue("flood", 10));
  const auto single = Queue("other", -10);
  Cancel(running.get());
  EXPECT_TRUE(Reaches(single.get(), "extracting"));
  EXPECT_EQ(Metric("spexd_queue_jobs"), 20);
}

TEST_F(ServiceScheduleTest, AJobWhoseDeadlinePassesInTheQueueEndsThen) {
  StartWith({"user"});
  const auto running = Begin("user");
  ASSERT_TRUE(AtGate(1));
  const auto late = Begin("user", 0, std::chrono::seconds(10));
  EXPECT_EQ(End(late.get()).status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(Eventually([&] { return Metric("spexd_queue_jobs") == 0; }));
  EXPECT_EQ(Metric("spexd_jobs_in_flight"), 1);
  EXPECT_TRUE(Eventually([&] { return Metric("spexd_cancellations_total{stage=\"queued\"}") == 1; }));
}

TEST_F(ServiceScheduleTest, AReaderWhoseResultsFillTheMemoryGetsNoMoreSlotsAndOthersWaitWithTheirs) {
  options_.max_running_jobs = 3;
  options_.max_result_bytes = 75000;  // the results of one job
  StartWith({"slow", "other"});
  const auto first = Begin("slow");
  ASSERT_TRUE(AtGate(1));
  const auto second = Queue("slow");
  const auto waiting = Begin("other");
  // The other reader's job has a slot and waits for memory. After that the reader gets no more slots either.
  ASSERT_TRUE(Reaches(waiting.get(), "reading"));
  // It takes its memory a moment after the event that it reads; until then a further job gets a slot.
  const double before = Metric("spexd_queue_ready_jobs");
  const auto waits = [&] { return Metric("spexd_queue_ready_jobs") > before; };
  for (;;) {
    const auto impatient = Begin("other");
    ASSERT_TRUE(Eventually([&] { return waits() || Metric("spexd_jobs_in_flight") == 3; }));
    const bool waited = waits();
    Cancel(impatient.get());
    ASSERT_TRUE(Eventually([&] { return !waits() && Metric("spexd_jobs_in_flight") == 2; }));
    if (waited) break;
  }
  OpenGate();
  EXPECT_TRUE(End(first.get()).status.ok());
  EXPECT_TRUE(End(waiting.get()).status.ok());
  EXPECT_TRUE(End(second.get()).status.ok());
  EXPECT_EQ(engine_->seen().max_running, 1);
  EXPECT_EQ(Metric("spexd_rejections_total{reason=\"memory\"}"), 0);
}

TEST_F(ServiceScheduleTest, LearnsHowLongJobsTake) {
  StartWith({"user"});
  OpenGate();
  for (int k = 0; k < 4; ++k) {
    const auto call = Begin("user");
    EXPECT_TRUE(End(call.get()).status.ok());
  }
  EXPECT_TRUE(Eventually([&] { return Metric("spexd_job_estimate_ratio_count") == 4; }));
  engine_->Set([](auto& b) { b.gate_closed = true; });
  const auto running = Begin("user");
  ASSERT_TRUE(AtGate(1));
  const auto queued = Queue("user");
  EXPECT_NE(Metric("spexd_queue_device_seconds"), 5) << "the first guess";
}

}  // namespace
}  // namespace spexd::testing
