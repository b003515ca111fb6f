// Deadlines through the whole service, on the CPU engine: a bundle that takes a minute is no reason to run
// on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "core/extract/cpu_engine.h"
#include "core/simulate/simulator.h"
#include "tests/service/harness.h"

namespace spexd::testing {
namespace {

using grpc::StatusCode;
using std::chrono::steady_clock;

// Far longer than a job that is stopped in time takes to end, on however busy a machine; far less than the
// job.
constexpr std::chrono::seconds kPatience(5);

// Simulated once: a whole CCD takes many seconds under a sanitizer.
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
    Start(MakeCpuEngine({.threads = 1}));
  }
  // A bundle of 25 fibres on 4601 bins of 0.05 Angstrom, whose couplings reach hundreds of bins.
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
  grpc::ClientContext context;
  const auto deadline = std::chrono::system_clock::now() + std::chrono::seconds(2);
  context.set_deadline(deadline);
  const Answer answer = Extract(FineHeader(), {}, &context);
  EXPECT_EQ(answer.status.error_code(), StatusCode::DEADLINE_EXCEEDED) << answer.message();
  EXPECT_EQ(answer.states().back(), "extracting");
  EXPECT_TRUE(Eventually([&] { return Idle(); }));
  EXPECT_LT(std::chrono::system_clock::now(), deadline + kPatience);
  EXPECT_TRUE(Eventually([&] { return Metric("spexd_cancellations_total{stage=\"extracting\"}") == 1; }));
}

TEST_F(DeadlineTest, EndsABundleUnderWayForAClientThatCancels) {
  grpc::ClientContext context;
  const auto stub = NewStub();
  const auto stream = stub->Extract(&context);
  SendHeader(stream.get(), FineHeader());
  stream->WritesDone();
  v1::ExtractEvent event;
  while (stream->Read(&event) && event.progress().state() != "extracting") continue;
  ASSERT_EQ(event.progress().state(), "extracting");
  const auto since = steady_clock::now();
  context.TryCancel();
  EXPECT_EQ(Finish(stream.get(), &context).status.error_code(), StatusCode::CANCELLED);
  EXPECT_TRUE(Eventually([&] { return Idle(); }));
  EXPECT_LT(steady_clock::now() - since, kPatience);
}

TEST_F(DeadlineTest, ServesTheNextJobAtOnce) {
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

}  // namespace
}  // namespace spexd::testing
