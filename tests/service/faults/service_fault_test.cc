// The engine fails at every stage of a job, with every code: the client gets its error, nothing hangs, and
// the next job is served.
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "server/server.h"
#include "tests/service/support/harness.h"
#include "tests/support/matchers.h"

namespace spexd::testing {
namespace {

using grpc::StatusCode;
using At = EngineControl::Fault::At;

constexpr int kBundles = 3;

struct Error {
  StatusCode code;
  std::string words;
  std::function<absl::Status()> happens;
};

Error Returned(absl::StatusCode code, const std::string& words) {
  return {static_cast<StatusCode>(code), words, [code, words] { return absl::Status(code, words); }};
}

std::vector<Error> Exceptions() {
  return {{StatusCode::RESOURCE_EXHAUSTED, "memory", []() -> absl::Status { throw std::bad_alloc(); }},
          {StatusCode::INTERNAL, "thrown on purpose",
           []() -> absl::Status { throw std::runtime_error("thrown on purpose"); }},
          {StatusCode::INTERNAL, "", []() -> absl::Status { throw 7; }}};
}

std::vector<Error> Errors() {
  std::vector<Error> errors = Exceptions();
  errors.push_back(Returned(absl::StatusCode::kInternal, "a stage failed"));
  errors.push_back(Returned(absl::StatusCode::kResourceExhausted, "the workspace is too small"));
  errors.push_back(Returned(absl::StatusCode::kUnavailable, "the device failed"));
  errors.push_back(Returned(absl::StatusCode::kInvalidArgument, "the grid is too fine"));
  errors.push_back(Returned(absl::StatusCode::kFailedPrecondition, "the PSF is of another CCD"));
  errors.push_back(Returned(absl::StatusCode::kDataLoss, "a copy came damaged"));
  errors.push_back(Returned(absl::StatusCode::kAborted, "the stage gave up"));
  errors.push_back(Returned(absl::StatusCode::kUnknown, "nobody knows"));
  return errors;
}

struct Moment {
  std::string name;
  At at;
  int bundles;  // delivered before the fault
};
std::vector<Moment> Moments() {
  return {{"while it prepares", At::kPrepare, 0},
          {"before the first bundle", At::kExtract, 0},
          {"after a bundle", At::kExtract, 1},
          {"after all bundles", At::kExtract, kBundles}};
}

class FaultTest : public ServiceTest {
 protected:
  FaultTest() { options_.jobs_dir = folder_ / "jobs"; }

  void Arrange(const Moment& moment, const std::function<absl::Status()>& happens) {
    engine_->Set([&](auto& b) { b.fault = {moment.at, moment.bundles, happens}; });
  }
  void Mend() {
    engine_->Set([](auto& b) { b.fault = {}; });
  }
  // Returns a header with a new grid, because a PSF that is prepared for a grid is not prepared again.
  v1::JobHeader NewHeader() {
    v1::JobHeader header = PathHeader();
    header.mutable_grid()->set_first(kWaveMin);
    header.mutable_grid()->set_step(0.5);
    header.mutable_grid()->set_count(static_cast<uint32_t>(++grids_));
    return header;
  }
  Answer ExtractInTime(const v1::JobHeader& header) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    return Extract(header, {}, &context);
  }
  void ExpectServed(const v1::JobHeader& header) {
    Mend();
    const Answer answer = ExtractInTime(header);
    EXPECT_TRUE(answer.status.ok()) << answer.message();
    EXPECT_THAT(answer.parts(), SizeIs(kBundles));
  }
  void ExpectFails(const Moment& moment, const Error& error) {
    SCOPED_TRACE(absl::StrCat(moment.name, ": ", error.words));
    Arrange(moment, error.happens);
    const v1::JobHeader header = NewHeader();
    const Answer answer = ExtractInTime(header);
    EXPECT_EQ(answer.status.error_code(), error.code) << answer.message();
    EXPECT_THAT(answer.message(), HasSubstr(error.words));
    EXPECT_THAT(answer.parts(), SizeIs(moment.bundles));
    EXPECT_EQ(answer.summary(), nullptr);
    EXPECT_EQ(answer.retry_seconds() > 0, error.code == StatusCode::UNAVAILABLE);
    ExpectServed(header);
  }

  std::string Submit(const v1::JobHeader& job) {
    grpc::ClientContext context;
    v1::SubmitReply reply;
    const grpc::Status status = SubmitJob(v1::Jobs::NewStub(NewChannel()).get(), &context,
                                          Submission(absl::StrCat("job ", grids_), job), &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply.job_id();
  }
  // Watches until the job's end. `copies` counts the copies of each bundle.
  grpc::Status Watch(const std::string& id, std::map<uint32_t, int>* copies) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    return WatchJob(v1::Jobs::NewStub(NewChannel()).get(), &context, id, 0, [&](const v1::WatchEvent& event) {
      if (event.event().has_bundle() && event.event().bundle().last())
        ++(*copies)[event.event().bundle().bundle()];
    });
  }
  v1::JobRecord Get(const std::string& id) {
    v1::JobRecord record;
    const grpc::Status status = GetJob(v1::Jobs::NewStub(NewChannel()).get(), id, &record);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return record;
  }
  void ExpectDetachedFails(const Moment& moment, const Error& error) {
    SCOPED_TRACE(absl::StrCat(moment.name, ": ", error.words));
    Arrange(moment, error.happens);
    const v1::JobHeader header = NewHeader();
    const std::string id = Submit(header);
    std::map<uint32_t, int> copies;
    const grpc::Status status = Watch(id, &copies);
    EXPECT_EQ(status.error_code(), error.code) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(error.words));
    EXPECT_THAT(copies, SizeIs(moment.bundles));
    const v1::JobRecord record = Get(id);
    EXPECT_EQ(record.state(), v1::DETACHED_STATE_FAILED);
    EXPECT_EQ(record.code(), static_cast<int>(error.code));
    EXPECT_EQ(record.message(), status.error_message());
    EXPECT_EQ(record.runs(), 1u);
    ExpectServed(header);
  }
  void ExpectIdle() {
    EXPECT_TRUE(Eventually([&] {
      const v1::Capabilities status = Status();
      return status.jobs_running() == 0 && status.jobs_queued() == 0;
    }));
  }

 private:
  int grids_ = 20;
};

TEST_F(FaultTest, AJobEndsWithTheEnginesErrorWhereverItHappensAndTheNextIsServed) {
  Start();
  for (const Moment& moment : Moments()) {
    for (const Error& error : Errors()) ExpectFails(moment, error);
  }
  for (const Error& error : Exceptions()) ExpectFails({"while it estimates", At::kEstimate, 0}, error);
  ExpectIdle();
  EXPECT_TRUE(server_->Drain());
}

TEST_F(FaultTest, ADetachedJobEndsFailedWithTheEnginesMessageWhereverItHappens) {
  Start();
  for (const Moment& moment : Moments()) {
    for (const Error& error : Errors()) {
      if (error.code != StatusCode::UNAVAILABLE) ExpectDetachedFails(moment, error);
    }
  }
  for (const Error& error : Exceptions())
    ExpectDetachedFails({"while it estimates", At::kEstimate, 0}, error);
  ExpectIdle();
}

TEST_F(FaultTest, ADetachedJobWhoseDeviceFailedRunsAgainAndHasEachBundleOnce) {
  Start();
  for (const Moment& moment : Moments()) {
    SCOPED_TRACE(moment.name);
    const auto failures = std::make_shared<std::atomic<int>>(1);
    Arrange(moment, [failures] {
      return (*failures)-- > 0 ? absl::UnavailableError("the device failed") : absl::OkStatus();
    });
    const std::string id = Submit(NewHeader());
    std::map<uint32_t, int> copies;
    EXPECT_THAT(Watch(id, &copies), IsOk());
    EXPECT_THAT(copies, SizeIs(kBundles));
    EXPECT_THAT(copies, Each(Pair(::testing::_, 1)));
    EXPECT_EQ(Get(id).runs(), 2u);
  }
  EXPECT_TRUE(server_->Drain());
}

}  // namespace
}  // namespace spexd::testing
