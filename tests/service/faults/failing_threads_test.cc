// Threads that cannot be started: loops use fewer threads, tasks and calls are refused with a reason and a
// delay, and the next ones are served.
#include "tests/support/failing_threads.h"

#include <atomic>
#include <future>

#include "core/base/threads/parallel.h"
#include "server/base/retry.h"
#include "server/base/task_threads.h"
#include "tests/service/support/harness.h"
#include "tests/support/matchers.h"

namespace spexd::testing {
namespace {

constexpr char kMessage[] =
    "no thread for the call beside those of 0 others: no further thread can be started";

TEST(ParallelForWithoutThreads, RunsEachPieceByThoseThatThereAre) {
  for (int started = 0; started < 3; ++started) {
    const FailingThread failing(started);
    std::atomic<int> ran = 0;
    EXPECT_TRUE(ParallelFor(100, 4, [&](int64_t) {
                  ++ran;
                  return absl::OkStatus();
                }).ok());
    EXPECT_EQ(ran, 100);
    EXPECT_TRUE(failing.met());
  }
}

TEST(TaskThreadsWithoutThreads, RefuseATaskWithADelayAndRunTheNext) {
  TaskThreads tasks(1);
  {
    const FailingThread failing(0);
    const absl::Status refused = tasks.Start([] { ADD_FAILURE() << "a refused task ran"; });
    EXPECT_TRUE(failing.met());
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(std::string(refused.message()), kMessage);
    EXPECT_TRUE(RetryDelayOf(refused).has_value());
    EXPECT_EQ(ReasonOf(refused), "threads");
  }
  std::promise<void> ran;
  ASSERT_TRUE(tasks.Start([&] { ran.set_value(); }).ok());
  ran.get_future().wait();
}

class ServiceWithoutThreads : public ServiceTest {};

TEST_F(ServiceWithoutThreads, RefusesACallWithADelayAndServesTheNext) {
  Start();
  {
    const FailingThread failing(0);
    const Answer refused = Extract(PathHeader());
    EXPECT_TRUE(failing.met());
    EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(refused.message(), kMessage);
    EXPECT_GT(refused.retry_seconds(), 0);
    EXPECT_EQ(refused.trailers.count("grpc-retry-pushback-ms"), 1u);
    EXPECT_EQ(Metric("spexd_rejections_total{reason=\"threads\"}"), 1);
  }
  EXPECT_TRUE(Extract(PathHeader()).status.ok());
  EXPECT_EQ(Metric("spexd_streams"), 0);
}

}  // namespace
}  // namespace spexd::testing
