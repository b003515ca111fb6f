// Detached jobs where memory runs out: none is forgotten, whoever watches is woken all the same or told, and
// jobs still expire.
#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "server/rpc/watch_call.h"
#include "tests/support/eventually.h"
#include "tests/support/failing_new.h"
#include "tests/support/temp_folder.h"

namespace spexd {
namespace {

using testing::Failing;
using testing::TempFolder;

const Identity kMe{"me", Roles::All()};
const int64_t kJobBytes = JobStore::BytesOf("header", 6);

// gRPC's side of a Watch: each write is done at once, on a thread of its own.
class Connection final : public grpc::ServerCallbackWriter<v1::WatchEvent> {
 public:
  explicit Connection(EventThread* thread)
      : thread_(thread),
        written_(std::make_shared<EventThread::Step>([this] { reactor_->OnWriteDone(true); })) {}

  void Carry(WatchCall::Reactor* call) {
    {
      MutexLock lock(&mutex_);
      reactor_ = call;
    }
    BindReactor(call);
  }
  // Until so many messages were written, or the call has ended.
  void AwaitWrites(int writes) {
    MutexLock lock(&mutex_);
    while (writes_ < writes && !ended_) changed_.Wait(&mutex_);
  }
  grpc::Status AwaitEnd() {
    MutexLock lock(&mutex_);
    while (!ended_) changed_.Wait(&mutex_);
    return std::move(status_);
  }

  void Write(const v1::WatchEvent* message, grpc::WriteOptions options) override {
    MutexLock lock(&mutex_);
    ++writes_;
    changed_.NotifyAll();
    thread_->Post(written_);
  }
  void Finish(grpc::Status status) override {
    MutexLock lock(&mutex_);
    status_ = std::move(status);
    ended_ = true;
    changed_.NotifyAll();
  }
  void SendInitialMetadata() override {}
  void WriteAndFinish(const v1::WatchEvent* message, grpc::WriteOptions options,
                      grpc::Status status) override {}

 private:
  grpc::internal::ServerReactor* reactor() override { return reactor_; }
  void CallOnDone() override {}

  EventThread* const thread_;
  const std::shared_ptr<EventThread::Step> written_;
  WatchCall::Reactor* reactor_ = nullptr;
  Mutex mutex_;
  CondVar changed_;
  int writes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);
};

// Detached jobs of a server that begins to drain, so that none gets a turn, unless a test says otherwise.
class DetachedOutOfMemory : public ::testing::TestWithParam<Failing> {
 protected:
  DetachedOutOfMemory() {
    options_.jobs_dir = folder_ / "jobs";
    parts_.options = &options_;
    parts_.streams = &streams_;
    parts_.watchdog = &watchdog_;
    parts_.events = &events_;
    parts_.metrics = &metrics_;
    parts_.log = &log_;
    parts_.access = &access_;
    parts_.queue = &queue_;
    parts_.tasks = &tasks_;
    parts_.board = &board_;
    options_.max_running_jobs = 2;
    jobs_ = DetachedJobs::Open(parts_).value();
  }
  // A job that fails once it has a turn, as its header is none.
  absl::Status Submit(const std::string& request_id, int64_t keep_seconds, std::string* id = nullptr) {
    JobStore::Submission submission;
    submission.row.owner = kMe.name;
    submission.row.request_id = submission.row.digest = request_id;
    submission.row.header = "header";
    submission.row.keep_seconds = keep_seconds;
    submission.inputs = {{"image", "pixels"}};
    SPEXD_ASSIGN_OR_RETURN(DiskHold disk, DiskHold::Take(&jobs_->store().space(), kMe.name, kJobBytes));
    SPEXD_ASSIGN_OR_RETURN(JobStore::Submitted submitted, jobs_->Submit(std::move(submission), &disk));
    if (id != nullptr) *id = std::move(submitted.row.id);
    return absl::OkStatus();
  }
  std::string Add(int64_t keep_seconds) {
    jobs_->StartDraining();
    std::string id;
    EXPECT_TRUE(Submit("request", keep_seconds, &id).ok());
    return id;
  }
  int64_t JobsThatEnded() const {
    const StoreStats stats = jobs_->stats();
    return stats.jobs[v1::DETACHED_STATE_FAILED] + stats.expired;
  }
  // One call from begin to end: it sleeps, is woken by its job, sleeps, and its client goes.
  absl::Status WatchUntilTheClientGoes(const std::string& id) {
    grpc::CallbackServerContext context;
    Connection connection(&grpc_);
    const std::shared_ptr<LiveJob> job = jobs_->store().Live(id);
    WatchCall::Reactor* const call = WatchCall::Begin(
        parts_, jobs_.get(), {&context, kMe, streams_.Enter("ipv4:1.2.3.4:5").value(), id, 0});
    connection.Carry(call);
    connection.AwaitWrites(2);  // accepted, progress
    job->Set([](LiveJob::View* view) { ++view->bundles_done; });
    connection.AwaitWrites(3);
    call->OnCancel();
    const grpc::Status status = connection.AwaitEnd();
    call->OnDone();
    if (status.error_code() == grpc::StatusCode::CANCELLED) return absl::OkStatus();
    return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  }

  const TempFolder folder_;
  ServerOptions options_;
  Metrics metrics_;
  Logger log_{LogLevel::kError, MakeDescriptorSink(2)};
  StreamLimits streams_{{}};
  EventThread events_, grpc_;
  StallWatchdog watchdog_;
  Access access_{Identities::Open(0), &log_, &metrics_};
  JobQueue queue_{JobQueue::Limits{.running = 2, .queued = 100}};
  JobBoard board_;
  TaskThreads tasks_{16};
  ServerParts parts_;
  std::unique_ptr<DetachedJobs> jobs_;
};

// An allocation of whatever thread fails: of the call, of the runner or of a job's run. A job that was not
// taken may leave its file behind, which counts until the next start.
TEST_P(DetachedOutOfMemory, NoJobIsForgottenAndNoFileGoesUncounted) {
  int jobs = 0;
  testing::FailEverywhere(GetParam(), [&] {
    const int64_t ended = JobsThatEnded();
    const absl::Status submitted = CatchExceptions([&] { return Submit(std::to_string(++jobs), 1); });
    while (submitted.ok() && JobsThatEnded() == ended && !testing::AnAllocationFailed())
      std::this_thread::yield();
    return submitted;
  });
  EXPECT_GT(jobs, 20);
  // All have ended, were left and have expired.
  EXPECT_TRUE(testing::Eventually([&] {
    return jobs_->store().AllLive().empty() && jobs_->stats().jobs[v1::DETACHED_STATE_FAILED] == 0;
  }));
  const auto files = std::filesystem::directory_iterator(folder_ / "jobs/jobs");
  EXPECT_EQ(jobs_->store().space().used(), kJobBytes * std::distance(begin(files), end(files)));
}

TEST_P(DetachedOutOfMemory, AWatchEndsAloneAndIsNeverForgotten) {
  const std::string id = Add(1000);
  const auto watch = [&] { return CatchExceptions([&] { return WatchUntilTheClientGoes(id); }); };
  EXPECT_GT(testing::FailEverywhere(GetParam(), watch), 10);
  EXPECT_EQ(streams_.open(), 0);
  EXPECT_EQ(jobs_->watched().used(), 0);
  EXPECT_TRUE(watch().ok());
}

TEST_P(DetachedOutOfMemory, AWatchThatSleepsIsWokenWithoutMemory) {
  const std::string id = Add(1000);
  grpc::CallbackServerContext context;
  Connection connection(&grpc_);
  const std::shared_ptr<LiveJob> job = jobs_->store().Live(id);
  WatchCall::Reactor* const call =
      WatchCall::Begin(parts_, jobs_.get(), {&context, kMe, streams_.Enter("ipv4:1.2.3.4:5").value(), id, 0});
  connection.Carry(call);
  connection.AwaitWrites(2);
  bool met = false;
  const absl::Status ended = testing::WithFailingAllocation(
      0, GetParam(),
      [&] {
        job->Set([](LiveJob::View* view) { ++view->bundles_done; });
        connection.AwaitWrites(3);
        call->OnCancel();
        connection.AwaitEnd();
        return absl::OkStatus();
      },
      &met);
  EXPECT_TRUE(ended.ok());
  call->OnDone();
}

TEST_P(DetachedOutOfMemory, JobsExpireAfterAll) {
  const std::string id = Add(5);  // until then the allocations of this thread are made
  ASSERT_TRUE(jobs_->Cancel(kMe, id).ok());
  ASSERT_TRUE(testing::Eventually([&] { return jobs_->store().Live(id) == nullptr; }));
  bool met = false;
  const absl::Status status = testing::WithFailingAllocation(
      0, GetParam(),
      [] {
        testing::AwaitFailedAllocation();  // of the thread that removes it
        return absl::OkStatus();
      },
      &met);
  EXPECT_TRUE(status.ok() && met);
  EXPECT_TRUE(testing::Eventually([&] { return absl::IsNotFound(jobs_->store().Get(kMe, id).status()); }));
}

INSTANTIATE_TEST_SUITE_P(OnceAndForGood, DetachedOutOfMemory,
                         ::testing::Values(Failing::kOnce, Failing::kForGood));

TEST(StallWatchdog, IsArmedAndTellsOfPassedTimesWithoutMemory) {
  StallWatchdog watchdog;
  std::promise<void> passed;
  StallWatchdog::Watch watch(&watchdog, [&] { passed.set_value(); });
  StallWatchdog::Watch later(&watchdog, [] {});
  bool met = false;
  const absl::Status status = testing::WithFailingAllocation(
      0, Failing::kForGood,
      [&] {
        later.Arm(StallWatchdog::Clock::now() + std::chrono::hours(1));
        watch.Arm(StallWatchdog::Clock::now() + std::chrono::hours(1));
        watch.Arm(StallWatchdog::Clock::now());
        passed.get_future().wait();
        return absl::OkStatus();
      },
      &met);
  EXPECT_TRUE(status.ok());
  EXPECT_FALSE(met) << "memory was asked for";
}

}  // namespace
}  // namespace spexd
