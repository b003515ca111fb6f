// Detached jobs as clients see them, over real channels, on a fake engine.
#include <filesystem>
#include <future>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/fits/writers.h"
#include "server/server.h"
#include "tests/service/support/harness.h"
#include "tests/support/matchers.h"

namespace spexd::testing {
namespace {

using grpc::StatusCode;

// What a Watch has delivered.
struct Seen {
  grpc::Status status;
  std::vector<std::pair<uint64_t, std::string>> events;  // numbered events, serialised
  std::vector<int> bundles;                              // complete bundles
  std::vector<std::string> states;
  bool accepted = false, summary = false;
  uint64_t last = 0;

  void Take(const v1::WatchEvent& message) {
    const v1::ExtractEvent& event = message.event();
    if (event.has_accepted()) accepted = true;
    if (event.has_progress()) states.push_back(event.progress().state());
    if (message.sequence() == 0) return;
    last = message.sequence();
    events.emplace_back(message.sequence(), event.SerializeAsString());
    if (event.has_bundle() && event.bundle().last())
      bundles.push_back(static_cast<int>(event.bundle().bundle()));
    if (event.has_summary() && event.summary().last()) summary = true;
  }
};

class DetachedTest : public ServiceTest {
 protected:
  DetachedTest() { options_.jobs_dir = folder_ / "jobs"; }

  std::unique_ptr<v1::Jobs::Stub> Jobs() const { return v1::Jobs::NewStub(NewChannel()); }

  static v1::SubmitHeader Request(const std::string& request_id, const v1::JobHeader& job) {
    return Submission(request_id, job);
  }
  struct Submitted {
    grpc::Status status;
    v1::SubmitReply reply;
    double retry_seconds = -1;
  };
  Submitted Submit(const v1::SubmitHeader& header, const std::vector<UploadData>& uploads = {}) {
    Submitted submitted;
    grpc::ClientContext context;
    ShowCaller(&context);
    submitted.status = testing::SubmitJob(Jobs().get(), &context, header, &submitted.reply, uploads);
    submitted.retry_seconds = Ended(submitted.status, context).retry_seconds();
    return submitted;
  }
  std::string SubmitJob(const std::string& request_id) {
    const Submitted submitted = Submit(Request(request_id, PathHeader()));
    EXPECT_TRUE(submitted.status.ok()) << submitted.status.error_message();
    return submitted.reply.job_id();
  }
  std::string SubmitWithDeadline(const std::string& request_id, uint32_t seconds) {
    v1::SubmitHeader header = Request(request_id, PathHeader());
    header.set_deadline_seconds(seconds);
    const Submitted submitted = Submit(header);
    EXPECT_TRUE(submitted.status.ok()) << submitted.status.error_message();
    return submitted.reply.job_id();
  }
  Seen Watch(const std::string& id, uint64_t after = 0) const {
    Seen seen;
    grpc::ClientContext context;
    seen.status =
        WatchJob(Jobs().get(), &context, id, after, [&](const v1::WatchEvent& event) { seen.Take(event); });
    return seen;
  }
  v1::JobRecord Get(const std::string& id) const {
    v1::JobRecord record;
    const grpc::Status status = GetJob(Jobs().get(), id, &record);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return record;
  }
  grpc::Status Ack(const std::string& id, uint64_t upto, v1::JobRecord* record) const {
    grpc::ClientContext context;
    return Acknowledge(Jobs().get(), &context, id, upto, record);
  }
  grpc::Status Cancel(const std::string& id, v1::JobRecord* record) const {
    return CancelJob(Jobs().get(), id, record);
  }
  bool WaitForBundles(const std::string& id, uint32_t bundles) {
    return Eventually([&] { return Get(id).bundles_done() >= bundles; });
  }
  bool WaitForState(const std::string& id, v1::DetachedState state) {
    return Eventually([&] { return Get(id).state() == state; });
  }
  // Simulates the death of the server's process: the next server gets a copy of the folder as it is now,
  // whatever this one still writes.
  void DieAndStart() {
    namespace fs = std::filesystem;
    const std::string left = options_.jobs_dir + "+";
    fs::create_directories(left + "/jobs");
    fs::copy(options_.jobs_dir + "/lock", left);
    for (const auto& job : fs::directory_iterator(options_.jobs_dir + "/jobs")) {
      const std::string copy = left + "/jobs/" + job.path().filename().string();
      fs::create_directory(copy);
      // Copies the state first: everything that it claims is in the other files already.
      for (const char* first : {"state", "header"}) fs::copy(job.path() / first, copy);
      fs::copy(job.path(), copy, fs::copy_options::skip_existing | fs::copy_options::recursive);
    }
    server_.reset();
    options_.jobs_dir = left;
    Start();
  }
  // Files of a job whose results were acknowledged, or that was cancelled.
  const std::vector<std::string> kOfEndedJob = {"header", "state"};
  // Returns the names of the files in a job's folder, sorted; none if the folder does not exist.
  std::vector<std::string> FilesOf(const std::string& id) const {
    std::vector<std::string> names;
    std::error_code none;
    for (const auto& file : std::filesystem::directory_iterator(folder_ / ("jobs/jobs/" + id), none))
      names.push_back(file.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
};

TEST_F(DetachedTest, AJobBringsWhatExtractBringsAndGoesOnAcknowledgement) {
  Start();
  const Answer direct = Extract(PathHeader());
  ASSERT_TRUE(direct.status.ok());
  const std::string id = SubmitJob("one");
  const Seen seen = Watch(id);
  ASSERT_TRUE(seen.status.ok()) << seen.status.error_message();
  EXPECT_TRUE(seen.accepted && seen.summary);
  std::vector<std::string> direct_parts, parts;
  for (const v1::BundlePart* part : direct.parts()) direct_parts.push_back(part->SerializeAsString());
  for (const auto& [sequence, bytes] : seen.events) {
    v1::ExtractEvent event;
    ASSERT_TRUE(event.ParseFromString(bytes));
    if (event.has_bundle()) parts.push_back(event.bundle().SerializeAsString());
    EXPECT_TRUE(!event.has_summary() || event.summary().job_id() == id);
  }
  EXPECT_EQ(parts, direct_parts);
  for (size_t k = 0; k < seen.events.size(); ++k) EXPECT_EQ(seen.events[k].first, k + 1);

  const v1::JobRecord record = Get(id);
  EXPECT_EQ(record.state(), v1::DETACHED_STATE_DONE);
  EXPECT_EQ(record.request_id(), "one");
  EXPECT_EQ(record.image(), folder_ / "preproc.fits");
  EXPECT_EQ(record.last_sequence(), seen.last);
  EXPECT_EQ(record.bundles_done(), 3u);
  EXPECT_EQ(record.bundles_total(), 3u);
  EXPECT_EQ(record.runs(), 1u);
  EXPECT_GT(record.result_bytes(), 0u);
  EXPECT_NEAR(record.expires() - record.ended(), 86400, 1);
  EXPECT_EQ(Watch(id, 2).events.size(), seen.events.size() - 2);

  v1::JobRecord released;
  ASSERT_TRUE(Ack(id, seen.last, &released).ok());
  EXPECT_EQ(released.result_bytes(), 0u);
  EXPECT_TRUE(Eventually([&] { return FilesOf(id) == kOfEndedJob; }));
  EXPECT_EQ(Watch(id, 2).status.error_code(), StatusCode::OUT_OF_RANGE);
  EXPECT_TRUE(Watch(id, seen.last).status.ok());
  EXPECT_EQ(Ack(id, seen.last + 1, &released).error_code(), StatusCode::OUT_OF_RANGE);
}

TEST_F(DetachedTest, TheSameRequestIsTheSameJobAlsoAfterARestart) {
  Start();
  const v1::SubmitHeader header = Request("one", RawHeader());
  const Submitted first = Submit(header, {RawUpload()});
  ASSERT_TRUE(first.status.ok()) << first.status.error_message();
  EXPECT_FALSE(first.reply.existed());
  server_.reset();
  Start();
  const Submitted again = Submit(header, {RawUpload()});
  ASSERT_TRUE(again.status.ok()) << again.status.error_message();
  EXPECT_TRUE(again.reply.existed());
  EXPECT_EQ(again.reply.job_id(), first.reply.job_id());
  UploadData other = RawUpload();
  other.bytes[5] ^= 1;
  EXPECT_EQ(Submit(header, {other}).status.error_code(), StatusCode::ALREADY_EXISTS);
  v1::SubmitHeader changed = header;
  changed.mutable_job()->set_no_scores(true);
  EXPECT_EQ(Submit(changed, {RawUpload()}).status.error_code(), StatusCode::ALREADY_EXISTS);
  EXPECT_TRUE(Watch(first.reply.job_id()).status.ok());
  EXPECT_GE(Metric("spexd_detached_submits_total{outcome=\"existed\"}"), 1);
}

TEST_F(DetachedTest, SubmitsOfOneRequestAtOnceMakeOneJob) {
  Start();
  std::vector<std::future<Submitted>> calls;
  for (int k = 0; k < 6; ++k) {
    calls.push_back(std::async(std::launch::async,
                               [this] { return Submit(Request("one", RawHeader()), {RawUpload()}); }));
  }
  std::set<std::string> ids;
  int made = 0;
  for (auto& call : calls) {
    const Submitted submitted = call.get();
    ASSERT_TRUE(submitted.status.ok()) << submitted.status.error_message();
    ids.insert(submitted.reply.job_id());
    made += submitted.reply.existed() ? 0 : 1;
  }
  EXPECT_THAT(ids, SizeIs(1));
  EXPECT_EQ(made, 1);
}

TEST_F(DetachedTest, AJobGoesOnWithTheNextServerAndItsEventsKeepTheirNumbers) {
  CloseGateAfter(2);
  Start();
  const Submitted submitted = Submit(Request("one", RawHeader()), {RawUpload()});
  ASSERT_TRUE(submitted.status.ok()) << submitted.status.error_message();
  const std::string id = submitted.reply.job_id();
  ASSERT_TRUE(WaitForBundles(id, 2));
  Seen before;
  {
    const auto stub = Jobs();
    grpc::ClientContext context;
    v1::WatchRequest request;
    request.set_job_id(id);
    const auto stream = stub->Watch(&context, request);
    v1::WatchEvent event;
    while (before.bundles.size() < 2 && stream->Read(&event)) before.Take(event);
    server_.reset();
    while (stream->Read(&event)) before.Take(event);
    EXPECT_FALSE(stream->Finish().ok());
  }
  EXPECT_THAT(before.bundles, SizeIs(2));
  OpenGate();
  Start();
  const Seen rest = Watch(id, before.last), all = Watch(id);
  ASSERT_TRUE(rest.status.ok()) << rest.status.error_message();
  EXPECT_THAT(rest.bundles, SizeIs(1));
  EXPECT_TRUE(std::equal(before.events.begin(), before.events.end(), all.events.begin()));
  EXPECT_THAT(std::set<int>(all.bundles.begin(), all.bundles.end()), SizeIs(3));
  EXPECT_THAT(all.bundles, SizeIs(3));
  EXPECT_EQ(Get(id).runs(), 2u);
  EXPECT_EQ(Metric("spexd_detached_recovered_total"), 1);
}

TEST_F(DetachedTest, AJobWhoseFilesChangedBetweenItsRunsFails) {
  CloseGateAfter(1);
  Start();
  const std::string id = SubmitJob("one");
  ASSERT_TRUE(WaitForBundles(id, 1));
  server_.reset();
  PreprocFile file;
  file.pixels.Assign({kRows, kColumns}, 10);
  file.ivar.Assign({kRows, kColumns}, 0.1f);
  file.mask.Assign({kRows, kColumns});
  file.readnoise.Assign({kRows, kColumns}, 3);
  std::filesystem::remove(folder_ / "preproc.fits");
  ASSERT_TRUE(WritePreproc(file, folder_ / "preproc.fits", false).ok());  // without a fibermap
  OpenGate();
  Start();
  const Seen seen = Watch(id);
  EXPECT_THAT(seen.status, StatusIs(StatusCode::FAILED_PRECONDITION, HasSubstr("files changed")));
}

TEST_F(DetachedTest, CancellingStopsAJobWhereverItIs) {
  options_.max_running_jobs = 1;
  CloseGateAfter(1);
  Start();
  const std::string running = SubmitJob("running");
  ASSERT_TRUE(WaitForBundles(running, 1));
  const std::string next = SubmitJob("next"), waiting = SubmitJob("waiting");
  auto watched = std::async(std::launch::async, [&] { return Watch(running); });
  v1::JobRecord record;
  for (const std::string& id : {waiting, next, running}) {
    ASSERT_TRUE(Cancel(id, &record).ok());
    EXPECT_EQ(record.state(), v1::DETACHED_STATE_CANCELLED);
    EXPECT_EQ(record.code(), static_cast<int>(StatusCode::CANCELLED));
  }
  EXPECT_EQ(watched.get().status.error_code(), StatusCode::CANCELLED);
  EXPECT_EQ(Watch(running).status.error_code(), StatusCode::CANCELLED);
  for (const std::string& id : {waiting, next, running})
    EXPECT_TRUE(Eventually([&] { return FilesOf(id) == kOfEndedJob; }));
  EXPECT_TRUE(engine_->WaitUntil([](const auto& seen) { return seen.cancelled == 1; }));
  OpenGate();
  const std::string after = SubmitJob("after");
  EXPECT_TRUE(Watch(after).status.ok());
  ASSERT_TRUE(Cancel(after, &record).ok());
  EXPECT_EQ(record.state(), v1::DETACHED_STATE_DONE);
  grpc::Status unknown = Cancel("no such", &record);
  EXPECT_EQ(unknown.error_code(), StatusCode::NOT_FOUND);
}

TEST_F(DetachedTest, AFailedJobEndsItsWatchWithItsCode) {
  engine_->Set([](auto& b) { b.extract_error = absl::InternalError("the engine broke"); });
  Start();
  const std::string id = SubmitJob("one");
  const Seen seen = Watch(id);
  EXPECT_THAT(seen.status, StatusIs(StatusCode::INTERNAL, HasSubstr("the engine broke")));
  EXPECT_EQ(Get(id).state(), v1::DETACHED_STATE_FAILED);
  EXPECT_EQ(Get(id).message(), seen.status.error_message());
  EXPECT_TRUE(
      Eventually([&] { return Metric("spexd_detached_jobs_ended_total{outcome=\"internal\"}") == 1; }));
}

TEST_F(DetachedTest, AJobWhoseDeviceFailedRunsAgain) {
  engine_->Set([](auto& b) { b.extract_error = absl::UnavailableError("device 0 failed"); });
  Start();
  const std::string id = SubmitJob("one");
  ASSERT_TRUE(Eventually([&] { return Get(id).runs() >= 2; }));
  engine_->Set([](auto& b) { b.extract_error = absl::OkStatus(); });
  EXPECT_TRUE(Watch(id).status.ok());
}

TEST_F(DetachedTest, AJobThatRanWhenTheServerDiedThreeTimesIsGivenUp) {
  options_.max_running_jobs = 1;
  CloseGateAfter(1);
  Start();
  const std::string poison = SubmitJob("poison"), waiting = SubmitJob("waiting");
  uint64_t watched = 0;
  for (int death = 1; death <= 3; ++death) {
    // Its result of the first run stays, and further results change nothing.
    CloseGateAfter(death == 3 ? 2 : 1);
    ASSERT_TRUE(Eventually([&] { return Get(poison).runs() == static_cast<uint32_t>(death); }));
    ASSERT_TRUE(WaitForBundles(poison, death == 3 ? 2 : 1));
    ASSERT_EQ(Get(poison).state(), v1::DETACHED_STATE_RUNNING);
    watched = Get(poison).last_sequence();
    DieAndStart();
  }
  const v1::JobRecord job = Get(poison);
  EXPECT_EQ(job.state(), v1::DETACHED_STATE_FAILED);
  EXPECT_EQ(job.code(), static_cast<int>(StatusCode::INTERNAL));
  EXPECT_THAT(job.message(), HasSubstr("the job was begun 3 times, and the server died each time"));
  EXPECT_THAT(job.message(), HasSubstr("another request_id"));
  EXPECT_EQ(Metric("spexd_detached_jobs_ended_total{outcome=\"internal\"}"), 1);
  const Seen seen = Watch(poison), rest = Watch(poison, watched);
  EXPECT_THAT(seen.bundles, SizeIs(2)) << "what it had stays to be read";
  for (const Seen* one : {&seen, &rest}) {
    EXPECT_EQ(one->status.error_code(), StatusCode::INTERNAL);
    EXPECT_EQ(one->status.error_message(), job.message());
  }
  OpenGate();
  EXPECT_TRUE(Watch(waiting).status.ok());
  EXPECT_EQ(Get(waiting).runs(), 1u) << "it only waited when the server died";
  DieAndStart();
  EXPECT_EQ(Get(poison).runs(), 3u);
}

// The job that ran beside it may be the cause as well, so each of them is finally tried alone.
TEST_F(DetachedTest, AJobThatRanBesideOneThatIsGivenUpIsNotLost) {
  options_.max_running_jobs = 2;
  CloseGateAfter(0);
  Start();
  const std::string poison = SubmitJob("poison"), beside = SubmitJob("beside"), later = SubmitJob("later");
  const auto run = [this](const std::string& id, uint32_t runs) {
    return Eventually(
        [&] { return Get(id).runs() == runs && Get(id).state() == v1::DETACHED_STATE_RUNNING; });
  };
  for (uint32_t runs : {1, 2}) {
    ASSERT_TRUE(run(poison, runs));
    ASSERT_TRUE(run(beside, runs));
    DieAndStart();
  }
  ASSERT_TRUE(run(poison, 3));
  ASSERT_TRUE(engine_->WaitUntil([](const auto& seen) { return seen.at_gate == 1; }));
  EXPECT_EQ(Get(beside).state(), v1::DETACHED_STATE_QUEUED);
  EXPECT_EQ(Get(later).state(), v1::DETACHED_STATE_QUEUED);
  DieAndStart();
  EXPECT_EQ(Get(poison).state(), v1::DETACHED_STATE_FAILED);
  ASSERT_TRUE(run(beside, 3));
  EXPECT_EQ(Get(later).state(), v1::DETACHED_STATE_QUEUED);
  OpenGate();
  EXPECT_TRUE(Watch(beside).status.ok());
  EXPECT_TRUE(Watch(later).status.ok());
}

TEST_F(DetachedTest, AServerThatStopsCleanlyDoesNotCountAsOneThatDied) {
  options_.grace_seconds = 0;
  CloseGateAfter(0);
  Start();
  const std::string id = SubmitJob("one");
  for (uint32_t runs = 1; runs <= 5; ++runs) {
    ASSERT_TRUE(Eventually([&] { return Get(id).runs() == runs; }));
    EXPECT_TRUE(server_->Drain()) << "it is not cancelled";
    server_.reset();
    Start();
  }
  OpenGate();
  const Seen seen = Watch(id);
  EXPECT_TRUE(seen.status.ok()) << seen.status.error_message();
  EXPECT_THAT(seen.bundles, SizeIs(3));
}

TEST_F(DetachedTest, AJobThatWasCancelledBeforeItsLastTryStaysCancelled) {
  options_.max_running_jobs = 1;
  CloseGateAfter(0);
  Start();
  const std::string first = SubmitJob("first"), second = SubmitJob("second");
  for (uint32_t runs : {1, 2}) {
    ASSERT_TRUE(Eventually([&] { return Get(first).runs() == runs; }));
    DieAndStart();
  }
  v1::JobRecord record;
  ASSERT_TRUE(Cancel(first, &record).ok());
  ASSERT_TRUE(WaitForState(second, v1::DETACHED_STATE_RUNNING));
  DieAndStart();
  EXPECT_EQ(Get(first).state(), v1::DETACHED_STATE_CANCELLED);
  OpenGate();
  EXPECT_TRUE(Watch(second).status.ok());
}

TEST_F(DetachedTest, ALongJobIsEnded) {
  options_.max_job_seconds = 5;  // also limits the call that submits the job
  CloseGateAfter(0);
  Start();
  const Seen seen = Watch(SubmitJob("one"));
  EXPECT_THAT(seen.status, StatusIs(StatusCode::DEADLINE_EXCEEDED, HasSubstr("--max-job-seconds")));
}

TEST_F(DetachedTest, AJobThatWaitsOrRunsPastItsDeadlineEndsThen) {
  options_.max_running_jobs = 1;
  CloseGateAfter(0);
  Start();
  const std::string running = SubmitWithDeadline("running", 1);
  ASSERT_TRUE(Eventually([&] { return Get(running).state() != v1::DETACHED_STATE_QUEUED; }));
  const std::string waiting = SubmitWithDeadline("waiting", 1);
  for (const std::string& id : {running, waiting}) {
    const Seen seen = Watch(id);
    EXPECT_EQ(seen.status.error_code(), StatusCode::DEADLINE_EXCEEDED);
    // A job that begins late may notice the deadline before the store does.
    EXPECT_THAT(seen.status.error_message(), AnyOf(HasSubstr("1 seconds after it was submitted, its deadline"),
                                                   HasSubstr("the job's deadline has passed")));
    const v1::JobRecord record = Get(id);
    EXPECT_EQ(record.state(), v1::DETACHED_STATE_FAILED);
    EXPECT_DOUBLE_EQ(record.deadline(), record.submitted() + 1);
    EXPECT_GE(record.ended(), record.deadline());
  }
  EXPECT_TRUE(Eventually([&] {
    return Metric("spexd_detached_jobs_ended_total{outcome=\"deadline_exceeded\"}") == 2 &&
           Metric("spexd_job_duration_seconds_count{outcome=\"stopped\"}") == 2;
  }));
  EXPECT_GE(Metric("spexd_job_duration_seconds_sum{outcome=\"stopped\"}"), 2);
  OpenGate();
  const std::string in_time = SubmitWithDeadline("in time", 3600);
  EXPECT_TRUE(Watch(in_time).status.ok());
  EXPECT_TRUE(Eventually([&] { return Metric("spexd_job_duration_seconds_count{outcome=\"ok\"}") == 1; }));
}

TEST_F(DetachedTest, ADeadlineHoldsOverARestart) {
  CloseGateAfter(0);
  Start();
  const std::string id = SubmitWithDeadline("one", 1);
  server_.reset();
  Start();
  EXPECT_EQ(Watch(id).status.error_code(), StatusCode::DEADLINE_EXCEEDED);
}

TEST_F(DetachedTest, AJobThatIsEstimatedToMissItsDeadlineIsNotExtracted) {
  engine_->Set([](auto& b) { b.estimate.seconds = 1000; });
  Start();
  const Seen seen = Watch(SubmitWithDeadline("one", 500));
  EXPECT_THAT(seen.status, StatusIs(StatusCode::DEADLINE_EXCEEDED, HasSubstr("(the job's deadline)")));
  EXPECT_EQ(engine_->seen().extracts, 0);
  EXPECT_TRUE(Eventually([&] { return Metric("spexd_rejections_total{reason=\"deadline\"}") == 1; }));
}

TEST_F(DetachedTest, AnotherDeadlineIsAnotherRequest) {
  Start();
  SubmitWithDeadline("one", 3600);
  EXPECT_EQ(Submit(Request("one", PathHeader())).status.error_code(), StatusCode::ALREADY_EXISTS);
  v1::SubmitHeader same = Request("one", PathHeader());
  same.set_deadline_seconds(3600);
  EXPECT_TRUE(Submit(same).reply.existed());
}

TEST_F(DetachedTest, CapabilitiesTellOfThem) {
  options_.jobs_max_kept = 7;
  CloseGateAfter(0);
  Start();
  const v1::DetachedStatus none = Status().detached();
  EXPECT_EQ(none.jobs(), 0u);
  EXPECT_EQ(none.max_jobs(), 7u);
  EXPECT_EQ(none.max_jobs_per_identity(), 7u);
  EXPECT_EQ(none.max_disk_bytes(), static_cast<uint64_t>(options_.jobs_disk_bytes));
  EXPECT_EQ(none.max_disk_bytes_per_identity(), none.max_disk_bytes());
  EXPECT_EQ(none.keep_seconds(), options_.jobs_keep_seconds);
  EXPECT_EQ(none.max_keep_seconds(), options_.jobs_max_keep_seconds);
  const std::string id = SubmitJob("one");
  EXPECT_EQ(Status().detached().unfinished_jobs(), 1u);
  EXPECT_GT(Status().detached().disk_bytes(), 0u);
  OpenGate();
  EXPECT_TRUE(Watch(id).status.ok());
  EXPECT_TRUE(Eventually([&] { return Status().detached().unfinished_jobs() == 0; }));
  EXPECT_EQ(Status().detached().jobs(), 1u);
}

TEST_F(DetachedTest, CapabilitiesTellACallerItsSharesAlsoAfterAReload) {
  options_.jobs_max_kept = 7;
  options_.jobs_disk_bytes = 1000000;
  options_.max_queued_jobs = 10;
  BecomeUser({"disk-share 0.4", "queue-share 0.2"});
  Start();
  const v1::Capabilities status = Status();
  EXPECT_EQ(status.detached().max_jobs(), 7u);
  EXPECT_EQ(status.detached().max_jobs_per_identity(), 3u);
  EXPECT_EQ(status.detached().max_disk_bytes_per_identity(), 400000u);
  EXPECT_EQ(status.limits().max_queued_jobs_per_identity(), 2u);
  BecomeUser({"disk-share 1"});
  server_->Reload(options_);
  EXPECT_EQ(Status().detached().max_jobs_per_identity(), 7u);
  EXPECT_EQ(Status().limits().max_queued_jobs_per_identity(), 5u) << "without a line: half";
}

TEST_F(DetachedTest, AnIdentityKeepsNoMoreJobsThanItsShareWhichAReloadMayRaise) {
  options_.jobs_max_kept = 2;
  BecomeUser({"disk-share 0.5"});
  Start();
  EXPECT_TRUE(Submit(Request("one", PathHeader())).status.ok());
  const Submitted second = Submit(Request("two", PathHeader()));
  EXPECT_THAT(second.status, StatusIs(StatusCode::RESOURCE_EXHAUSTED,
                                      HasSubstr("the identity's disk-share of --jobs-max-kept is 1")));
  BecomeUser({"disk-share 1"});
  server_->Reload(options_);
  EXPECT_TRUE(Submit(Request("two", PathHeader())).status.ok());
}

TEST_F(DetachedTest, MoreJobsThanTheQueueHoldsAreDoneOneAfterTheOther) {
  options_.max_running_jobs = 1;
  options_.max_queued_jobs = 0;
  Start();
  std::vector<std::string> ids;
  for (int k = 0; k < 8; ++k) ids.push_back(SubmitJob(absl::StrCat("job ", k)));
  for (const std::string& id : ids) EXPECT_TRUE(Watch(id).status.ok());
  EXPECT_EQ(engine_->seen().max_running, 1);
}

TEST_F(DetachedTest, AJobIsEstimatedAsOneOfItsKindThatIsStreamed) {
  options_.max_running_jobs = 1;
  Start();
  v1::JobHeader of_another_kind = PathHeader();
  of_another_kind.set_bundle_size(1);
  EXPECT_TRUE(Extract(PathHeader()).status.ok());
  EXPECT_TRUE(Extract(of_another_kind).status.ok());
  const auto held = HoldJobAtGate();
  ASSERT_NE(held, nullptr);
  const auto line_has = [this](int jobs) {
    return Eventually([&] { return Metric("spexd_queue_ready_jobs") == jobs; });
  };
  grpc::ClientContext context;
  const auto stub = NewStub();
  const auto streamed = stub->Extract(&context);
  SendHeader(streamed.get(), PathHeader());
  streamed->WritesDone();
  ASSERT_TRUE(line_has(1));
  const double seconds = Metric("spexd_queue_device_seconds");
  EXPECT_GT(seconds, 0);
  context.TryCancel();
  EXPECT_FALSE(Finish(streamed.get(), &context).status.ok());
  ASSERT_TRUE(line_has(0));
  const std::string id = SubmitJob("one");
  ASSERT_TRUE(line_has(1));
  EXPECT_EQ(Metric("spexd_queue_device_seconds"), seconds);
  EXPECT_TRUE(LetGo(held.get()).status.ok());
  EXPECT_TRUE(Watch(id).status.ok());
}

TEST_F(DetachedTest, AWatcherWhoDoesNotReadSlowsNobody) {
  Start();
  const std::string id = SubmitJob("one");
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::WatchEvent>>> idle;
  const auto stub = Jobs();
  v1::WatchRequest request;
  request.set_job_id(id);
  for (int k = 0; k < 20; ++k) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    idle.push_back(stub->Watch(contexts.back().get(), request));
  }
  std::vector<std::future<Seen>> others;
  for (int k = 0; k < 4; ++k) others.push_back(std::async(std::launch::async, [&] { return Watch(id); }));
  const Seen first = others[0].get();
  ASSERT_TRUE(first.status.ok()) << first.status.error_message();
  for (size_t k = 1; k < others.size(); ++k) EXPECT_EQ(others[k].get().events, first.events);
  for (const auto& context : contexts) context->TryCancel();
}

TEST_F(DetachedTest, RefusalsNameFieldValueAndLimit) {
  options_.jobs_max_keep_seconds = 90000;
  Start();
  const auto refused = [this](const v1::SubmitHeader& header) { return Submit(header).status; };
  v1::SubmitHeader header = Request("", PathHeader());
  EXPECT_THAT(refused(header).error_message(), HasSubstr("request_id has 0 characters, must have 1 to 128"));
  header = Request(std::string(129, 'x'), PathHeader());
  EXPECT_EQ(refused(header).error_code(), StatusCode::INVALID_ARGUMENT);
  header = Request("one", PathHeader());
  header.set_keep_seconds(90001);
  EXPECT_THAT(refused(header).error_message(), HasSubstr("keep_seconds is 90001, must be at most 90000"));
  header = Request("one", PathHeader());
  header.mutable_job()->set_priority(11);
  EXPECT_THAT(refused(header).error_message(), HasSubstr("priority is 11, must be -10 to 10"));
  header = Request("one", PathHeader());
  header.mutable_job()->mutable_image()->set_path(folder_ / "no such");
  EXPECT_EQ(refused(header).error_code(), StatusCode::NOT_FOUND);
  header = Request("one", PathHeader());
  header.mutable_job()->mutable_psf()->set_psf_hash("unknown");
  EXPECT_EQ(refused(header).error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(refused(Request("one", RawHeader())).error_code(), StatusCode::DATA_LOSS);
  UploadData wrong = RawUpload();
  wrong.end_sha256 = std::string(64, '0');
  EXPECT_EQ(Submit(Request("one", RawHeader()), {wrong}).status.error_code(), StatusCode::DATA_LOSS);
  for (const char* folder : {"jobs/jobs", "jobs/new"})
    EXPECT_TRUE(std::filesystem::is_empty(folder_ / folder)) << folder;
  EXPECT_EQ(Metric("spexd_detached_disk_bytes"), 0);
  EXPECT_EQ(Watch("no such").status.error_code(), StatusCode::NOT_FOUND);
}

TEST_F(DetachedTest, AFullDiskBudgetRefusesWithADelayAndAJobTooLargeWithout) {
  options_.jobs_disk_bytes = 2000000;
  CloseGateAfter(0);
  Start();
  Submitted full;
  for (int k = 0; k < 40 && full.status.ok(); ++k)
    full = Submit(Request(absl::StrCat("job ", k), RawHeader()), {RawUpload()});
  EXPECT_EQ(full.status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_GT(full.retry_seconds, 0);
  EXPECT_THAT(full.status.error_message(), HasSubstr("--jobs-disk-bytes"));
  EXPECT_EQ(Metric("spexd_rejections_total{reason=\"disk\"}"), 1);
  v1::SubmitHeader large = Request("large", RawHeader());
  large.mutable_job()->mutable_image()->mutable_raw()->set_rows(3000);
  const Submitted never = Submit(large);
  EXPECT_EQ(never.status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_LT(never.retry_seconds, 0);
}

TEST_F(DetachedTest, AFullFolderRefusesJobsWithADelayUntilOthersExpire) {
  options_.jobs_max_kept = 2;
  CloseGateAfter(0);
  Start();
  v1::SubmitHeader first = Request("first", RawHeader());
  first.set_keep_seconds(1);
  const std::string id = Submit(first, {RawUpload()}).reply.job_id();
  ASSERT_TRUE(Submit(Request("second", RawHeader()), {RawUpload()}).status.ok());
  const Submitted full = Submit(Request("third", RawHeader()), {RawUpload()});
  EXPECT_EQ(full.status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_GT(full.retry_seconds, 0);
  EXPECT_THAT(full.status.error_message(), HasSubstr("the limit of --jobs-max-kept is 2"));
  EXPECT_TRUE(Submit(first, {RawUpload()}).status.ok()) << "it is there already";
  OpenGate();
  EXPECT_TRUE(Eventually([&] { return Metric("spexd_detached_expired_total") == 1; }));
  EXPECT_TRUE(Submit(Request("third", RawHeader()), {RawUpload()}).status.ok());
}

TEST_F(DetachedTest, AJobThatCannotKeepItsResultsSaysSo) {
  options_.jobs_disk_bytes = 40000;  // less than a summary needs
  Start();
  const Seen seen = Watch(SubmitJob("one"));
  EXPECT_THAT(seen.status, StatusIs(StatusCode::RESOURCE_EXHAUSTED, HasSubstr("--jobs-disk-bytes is 40000")));
}

TEST_F(DetachedTest, AJobWhoseFilesCannotBeUsedNamesThemAndOthersGoOn) {
  CloseGateAfter(0);
  Start();
  const std::string id = SubmitJob("one"), other = SubmitJob("two");
  ASSERT_TRUE(WaitForState(id, v1::DETACHED_STATE_RUNNING));
  ASSERT_TRUE(WaitForState(other, v1::DETACHED_STATE_RUNNING));
  const std::string unwritable = SubmitJob("three");
  const std::string damaged = Submit(Request("four", RawHeader()), {RawUpload()}).reply.job_id();
  std::filesystem::create_directory(folder_ / ("jobs/jobs/" + unwritable + "/events"));
  const std::string image = folder_ / ("jobs/jobs/" + damaged + "/image");
  std::string bytes = ReadBytes(image);
  bytes[bytes.size() / 2] ^= 1;
  WriteBytes(image, bytes);
  OpenGate();
  const Seen unwritten = Watch(unwritable), lost = Watch(damaged);
  EXPECT_THAT(unwritten.status, StatusIs(StatusCode::RESOURCE_EXHAUSTED, HasSubstr(unwritable + "/events")));
  EXPECT_THAT(unwritten.events, IsEmpty());
  EXPECT_THAT(lost.status, StatusIs(StatusCode::DATA_LOSS, HasSubstr(image)));
  EXPECT_TRUE(Watch(id).status.ok());
  EXPECT_EQ(Metric("spexd_detached_disk_errors_total"), 2);
}

TEST_F(DetachedTest, WhatCannotBeWrittenIsNotAccepted) {
  Start();
  std::filesystem::rename(folder_ / "jobs/jobs", folder_ / "jobs/away");
  const Submitted lost = Submit(Request("one", RawHeader()), {RawUpload()});
  EXPECT_THAT(lost.status, StatusIs(StatusCode::UNAVAILABLE, HasSubstr("jobs/jobs/")));
  EXPECT_EQ(Metric("spexd_detached_disk_errors_total"), 1);
  EXPECT_EQ(Metric("spexd_detached_disk_bytes"), 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "jobs/new"));
  std::filesystem::rename(folder_ / "jobs/away", folder_ / "jobs/jobs");
  EXPECT_TRUE(Submit(Request("one", RawHeader()), {RawUpload()}).status.ok());
}

TEST_F(DetachedTest, WhatIsNoJobIsMovedToQuarantineAndCounted) {
  Start();
  WriteBytes(folder_ / "jobs/jobs/stranger", "bytes");
  server_.reset();
  Start();
  EXPECT_EQ(Metric("spexd_detached_quarantined_total"), 1);
  EXPECT_EQ(ReadBytes(folder_ / "jobs/quarantine/stranger"), "bytes");
  EXPECT_TRUE(Watch(SubmitJob("one")).status.ok());
}

TEST_F(DetachedTest, ListsPageByPage) {
  Start();
  std::vector<std::string> ids;
  for (int k = 0; k < 5; ++k) ids.push_back(SubmitJob(absl::StrCat("job ", k)));
  for (const std::string& id : ids) EXPECT_TRUE(Watch(id).status.ok());
  std::vector<std::string> listed;
  v1::ListJobsRequest request;
  request.set_page_size(2);
  request.add_states(v1::DETACHED_STATE_DONE);
  int pages = 0;
  do {
    grpc::ClientContext context;
    v1::ListJobsResponse page;
    ASSERT_TRUE(Jobs()->ListJobs(&context, request, &page).ok());
    for (const v1::JobRecord& job : page.jobs()) listed.push_back(job.job_id());
    request.set_page_token(page.next_page_token());
    ++pages;
  } while (!request.page_token().empty());
  EXPECT_EQ(pages, 3);
  EXPECT_EQ(listed, std::vector<std::string>(ids.rbegin(), ids.rend()));
  const auto fails = [this](const v1::ListJobsRequest& bad) {
    grpc::ClientContext context;
    v1::ListJobsResponse page;
    return Jobs()->ListJobs(&context, bad, &page).error_code() == StatusCode::INVALID_ARGUMENT;
  };
  v1::ListJobsRequest bad;
  bad.set_page_size(1001);
  EXPECT_TRUE(fails(bad));
  bad.set_page_size(0);
  // Tokens that no page had: numbers in other notations, and the token of a page with additions.
  request.set_page_token("");
  grpc::ClientContext context;
  v1::ListJobsResponse page;
  ASSERT_TRUE(Jobs()->ListJobs(&context, request, &page).ok());
  const std::string given = page.next_page_token();
  std::vector<std::string> tokens = {"next",
                                     "-1",
                                     " 5 ",
                                     "+7",
                                     "0x5",
                                     "5 ",
                                     "0",
                                     "5",
                                     "05",
                                     "\xd9\xa5",
                                     "9223372036854775807",
                                     "99999999999999999999"};
  for (const std::string& near :
       {"0" + given, " " + given, given + " ", given + "0", "+" + given, given.substr(0, given.size() - 1)})
    tokens.push_back(near);
  for (const std::string& token : tokens) {
    bad.set_page_token(token);
    EXPECT_TRUE(fails(bad)) << token;
  }
  bad.set_page_token("");
  bad.add_states(static_cast<v1::DetachedState>(17));
  EXPECT_TRUE(fails(bad));
}

TEST_F(DetachedTest, AJobsTimeToLiveEnds) {
  Start();
  v1::SubmitHeader header = Request("one", PathHeader());
  header.set_keep_seconds(1);
  const std::string id = Submit(header).reply.job_id();
  EXPECT_TRUE(Eventually([&] { return Metric("spexd_detached_expired_total") == 1; }));
  EXPECT_EQ(Watch(id).status.error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(Metric("spexd_detached_disk_bytes"), 0);
}

TEST_F(DetachedTest, ADrainingServerFinishesWhatRunsAndLeavesTheRest) {
  options_.max_running_jobs = 1;
  CloseGateAfter(1);
  Start();
  const std::string running = SubmitJob("running"), waiting = SubmitJob("waiting");
  ASSERT_TRUE(WaitForBundles(running, 1));
  auto watched = std::async(std::launch::async, [&] { return Watch(running); });
  auto left = std::async(std::launch::async, [&] { return Watch(waiting); });
  ASSERT_TRUE(Eventually([this] { return Metric("spexd_detached_watches_total") == 2; }));
  auto drained = std::async(std::launch::async, [&] { return server_->Drain(); });
  ASSERT_TRUE(Eventually([this] { return Metric("spexd_draining") == 1; }));
  EXPECT_TRUE(Eventually([this] {
    return Submit(Request("late", PathHeader())).status.error_code() == StatusCode::UNAVAILABLE;
  }));
  OpenGate();
  EXPECT_TRUE(drained.get());
  EXPECT_TRUE(watched.get().status.ok());
  EXPECT_EQ(left.get().status.error_code(), StatusCode::UNAVAILABLE);
  server_.reset();
  Start();
  EXPECT_EQ(Get(running).state(), v1::DETACHED_STATE_DONE);
  EXPECT_TRUE(Watch(waiting).status.ok());
  EXPECT_EQ(Get(waiting).runs(), 1u);
}

TEST_F(DetachedTest, AJobThatOutlastsTheGraceTimeIsNotCancelled) {
  options_.grace_seconds = 0;
  CloseGateAfter(1);
  Start();
  const std::string id = SubmitJob("one");
  ASSERT_TRUE(WaitForBundles(id, 1));
  EXPECT_TRUE(server_->Drain());
  server_.reset();
  OpenGate();
  Start();
  const Seen seen = Watch(id);
  EXPECT_TRUE(seen.status.ok()) << seen.status.error_message();
  EXPECT_THAT(seen.bundles, SizeIs(3));
}

TEST_F(DetachedTest, WithoutAFolderThereAreNone) {
  options_.jobs_dir.clear();
  Start();
  EXPECT_THAT(Submit(Request("one", PathHeader())).status,
              StatusIs(StatusCode::FAILED_PRECONDITION, HasSubstr("--jobs-dir")));
  EXPECT_EQ(Watch("one").status.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(Metric("spexd_detached_jobs{state=\"queued\"}"), 0);
  EXPECT_EQ(Metric("spexd_detached_submits_total{outcome=\"new\"}"), 0);
  EXPECT_FALSE(Status().has_detached());
}

}  // namespace
}  // namespace spexd::testing
