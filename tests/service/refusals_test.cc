// Every refusal of a call: its code, its delay if a retry can help, and its reason in the metrics.
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/server.h"
#include "tests/service/support/harness.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"

namespace spexd::testing {
namespace {

using grpc::StatusCode;

class RefusalTest;

enum class Delay { kYes, kNo };

struct Refusal {
  const char* name;
  const char* reason;
  StatusCode code;
  Delay delay;
  // Starts a server, and returns the end of a call that it refuses.
  std::function<Answer(RefusalTest*)> provoke;
  const char* words = "";  // a part of its message
};

class RefusalTest : public ServiceTest, public ::testing::WithParamInterface<Refusal> {
 public:
  using ServiceTest::BecomeUser;
  using ServiceTest::Begin;
  using ServiceTest::engine_;
  using ServiceTest::Extract;
  using ServiceTest::folder_;
  using ServiceTest::HoldJobAtGate;
  using ServiceTest::LetGo;
  using ServiceTest::Metric;
  using ServiceTest::options_;
  using ServiceTest::PathHeader;
  using ServiceTest::RawHeader;
  using ServiceTest::server_;
  using ServiceTest::Start;

  Answer LoadPsf(int64_t upload_bytes = 0) {
    v1::LoadPsfHeader header;
    if (upload_bytes > 0) {
      header.mutable_upload()->set_bytes(static_cast<uint64_t>(upload_bytes));
    } else {
      header.set_path(folder_ / "psf.fits");
    }
    grpc::ClientContext context;
    v1::PsfInfo info;
    const grpc::Status status =
        testing::LoadPsf(v1::PsfRegistry::NewStub(NewChannel()).get(), &context, header, &info);
    return Ended(status, context);
  }
  // Submits a job without uploads. Each job has its own request id.
  Answer Submit(const v1::JobHeader& header) {
    grpc::ClientContext context;
    v1::SubmitReply reply;
    const grpc::Status status = SubmitJob(v1::Jobs::NewStub(NewChannel()).get(), &context,
                                          Submission(absl::StrCat("request ", ++submits_), header), &reply);
    return Ended(status, context);
  }
  Answer ListJobs() {
    grpc::ClientContext context;
    v1::ListJobsResponse response;
    const grpc::Status status = v1::Jobs::NewStub(NewChannel())->ListJobs(&context, {}, &response);
    return Ended(status, context);
  }
  Answer Watch() {
    grpc::ClientContext context;
    const auto stream = v1::Jobs::NewStub(NewChannel())->Watch(&context, {});
    const grpc::Status status = stream->Finish();
    return Ended(status, context);
  }
  // Returns the end of `call` while the server drains.
  Answer WhileDraining(const std::function<Answer()>& call) {
    Start();
    const auto held = HoldJobAtGate();
    std::thread drain([this] { server_->Drain(); });
    EXPECT_TRUE(Eventually([this] { return Get("/readyz").first == 503; }));
    const Answer answer = call();
    EXPECT_TRUE(LetGo(held.get()).status.ok());
    drain.join();
    return answer;
  }
  // Returns the end of `call` while the only stream is taken.
  Answer BesideAStream(const std::function<Answer()>& call) {
    options_.jobs_dir = folder_ / "jobs";
    options_.max_streams = 1;
    Start();
    const auto held = HoldJobAtGate();
    const Answer answer = call();
    EXPECT_TRUE(LetGo(held.get()).status.ok());
    return answer;
  }
  // Returns the end of `call` while a job holds more than half of the memory for uploads.
  Answer BesideAnUpload(const std::function<Answer()>& call) {
    options_.jobs_dir = folder_ / "jobs";
    options_.max_upload_total_bytes = 100000;
    options_.max_queued_bytes = 10000000;
    Start();
    const auto held = Begin(RawHeader());  // 57600 bytes
    return call();
  }

  // Returns the sum of all series of rejections.
  double Rejections() const {
    double sum = 0;
    for (const std::string& line : std::vector<std::string>(absl::StrSplit(Get("/metrics").second, '\n'))) {
      if (absl::StartsWith(line, "spexd_rejections_total{")) sum += std::stod(line.substr(line.find(' ')));
    }
    return sum;
  }

 private:
  int submits_ = 0;
};

const Refusal kRefusals[] = {
    {"QueueFull", "queue_full", StatusCode::RESOURCE_EXHAUSTED, Delay::kYes,
     [](RefusalTest* test) {
       test->options_.max_running_jobs = 1;
       test->options_.max_queued_jobs = 0;
       test->Start();
       const auto held = test->HoldJobAtGate();
       return test->Extract(test->PathHeader());
     },
     "queue is full"},
    {"QueueBytes", "queue_bytes", StatusCode::RESOURCE_EXHAUSTED, Delay::kYes,
     [](RefusalTest* test) {
       test->options_.max_queued_bytes = 100000;
       test->Start();
       const auto held = test->Begin(test->RawHeader());
       return test->Extract(test->RawHeader());
     }},
    {"MoreThanTheQueueHolds", "queue_bytes", StatusCode::RESOURCE_EXHAUSTED, Delay::kNo,
     [](RefusalTest* test) {
       test->options_.max_queued_bytes = 10000;
       test->Start();
       return test->Extract(test->RawHeader());
     }},
    {"QueueSeconds", "queue_seconds", StatusCode::RESOURCE_EXHAUSTED, Delay::kYes,
     [](RefusalTest* test) {
       test->options_.max_running_jobs = 1;
       test->options_.max_queued_seconds = 1e-6;
       test->Start();
       for (int k = 0; k < 3; ++k) EXPECT_TRUE(test->Extract(test->PathHeader()).status.ok());
       const auto held = test->HoldJobAtGate();
       const auto waiting = test->Begin(test->PathHeader());
       return test->Extract(test->PathHeader());
     }},
    {"IdentityShare", "identity_share", StatusCode::RESOURCE_EXHAUSTED, Delay::kYes,
     [](RefusalTest* test) {
       test->options_.max_running_jobs = 1;
       test->options_.max_queued_jobs = 4;
       test->BecomeUser({"queue-share 0.25"});
       test->Start();
       const auto held = test->HoldJobAtGate();
       const auto waiting = test->Begin(test->PathHeader());
       return test->Extract(test->PathHeader());
     }},
    {"EstimateBeyondTheDeadline", "deadline", StatusCode::DEADLINE_EXCEEDED, Delay::kNo,
     [](RefusalTest* test) {
       test->options_.max_job_seconds = 100;
       test->engine_->Set([](auto& behaviour) { behaviour.estimate.seconds = 1000; });
       test->Start();
       const Answer refused = test->Extract(test->PathHeader());
       EXPECT_EQ(test->engine_->seen().prepares, 0);
       return refused;
     },
     "estimated to take 1000 seconds"},
    {"UploadMemory", "memory", StatusCode::RESOURCE_EXHAUSTED, Delay::kYes,
     [](RefusalTest* test) {
       return test->BesideAnUpload([test] { return test->Extract(test->RawHeader()); });
     }},
    {"UploadMemoryOfAPsf", "memory", StatusCode::RESOURCE_EXHAUSTED, Delay::kYes,
     [](RefusalTest* test) { return test->BesideAnUpload([test] { return test->LoadPsf(60000); }); }},
    {"UploadMemoryOfADetachedJob", "memory", StatusCode::RESOURCE_EXHAUSTED, Delay::kYes,
     [](RefusalTest* test) {
       return test->BesideAnUpload([test] { return test->Submit(test->RawHeader()); });
     }},
    {"FilesOfMoreThanTheirMemory", "memory", StatusCode::RESOURCE_EXHAUSTED, Delay::kNo,
     [](RefusalTest* test) {
       test->options_.max_input_bytes = 1000;
       test->Start();
       return test->Extract(test->PathHeader());
     }},
    {"APsfOfMoreThanItsMemory", "memory", StatusCode::RESOURCE_EXHAUSTED, Delay::kNo,
     [](RefusalTest* test) {
       test->options_.max_input_bytes = 1000;
       test->Start();
       return test->LoadPsf();
     }},
    {"ResultsOfMoreThanTheirMemory", "memory", StatusCode::RESOURCE_EXHAUSTED, Delay::kNo,
     [](RefusalTest* test) {
       test->options_.max_result_bytes = 1000;
       test->Start();
       return test->Extract(test->PathHeader());
     },
     "results to be sent"},
    {"ABundleOfMoreThanTheEnginesMemory", "memory", StatusCode::RESOURCE_EXHAUSTED, Delay::kNo,
     [](RefusalTest* test) {
       test->engine_->Set([](auto& behaviour) {
         behaviour.estimate.min_bytes = 5001;
         behaviour.info.max_bundle_bytes = 5000;
       });
       test->Start();
       const Answer refused = test->Extract(test->PathHeader());
       EXPECT_EQ(test->engine_->seen().prepares, 0);
       return refused;
     },
     "about 5001 bytes, the limit is 5000"},
    {"Disk", "disk", StatusCode::RESOURCE_EXHAUSTED, Delay::kYes,
     [](RefusalTest* test) {
       test->options_.jobs_dir = test->folder_ / "jobs";
       test->options_.jobs_max_kept = 1;
       test->Start();
       EXPECT_TRUE(test->Submit(test->PathHeader()).status.ok());
       return test->Submit(test->PathHeader());
     }},
    {"MoreThanTheDisk", "disk", StatusCode::RESOURCE_EXHAUSTED, Delay::kNo,
     [](RefusalTest* test) {
       test->options_.jobs_dir = test->folder_ / "jobs";
       test->options_.jobs_disk_bytes = 2000000;
       test->Start();
       v1::JobHeader large = test->RawHeader();
       large.mutable_image()->mutable_raw()->set_rows(3000);
       return test->Submit(large);
     }},
    {"NoRoomBesidePinnedPsfs", "cache", StatusCode::RESOURCE_EXHAUSTED, Delay::kNo,
     [](RefusalTest* test) {
       test->options_.psf_cache_bytes = 100;
       test->Start();
       return test->LoadPsf();
     }},
    {"TooManyStreams", "too_many_calls", StatusCode::RESOURCE_EXHAUSTED, Delay::kYes,
     [](RefusalTest* test) {
       return test->BesideAStream([test] { return test->Extract(test->PathHeader()); });
     }},
    {"TooManyStreamsForLoadPsf", "too_many_calls", StatusCode::RESOURCE_EXHAUSTED, Delay::kYes,
     [](RefusalTest* test) { return test->BesideAStream([test] { return test->LoadPsf(); }); }},
    {"TooManyStreamsForSubmit", "too_many_calls", StatusCode::RESOURCE_EXHAUSTED, Delay::kYes,
     [](RefusalTest* test) {
       return test->BesideAStream([test] { return test->Submit(test->PathHeader()); });
     }},
    {"TooManyStreamsForWatch", "too_many_calls", StatusCode::RESOURCE_EXHAUSTED, Delay::kYes,
     [](RefusalTest* test) { return test->BesideAStream([test] { return test->Watch(); }); }},
    {"TooManyStreamsForListJobs", "too_many_calls", StatusCode::RESOURCE_EXHAUSTED, Delay::kYes,
     [](RefusalTest* test) { return test->BesideAStream([test] { return test->ListJobs(); }); }},
    {"Draining", "draining", StatusCode::UNAVAILABLE, Delay::kNo,
     [](RefusalTest* test) {
       return test->WhileDraining([test] { return test->Extract(test->PathHeader()); });
     }},
    {"DrainingForLoadPsf", "draining", StatusCode::UNAVAILABLE, Delay::kNo,
     [](RefusalTest* test) { return test->WhileDraining([test] { return test->LoadPsf(); }); }},
    {"DrainingForSubmit", "draining", StatusCode::UNAVAILABLE, Delay::kNo,
     [](RefusalTest* test) {
       test->options_.jobs_dir = test->folder_ / "jobs";
       return test->WhileDraining([test] { return test->Submit(test->PathHeader()); });
     }},
    {"EngineFailed", "engine_failed", StatusCode::UNAVAILABLE, Delay::kYes,
     [](RefusalTest* test) {
       test->Start();
       test->engine_->Set(
           [](auto& behaviour) { behaviour.health = absl::InternalError("no device is left"); });
       return test->Extract(test->PathHeader());
     }},
};

TEST_P(RefusalTest, HasItsCodeAndItsDelayAndIsCountedOnce) {
  const Refusal& refusal = GetParam();
  const Answer answer = refusal.provoke(this);
  EXPECT_EQ(answer.status.error_code(), refusal.code) << answer.message();
  EXPECT_THAT(answer.message(), HasSubstr(refusal.words));
  EXPECT_TRUE(answer.parts().empty());
  const auto pushback = answer.trailers.find("grpc-retry-pushback-ms");
  if (refusal.delay == Delay::kYes) {
    EXPECT_GT(answer.retry_seconds(), 0);
    ASSERT_NE(pushback, answer.trailers.end());
    EXPECT_DOUBLE_EQ(std::stod(pushback->second), 1000 * answer.retry_seconds());
  } else {
    EXPECT_EQ(answer.retry_seconds(), -1);
    EXPECT_EQ(pushback, answer.trailers.end());
  }
  EXPECT_EQ(Metric(absl::StrCat("spexd_rejections_total{reason=\"", refusal.reason, "\"}")), 1);
  EXPECT_EQ(Rejections(), 1);
}

INSTANTIATE_TEST_SUITE_P(Each, RefusalTest, ::testing::ValuesIn(kRefusals),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace spexd::testing
