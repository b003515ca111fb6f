// Detached jobs through real gRPC, on servers that stand in for spexd.
#include "client/detached_client.h"

#include <functional>
#include <memory>
#include <thread>

#include "client/connection/grpc_connection.h"
#include "client/connection/server_directory.h"
#include "client/job_watch.h"
#include "tests/client/support/fake_connection.h"
#include "tests/client/support/stand_in_jobs.h"
#include "tests/client/support/stand_in_server.h"
#include "tests/support/matchers.h"
#include "tests/support/temp_folder.h"

namespace spexd::client {
namespace {

using spexd::testing::SomeJob;
using spexd::testing::StandInJobs;
using spexd::testing::StandInServer;
using spexd::testing::TempFolder;
using std::chrono::milliseconds;

class DetachedRecorder : public JobObserver {
 public:
  void OnAccepted(const std::string& job_id, int queue_position) override { accepted = job_id; }
  void OnBundle(const BundleSpectra& bundle, int done, int total) override {
    bundles.push_back(bundle.bundle);
    if (bundles.size() == 1 && on_first_bundle) on_first_bundle();
    if (cancel != nullptr) cancel->request_stop();
  }
  void OnRetry(int attempt, const absl::Status& reason, milliseconds delay) override { ++retries; }

  std::string accepted;
  std::vector<int> bundles;
  int retries = 0;
  std::stop_source* cancel = nullptr;
  std::function<void()> on_first_bundle;
};

// Servers that keep jobs, and a client of all of them.
class DetachedJobs : public ::testing::Test {
 protected:
  void AddServer(StandInJobs::Behaviour behaviour = {}) {
    jobs_.push_back(std::make_unique<StandInJobs>(std::move(behaviour)));
    servers_.push_back(std::make_unique<StandInServer>(spexd::testing::StandInAnswer(), jobs_.back().get()));
    connections_.push_back(MakeGrpcConnection(servers_.back()->address()));
  }
  DetachedClient Client(uint32_t seed = 1, milliseconds queue_patience = std::chrono::minutes(10)) {
    RetryPolicy retry;
    retry.queue_patience = queue_patience;
    retry.first_wait = milliseconds(2);
    retry.seed = seed;
    return DetachedClient(Pointers(connections_), retry);
  }
  std::shared_ptr<Connection> Server(size_t k) const {
    return SameServers({connections_[k].get()})()->front();
  }
  absl::StatusOr<Submitted> Submit(const std::string& request_id = "") {
    return Client().Submit(SomeJob(), {.request_id = request_id}, nullptr, {});
  }
  // Submits a job and watches it.
  absl::StatusOr<WatchedJob> Watch() {
    const auto submitted = Submit();
    if (!submitted.ok()) return submitted.status();
    return Client().Watch(submitted->job_id, &seen_, std::nullopt, {});
  }
  // Watches job-1 on the servers of a name. At the first bundle it calls `move`, which may change `named`,
  // and then stops the first server.
  absl::StatusOr<WatchedJob> WatchWhileTheFirstServerStops(const std::function<void()>& move) {
    const auto directory = OpenDirectory({.address = "dns:///spexd.example:50051"},
                                         [this](const std::string&, const std::string&) { return named_; });
    if (!directory.ok()) return directory.status();
    seen_.on_first_bundle = [&] {
      move();
      servers_[0].reset();
    };
    RetryPolicy retry;
    retry.first_wait = milliseconds(2);
    return DetachedClient((*directory)->source(), retry).Watch("job-1", &seen_, std::nullopt, {});
  }
  // Submits a job to this server only.
  void SubmitTo(size_t k) {
    ASSERT_TRUE(DetachedClient({connections_[k].get()}).Submit(SomeJob(), {}, nullptr, {}).ok());
  }
  size_t JobsInAll() const {
    size_t sum = 0;
    for (const auto& jobs : jobs_) sum += jobs->jobs().size();
    return sum;
  }

  std::vector<std::unique_ptr<StandInJobs>> jobs_;
  std::vector<std::unique_ptr<StandInServer>> servers_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<std::string> named_;  // addresses that the name resolves to
  DetachedRecorder seen_;
};

void ExpectTheWholeFrame(const absl::StatusOr<WatchedJob>& watched) {
  ASSERT_TRUE(watched.ok()) << watched.status();
  const Frame& frame = watched->outcome.frame;
  EXPECT_EQ(frame.fibres, (FibreRange{10, 5}));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(frame.spectra.flux(i, 3), 100 * (10 + i) + 3);
  EXPECT_EQ(watched->outcome.job_id, "job-1");
}

TEST_F(DetachedJobs, AreSubmittedWithTheirFilesAndOptions) {
  AddServer();
  const TempFolder folder;
  Job job = SomeJob();
  job.image = folder / "image.fits";
  job.psf = folder / "psf.fits";
  job.spec.priority = -4;
  spexd::testing::WriteBytes(job.image, std::string(3 << 20, 'i'));
  spexd::testing::WriteBytes(job.psf, "psf");
  const SubmitOptions options = {.request_id = "night 7", .keep = std::chrono::hours(1), .upload = true};
  const auto submitted = Client().Submit(job, options, nullptr, {});
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_EQ(submitted->job_id, "job-1");
  EXPECT_EQ(submitted->server, servers_[0]->address());
  EXPECT_FALSE(submitted->existed);
  const StandInJobs::Job brought = jobs_[0]->jobs().at(0);
  EXPECT_EQ(brought.header.request_id(), "night 7");
  EXPECT_EQ(brought.header.keep_seconds(), 3600u);
  EXPECT_EQ(brought.header.job().priority(), -4);
  EXPECT_EQ(brought.bytes, std::string(3 << 20, 'i') + "psf");
}

TEST_F(DetachedJobs, OfOneRequestIdAreOneJob) {
  AddServer();
  AddServer();
  ASSERT_TRUE(Submit("night 7").ok());
  for (uint32_t seed = 0; seed < 5; ++seed) {
    const auto again = Client(seed).Submit(SomeJob(), {.request_id = "night 7"}, nullptr, {});
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE(again->existed);
  }
  EXPECT_EQ(JobsInAll(), 1u);
  for (int k = 0; k < 3; ++k) ASSERT_TRUE(Submit().ok());  // random request ids
  EXPECT_EQ(JobsInAll(), 4u);
}

TEST_F(DetachedJobs, OfOneClientAreSharedEquallyByTheServers) {
  AddServer();
  AddServer();
  DetachedClient client(Pointers(connections_), {.health_patience = std::chrono::minutes(1), .seed = {}});
  for (int k = 0; k < 6; ++k) ASSERT_TRUE(client.Submit(SomeJob(), {}, nullptr, {}).ok());
  for (const auto& jobs : jobs_) EXPECT_THAT(jobs->jobs(), SizeIs(3));
}

TEST_F(DetachedJobs, WhoseAnswerIsLostAreAskedForAgainOnTheSameServer) {
  AddServer({.lost_answers = 2});
  AddServer({.lost_answers = 2});
  const auto submitted = Submit();
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_TRUE(submitted->existed);
  EXPECT_EQ(JobsInAll(), 1u);
}

TEST_F(DetachedJobs, WhoseAnswerStaysLostCanBeAskedForByTheirRequestId) {
  AddServer({.lost_answers = 99});
  const absl::Status status = Submit().status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                               AllOf(HasSubstr(jobs_[0]->jobs().at(0).header.request_id()),
                                     HasSubstr("--request-id"))));
}

TEST_F(DetachedJobs, ThatAreStoppedBeforeTheAnswerCanBeAskedForByTheirRequestId) {
  AddServer({.mute = true});
  std::stop_source cancel;
  std::thread user([&] {
    jobs_[0]->AwaitJob();
    cancel.request_stop();
  });
  const absl::Status status = Client().Submit(SomeJob(), {}, nullptr, cancel.get_token()).status();
  user.join();
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kCancelled, HasSubstr(jobs_[0]->jobs().at(0).header.request_id())));
}

TEST_F(DetachedJobs, ThatNoServerTookNameNoRequestId) {
  AddServer({.refuses = true});
  EXPECT_THAT(Submit("night 7").status().message(), Not(HasSubstr("night 7")));
}

TEST_F(DetachedJobs, GoToAnotherServerWhereOneTakesNone) {
  AddServer({.refuses = true});
  AddServer();
  for (int k = 0; k < 6; ++k) ASSERT_TRUE(Submit("night " + std::to_string(k)).ok());
  EXPECT_THAT(jobs_[0]->jobs(), IsEmpty());
  EXPECT_THAT(jobs_[1]->jobs(), SizeIs(6));
}

TEST_F(DetachedJobs, ComeBackAsAFrame) {
  AddServer();
  const auto watched = Watch();
  ExpectTheWholeFrame(watched);
  EXPECT_THAT(seen_.bundles, ElementsAre(1, 0));
  EXPECT_EQ(seen_.accepted, "job-1");
  EXPECT_EQ(watched->last_sequence, 5u);
  EXPECT_EQ(jobs_[0]->jobs().at(0).record.acknowledged(), 0u);  // the caller decides that
}

TEST_F(DetachedJobs, GoOnAfterABrokenConnectionWithEveryBundleOnce) {
  AddServer({.breaks = {0, 1, 3, 2, 1}, .repeats = true});
  const auto watched = Watch();
  ExpectTheWholeFrame(watched);
  EXPECT_THAT(seen_.bundles, ElementsAre(1, 0));
  // The calls deliver no event, 1, 3 including a repetition, 2 including a repetition, and only the
  // repetition.
  EXPECT_THAT(jobs_[0]->watched(), ElementsAre(0, 0, 1, 3, 4, 4));
  EXPECT_EQ(seen_.retries, 5);
}

TEST_F(DetachedJobs, AreWatchedOnWhereTheirServerIsStartedAgainAtAnotherAddress) {
  AddServer({.holds = StandInJobs::Stage::kWatching, .holds_before = 4});
  AddServer();
  SubmitTo(0);
  SubmitTo(1);
  named_ = {servers_[0]->address()};
  const auto watched = WatchWhileTheFirstServerStops([&] { named_ = {servers_[1]->address()}; });
  ExpectTheWholeFrame(watched);
  EXPECT_EQ(watched->server->address(), servers_[1]->address());
  EXPECT_THAT(seen_.bundles, ElementsAre(1, 0));
  EXPECT_THAT(jobs_[1]->watched(), ElementsAre(3));  // the earlier events came from the first server
}

// As if two servers had exchanged their addresses.
TEST_F(DetachedJobs, AreWatchedOnAtAServerThatDidNotHaveThemBefore) {
  AddServer({.holds = StandInJobs::Stage::kWatching, .holds_before = 4});
  AddServer();
  SubmitTo(0);
  named_ = {servers_[1]->address(), servers_[0]->address()};
  const auto watched = WatchWhileTheFirstServerStops([&] { SubmitTo(1); });
  ExpectTheWholeFrame(watched);
  EXPECT_EQ(watched->server->address(), servers_[1]->address());
  EXPECT_THAT(jobs_[1]->watched(), ElementsAre(3));
}

TEST_F(DetachedJobs, AreGivenUpOnAServerThatTakesCallsAndBreaksThem) {
  AddServer({.breaks = std::vector<int>(1000, 0)});
  ASSERT_TRUE(Submit().ok());
  const auto watched = Client(1, milliseconds(100)).Watch("job-1", &seen_, std::nullopt, {});
  EXPECT_EQ(watched.status().code(), absl::StatusCode::kUnavailable) << watched.status();
  EXPECT_FALSE(IsTheJobsOwn(watched.status()));
  EXPECT_LT(seen_.retries, 20);
}

TEST_F(DetachedJobs, ThatBreakAfterTheSummaryAreAskedForTheirEnd) {
  AddServer({.breaks = {5}, .end = grpc::Status::OK});
  ExpectTheWholeFrame(Watch());
}

TEST_F(DetachedJobs, AreFetchedAnewIfTheyArriveDamaged) {
  AddServer({.damaged = 1});
  ExpectTheWholeFrame(Watch());
  EXPECT_THAT(jobs_[0]->watched(), ElementsAre(0, 0));
}

TEST_F(DetachedJobs, ThatStayDamagedOrHaveGapsAreRefused) {
  AddServer({.damaged = 9});
  EXPECT_THAT(Watch().status().message(), HasSubstr("checksum"));
  connections_.clear();
  AddServer({.gap = true});
  EXPECT_THAT(Watch().status(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("event 4 came after event 2")));
}

TEST_F(DetachedJobs, ThatFailedEndWithTheirOwnError) {
  for (const auto code :
       {grpc::StatusCode::INVALID_ARGUMENT, grpc::StatusCode::UNAVAILABLE, grpc::StatusCode::INTERNAL,
        grpc::StatusCode::DEADLINE_EXCEEDED, grpc::StatusCode::RESOURCE_EXHAUSTED}) {
    connections_.clear();
    AddServer({.end = grpc::Status(code, "no HDU IMAGE")});
    const absl::Status status = Watch().status();
    EXPECT_EQ(static_cast<int>(status.code()), static_cast<int>(code)) << status;
    EXPECT_THAT(status.message(), HasSubstr("no HDU IMAGE"));
    EXPECT_TRUE(IsTheJobsOwn(status));
    EXPECT_THAT(jobs_.back()->watched(), SizeIs(1));
  }
}

TEST_F(DetachedJobs, ThatSomeoneCancelledSaySo) {
  AddServer({.cancelled = true});
  EXPECT_EQ(Watch().status().code(), absl::StatusCode::kCancelled);
}

TEST_F(DetachedJobs, ThatRunAreLeftAloneByAStopOrADeadline) {
  AddServer({.runs = true});
  const auto submitted = Submit();
  ASSERT_TRUE(submitted.ok());
  std::stop_source cancel;
  seen_.cancel = &cancel;
  auto client = Client();
  EXPECT_EQ(client.Watch("job-1", &seen_, std::nullopt, cancel.get_token()).status().code(),
            absl::StatusCode::kCancelled);
  const auto late = client.Watch("job-1", nullptr, Clock::now() + milliseconds(2000), {});
  EXPECT_THAT(late.status(), StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("it goes on")));
  EXPECT_FALSE(IsTheJobsOwn(late.status()));
  EXPECT_EQ(jobs_[0]->jobs().at(0).record.state(), v1::DETACHED_STATE_RUNNING);
}

TEST_F(DetachedJobs, AreReleasedOnceTheyAreAcknowledged) {
  AddServer();
  const auto watched = Watch();
  ASSERT_TRUE(watched.ok());
  ASSERT_TRUE(Client().Acknowledge(*watched, {}).ok());
  EXPECT_EQ(jobs_[0]->jobs().at(0).record.acknowledged(), 5u);
  EXPECT_EQ(Client().Watch("job-1", nullptr, std::nullopt, {}).status().code(),
            absl::StatusCode::kOutOfRange);
}

TEST_F(DetachedJobs, StayOnAServerThatIsGoneWhenTheyAreAcknowledged) {
  AddServer();
  const auto watched = Watch();
  ASSERT_TRUE(watched.ok());
  servers_[0].reset();
  EXPECT_EQ(Client().Acknowledge(*watched, {}).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(jobs_[0]->jobs().at(0).record.acknowledged(), 0u);
}

TEST_F(DetachedJobs, AreFoundOnWhicheverServerHasThem) {
  AddServer();
  AddServer();
  for (int k = 0; k < 4; ++k) {
    const auto submitted = Submit("night " + std::to_string(k));
    ASSERT_TRUE(submitted.ok());
    const auto found = Client().Find(submitted->job_id, milliseconds(10000), std::nullopt, {});
    ASSERT_TRUE(found.ok()) << found.status();
  }
  EXPECT_EQ(Client().Find("job-99", milliseconds(10000), std::nullopt, {}).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(Client().Watch("job-99", nullptr, std::nullopt, {}).status().code(), absl::StatusCode::kNotFound);
  servers_[1].reset();
  EXPECT_EQ(Client().Find("job-99", milliseconds(10000), std::nullopt, {}).status().code(),
            absl::StatusCode::kUnavailable);
  DetachedRecorder seen;
  EXPECT_EQ(Client().Watch("job-99", &seen, std::nullopt, {}).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(seen.retries, 4);
}

TEST_F(DetachedJobs, AreFoundBehindAServerThatHangs) {
  AddServer({.hangs = true});
  AddServer();
  ASSERT_TRUE(DetachedClient({connections_[1].get()}).Submit(SomeJob(), {}, nullptr, {}).ok());
  const auto found = Client().Find("job-1", milliseconds(10000), std::nullopt, {});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->server.get(), connections_[1].get());
}

// Much less than the 10 s for which a server may be silent, and much more than a stop takes.
constexpr std::chrono::seconds kAtOnce(8);

TEST_F(DetachedJobs, ThatAreWatchedOnAServerThatHangsAreLeftAtTheDeadline) {
  AddServer({.breaks = {1}, .hangs = true});
  ASSERT_TRUE(Submit().ok());
  RetryPolicy retry;
  JobWatch watch(Server(0), "job-1", retry, nullptr, [](const Connection&) { return nullptr; });
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(watch.Run(Clock::now() + milliseconds(300), {}).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_LT(std::chrono::steady_clock::now() - start, kAtOnce);
}

TEST_F(DetachedJobs, AreLeftByAStopWhileTheirServerHangs) {
  for (const bool acknowledges : {false, true}) {
    connections_.clear();
    AddServer({.hangs = true});
    std::stop_source cancel;
    std::thread user([&] {
      jobs_.back()->AwaitHang();
      cancel.request_stop();
    });
    const auto start = std::chrono::steady_clock::now();
    const absl::Status status =
        acknowledges ? Client().Acknowledge({.outcome = {}, .server = Server(0)}, cancel.get_token())
                     : Client().Watch("job-1", nullptr, std::nullopt, cancel.get_token()).status();
    user.join();
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
    EXPECT_LT(std::chrono::steady_clock::now() - start, kAtOnce);
  }
}

TEST_F(DetachedJobs, AreListedPageByPage) {
  AddServer();
  for (int k = 0; k < 5; ++k) ASSERT_TRUE(Submit().ok());
  const auto jobs = ListAllJobs(connections_[0].get(), {}, std::nullopt, {});
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_THAT(*jobs, SizeIs(5));
}

}  // namespace
}  // namespace spexd::client
