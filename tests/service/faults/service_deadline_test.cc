// Deadlines through the whole service, on the CPU engine: a job ends at its deadline even if a bundle would
// take a minute.
#include <chrono>

#include "core/extract/cpu/cpu_engine.h"
#include "core/simulate/simulator.h"
#include "tests/service/support/attack_files.h"
#include "tests/service/support/harness.h"
#include "tests/support/idle_machine.h"
#include "tests/support/matchers.h"

namespace spexd::testing {
namespace {

using grpc::StatusCode;
using std::chrono::steady_clock;

// The time within which a stopped job must end. The jobs here would take a minute.
const std::chrono::duration<double> kPromptly = OnAnIdleMachine(std::chrono::seconds(2));

// The CPU engine without its estimates, because of which the jobs here would be refused.
class EngineWithoutEstimates : public Engine {
 public:
  EngineInfo Info() const override { return engine_->Info(); }
  JobEstimate Estimate(const JobOutline&) const override { return {}; }
  absl::StatusOr<std::shared_ptr<const PreparedPsf>> Prepare(std::shared_ptr<const Psf> psf,
                                                             const WavelengthGrid& grid, int bundle_size,
                                                             std::stop_token stop) override {
    return engine_->Prepare(std::move(psf), grid, bundle_size, std::move(stop));
  }
  absl::StatusOr<StageTimes> Extract(const ExtractRequest& request, const BundleSink& sink) override {
    return engine_->Extract(request, sink);
  }

 private:
  const std::unique_ptr<Engine> engine_ = MakeCpuEngine({.threads = 1});
};

// Simulated once, because a whole CCD takes many seconds under a sanitizer.
const absl::StatusOr<Simulation>& Simulated() {
  static const auto* const simulation = new absl::StatusOr<Simulation>(Simulate({.fibres = 25}));
  return *simulation;
}

class DeadlineTest : public ServiceTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(Simulated().ok()) << Simulated().status();
    ASSERT_TRUE(WritePsf(Simulated()->psf, folder_ / "psf.fits").ok());
    ASSERT_TRUE(WritePreproc(Simulated()->preproc, folder_ / "preproc.fits", false).ok());
  }
  void StartWithoutEstimates() { Start(std::make_unique<EngineWithoutEstimates>()); }
  // A bundle of 25 fibres on 4601 bins of 0.05 Angstrom, whose couplings extend over hundreds of bins.
  v1::JobHeader FineHeader() const {
    v1::JobHeader header = PathHeader();
    header.clear_bundle_size();
    header.mutable_grid()->set_first(6530);
    header.mutable_grid()->set_step(0.05);
    header.mutable_grid()->set_count(4601);
    return header;
  }
  bool Idle() const { return Status().jobs_running() == 0; }
};

TEST_F(DeadlineTest, EndsABundleUnderWay) {
  StartWithoutEstimates();
  std::string last;
  // A busy machine may take longer to begin with the bundle.
  for (std::chrono::seconds time(2); last != "extracting" && time < std::chrono::minutes(1); time *= 2) {
    grpc::ClientContext context;
    const auto deadline = std::chrono::system_clock::now() + time;
    context.set_deadline(deadline);
    const Answer answer = Extract(FineHeader(), {}, &context);
    EXPECT_EQ(answer.status.error_code(), StatusCode::DEADLINE_EXCEEDED) << answer.message();
    EXPECT_TRUE(Eventually([&] { return Idle(); }));
    EXPECT_LT(std::chrono::system_clock::now() - deadline, kPromptly);
    if (!answer.states().empty()) last = answer.states().back();
  }
  EXPECT_EQ(last, "extracting");
  EXPECT_TRUE(Eventually([&] { return Metric("spexd_cancellations_total{stage=\"extracting\"}") >= 1; }));
}

TEST_F(DeadlineTest, EndsABundleUnderWayForAClientThatCancels) {
  StartWithoutEstimates();
  const auto job = Send(FineHeader());
  job->stream->WritesDone();
  v1::ExtractEvent event;
  while (job->stream->Read(&event) && event.progress().state() != "extracting") continue;
  ASSERT_EQ(event.progress().state(), "extracting");
  const auto since = steady_clock::now();
  job->context.TryCancel();
  EXPECT_EQ(End(job.get()).status.error_code(), StatusCode::CANCELLED);
  EXPECT_TRUE(Eventually([&] { return Idle(); }));
  EXPECT_LT(steady_clock::now() - since, kPromptly);
}

TEST_F(DeadlineTest, ServesTheNextJobAtOnce) {
  StartWithoutEstimates();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(1));
  EXPECT_EQ(Extract(FineHeader(), {}, &context).status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  v1::JobHeader header = PathHeader();
  header.set_fibre_count(2);
  header.mutable_grid()->set_first(6530);
  header.mutable_grid()->set_step(0.8);
  header.mutable_grid()->set_count(30);
  const Answer answer = Extract(header);
  EXPECT_TRUE(answer.status.ok()) << answer.message();
  EXPECT_LT(answer.summary()->largest_residual(), 1e-10);
}

// The only slot is taken by a job whose frame has one tile for each HDU.
TEST_F(DeadlineTest, ServesTheNextClientWhileAFrameIsDecoded) {
  constexpr int kSide = 4096;
  WriteText(folder_ / "flat.fits.gz", FlatFrame(kSide, kSide));
  ASSERT_TRUE(WritePsf(StraightPsf(kSide, kSide, 10), folder_ / "large.fits").ok());
  options_.max_running_jobs = 1;
  StartWithoutEstimates();
  v1::JobHeader slow = PathHeader(), quick = PathHeader();
  slow.mutable_image()->set_path(folder_ / "flat.fits.gz");
  slow.mutable_psf()->set_path(folder_ / "large.fits");
  quick.set_fibre_count(2);
  quick.mutable_grid()->set_first(6530);
  quick.mutable_grid()->set_step(0.8);
  quick.mutable_grid()->set_count(30);
  const auto job = Send(slow);
  job->stream->WritesDone();
  v1::ExtractEvent event;
  while (job->stream->Read(&event) && event.progress().state() != "reading") continue;
  ASSERT_EQ(event.progress().state(), "reading");
  const auto since = steady_clock::now();
  job->context.TryCancel();
  EXPECT_THAT(Extract(quick).status, IsOk());
  EXPECT_LT(steady_clock::now() - since, kPromptly);
  EXPECT_EQ(End(job.get()).status.error_code(), StatusCode::CANCELLED);
  EXPECT_TRUE(Eventually([&] { return Metric("spexd_cancellations_total{stage=\"reading\"}") == 1; }));
}

TEST_F(DeadlineTest, EndsAJobThatOutlastsTheServersLimit) {
  options_.max_job_seconds = 2;
  StartWithoutEstimates();
  const auto since = steady_clock::now();
  EXPECT_THAT(Extract(FineHeader()).status,
              StatusIs(StatusCode::DEADLINE_EXCEEDED,
                       HasSubstr("the job took 2 seconds, the limit of --max-job-seconds")));
  EXPECT_TRUE(Eventually([&] { return Idle(); }));
  EXPECT_LT(steady_clock::now() - since, std::chrono::seconds(2) + kPromptly);
}

TEST_F(DeadlineTest, RefusesAJobThatCannotBeDoneInTimeBeforeItBegins) {
  options_.max_job_seconds = 30;
  Start(MakeCpuEngine({.threads = 1}));
  const Answer answer = Extract(FineHeader());
  EXPECT_EQ(answer.status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(
      answer.message(),
      MatchesRegex("the job is estimated to take [0-9.]+ seconds, [0-9.]+ are left .--max-job-seconds 30."));
  EXPECT_EQ(answer.states().back(), "reading");
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(29));
  EXPECT_THAT(Extract(FineHeader(), {}, &context).message(), HasSubstr("are left (the client's deadline)"));
  EXPECT_EQ(Metric("spexd_rejections_total{reason=\"deadline\"}"), 2);
}

}  // namespace
}  // namespace spexd::testing
