// Accumulators of the service, through a real channel: made, added to by jobs, read, dropped, and kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "client/connection/grpc_connection.h"
#include "client/detached_client.h"
#include "client/extract_client.h"
#include "core/products/coadd_frames.h"
#include "core/products/product_files.h"
#include "core/products/sky_pca.h"
#include "server/server.h"
#include "tests/service/support/harness.h"
#include "tests/service/support/product_inputs.h"

namespace spexd::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AccumulatorsTest : public ServiceTest {
 protected:
  AccumulatorsTest() {
    WritePreprocWithSky(folder_ / "preproc.fits");
    options_.jobs_dir = folder_ / "jobs";
    SetExposure(1);
  }
  // Spectra of which those of each exposure are brighter than those before.
  void SetExposure(int number) {
    engine_->Set([number](auto& behaviour) {
      behaviour.reshape = [number](BundleResult* bundle) {
        ReshapeToSpectra(bundle);
        for (double& flux : bundle->flux.flat()) flux *= 1 + 0.01 * number;
      };
    });
  }
  void Start() {
    ServiceTest::Start();
    connection_ = client::MakeGrpcConnection(server_->grpc_address());
  }
  void Restart() {
    connection_.reset();
    server_.reset();
    Start();
  }
  static client::Connection::Deadline Soon() { return client::Clock::now() + std::chrono::seconds(60); }

  absl::StatusOr<v1::AccumulatorRecord> Create(
      const std::string& name, v1::AccumulatorKind kind,
      const std::function<void(v1::CreateAccumulatorRequest*)>& change = {}) {
    v1::CreateAccumulatorRequest request;
    request.set_name(name);
    request.set_kind(kind);
    if (change) change(&request);
    return connection_->CreateAccumulator(request, Soon());
  }
  std::vector<v1::AccumulatorRecord> List() {
    const auto list = connection_->ListAccumulators({}, Soon());
    EXPECT_TRUE(list.ok()) << list.status();
    return {list->accumulators().begin(), list->accumulators().end()};
  }
  absl::StatusOr<std::string> Read(const std::string& name, uint32_t components = 0) {
    v1::ReadAccumulatorRequest request;
    request.set_name(name);
    request.set_components(components);
    return connection_->ReadAccumulator(request, Soon());
  }
  absl::Status Drop(const std::string& name) {
    v1::DropAccumulatorRequest request;
    request.set_name(name);
    return connection_->DropAccumulator(request, Soon());
  }
  client::Job JobThatAddsTo(const std::vector<std::string>& names) const {
    client::Job job;
    job.image = folder_ / "preproc.fits";
    job.psf = folder_ / "psf.fits";
    job.spec.bundle_size = 4;
    job.products.accumulators = names;
    return job;
  }
  client::JobOutcome Run(const client::Job& job) {
    const auto outcome = client::RemoteRunner(connection_.get(), {}).Run(job, nullptr, {});
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    return outcome.ok() ? *outcome : client::JobOutcome();
  }
  // Extracts an exposure and adds it.
  client::JobOutcome Add(int exposure, const std::vector<std::string>& names) {
    SetExposure(exposure);
    client::JobOutcome outcome = Run(JobThatAddsTo(names));
    EXPECT_EQ(outcome.additions.size(), names.size());
    for (const client::Addition& addition : outcome.additions)
      EXPECT_TRUE(addition.status.ok()) << addition.accumulator << ": " << addition.status;
    return outcome;
  }
  std::vector<std::string> Files(const std::string& ending) const {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "jobs/accumulators")) {
      if (entry.path().string().find(ending) != std::string::npos) paths.push_back(entry.path());
    }
    return paths;
  }

  std::unique_ptr<client::Connection> connection_;
};

// The server's names of frames are those of their images.
std::string CoaddOf(const std::vector<client::JobOutcome>& outcomes, bool with_sky) {
  CoaddFrameSums sums;
  for (const client::JobOutcome& outcome : outcomes) {
    const Frame& frame = outcome.frame;
    const auto made = Analyse(frame, {});
    EXPECT_TRUE(made.ok() && made->sky.ok());
    EXPECT_TRUE(sums.Add(with_sky ? frame : SkySubtracted(frame, *made->sky), "frame").ok());
  }
  return *CoaddFile(*sums.Result());
}

TEST_F(AccumulatorsTest, HoldWhatSpexPcaAndSpexCoaddMakeOfTheSameFrames) {
  Start();
  ASSERT_TRUE(Create("residuals", v1::ACCUMULATOR_KIND_PCA).ok());
  ASSERT_TRUE(Create("targets", v1::ACCUMULATOR_KIND_COADD).ok());
  ASSERT_TRUE(
      Create("raw", v1::ACCUMULATOR_KIND_COADD, [](auto* request) { request->set_with_sky(true); }).ok());
  std::vector<client::JobOutcome> outcomes;
  SkyPcaSums pca(PcaOptions{});
  for (int exposure = 1; exposure <= 3; ++exposure) {
    outcomes.push_back(Add(exposure, {"residuals", "targets", "raw"}));
    ASSERT_TRUE(pca.Add(outcomes.back().frame, "preproc.fits", {std::nullopt, 1}).ok());
  }
  const auto residuals = Read("residuals", 4);
  ASSERT_TRUE(residuals.ok()) << residuals.status();
  EXPECT_TRUE(*residuals == *SkyPcaFile(*pca.Solve(4))) << "components differ";
  for (const bool with_sky : {false, true}) {
    const auto coadd = Read(with_sky ? "raw" : "targets");
    ASSERT_TRUE(coadd.ok()) << coadd.status();
    EXPECT_TRUE(*coadd == CoaddOf(outcomes, with_sky)) << "coadds differ, with sky " << with_sky;
  }
  EXPECT_EQ(Metric("spexd_accumulators"), 3);
  EXPECT_EQ(Metric("spexd_accumulator_additions_total{outcome=\"added\"}"), 9);
  EXPECT_EQ(Metric("spexd_stage_duration_seconds_count{stage=\"accumulate\"}"), 3);
}

TEST_F(AccumulatorsTest, CountAFrameOnceAndTellSo) {
  Start();
  ASSERT_TRUE(Create("residuals", v1::ACCUMULATOR_KIND_PCA).ok());
  EXPECT_FALSE(Add(1, {"residuals"}).additions[0].existed);
  EXPECT_TRUE(Add(1, {"residuals"}).additions[0].existed);
  EXPECT_EQ(List()[0].frames(), 1u);
  EXPECT_EQ(Metric("spexd_accumulator_additions_total{outcome=\"existed\"}"), 1);
}

TEST_F(AccumulatorsTest, TakeTheFramesOfDetachedJobsAndOutliveTheServer) {
  Start();
  ASSERT_TRUE(
      Create("residuals", v1::ACCUMULATOR_KIND_PCA, [](auto* request) { request->set_forget(0.5); }).ok());
  Add(1, {"residuals"});
  SetExposure(2);
  client::DetachedClient detached({connection_.get()});
  client::Job job = JobThatAddsTo({"residuals"});
  job.products.sky = true;
  const auto submitted = detached.Submit(job, {}, nullptr, {});
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  const auto watched = detached.Watch(submitted->job_id, nullptr, Soon(), {});
  ASSERT_TRUE(watched.ok()) << watched.status();
  ASSERT_EQ(watched->outcome.additions.size(), 1u);
  EXPECT_TRUE(watched->outcome.additions[0].status.ok()) << watched->outcome.additions[0].status;
  EXPECT_TRUE(watched->outcome.products->products.sky.ok());
  const auto before = Read("residuals");
  ASSERT_TRUE(before.ok()) << before.status();
  Restart();
  ASSERT_EQ(List().size(), 1u);
  const v1::AccumulatorRecord record = List()[0];
  EXPECT_EQ(record.name(), "residuals");
  EXPECT_EQ(record.frames(), 2u);
  EXPECT_EQ(record.forget(), 0.5);
  EXPECT_EQ(record.rows(), kFibres / 2 * 1.5);
  EXPECT_EQ(record.bins(), 51u);
  EXPECT_TRUE(*Read("residuals") == *before);
  EXPECT_TRUE(Add(2, {"residuals"}).additions[0].existed);
  EXPECT_TRUE(Drop("residuals").ok());
  EXPECT_TRUE(absl::IsNotFound(Drop("residuals")));
  Restart();
  EXPECT_THAT(List(), IsEmpty());
}

TEST_F(AccumulatorsTest, AFailedAdditionIsNamedAndHarmsNothingElse) {
  Start();
  ASSERT_TRUE(Create("residuals", v1::ACCUMULATOR_KIND_PCA).ok());
  Add(1, {"residuals"});
  client::Job job = JobThatAddsTo({"nosuch", "residuals"});
  job.spec.grid = WavelengthGrid{6000, 1, 40};
  job.products.sky = true;
  const client::JobOutcome outcome = Run(job);
  ASSERT_EQ(outcome.additions.size(), 2u);
  EXPECT_TRUE(absl::IsNotFound(outcome.additions[0].status)) << outcome.additions[0].status;
  EXPECT_TRUE(absl::IsInvalidArgument(outcome.additions[1].status));
  EXPECT_THAT(std::string(outcome.additions[1].status.message()), HasSubstr("preproc.fits: its grid is"));
  EXPECT_TRUE(outcome.products->products.sky.ok());
  EXPECT_EQ(outcome.frame.spectra.flux.shape(0), kFibres);
  EXPECT_EQ(List()[0].frames(), 1u);
  EXPECT_EQ(Metric("spexd_accumulator_additions_total{outcome=\"refused\"}"), 2);
}

TEST_F(AccumulatorsTest, WithoutSkyFibresComponentsAndCoaddsWithoutSkyFail) {
  WritePreprocWithSky(folder_ / "preproc.fits", false);
  Start();
  ASSERT_TRUE(Create("residuals", v1::ACCUMULATOR_KIND_PCA).ok());
  ASSERT_TRUE(Create("targets", v1::ACCUMULATOR_KIND_COADD).ok());
  ASSERT_TRUE(
      Create("raw", v1::ACCUMULATOR_KIND_COADD, [](auto* request) { request->set_with_sky(true); }).ok());
  const client::JobOutcome outcome = Run(JobThatAddsTo({"residuals", "targets", "raw"}));
  ASSERT_EQ(outcome.additions.size(), 3u);
  for (const int k : {0, 1}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(outcome.additions[k].status)) << outcome.additions[k].status;
    EXPECT_THAT(std::string(outcome.additions[k].status.message()), HasSubstr("no sky fibre has data"));
  }
  EXPECT_TRUE(outcome.additions[2].status.ok()) << outcome.additions[2].status;
}

TEST_F(AccumulatorsTest, MemoryIsReservedBeforeAFrameIsAdded) {
  options_.max_product_bytes = 45 << 20;  // enough for the sky, not for components beside it
  Start();
  ASSERT_TRUE(Create("residuals", v1::ACCUMULATOR_KIND_PCA).ok());
  client::Job job = JobThatAddsTo({"residuals"});
  job.products.sky = true;
  const client::JobOutcome outcome = Run(job);
  ASSERT_EQ(outcome.additions.size(), 1u);
  EXPECT_TRUE(absl::IsResourceExhausted(outcome.additions[0].status)) << outcome.additions[0].status;
  EXPECT_THAT(std::string(outcome.additions[0].status.message()), HasSubstr("--max-product-bytes"));
  EXPECT_TRUE(outcome.products->products.sky.ok()) << outcome.products->products.sky.status();
}

TEST_F(AccumulatorsTest, ADamagedFileIsReportedAndTheServerServesOn) {
  Start();
  ASSERT_TRUE(Create("bad", v1::ACCUMULATOR_KIND_PCA).ok());
  Add(1, {"bad"});
  const std::string path = Files(".accumulator").at(0);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  const auto read = Read("bad");
  EXPECT_TRUE(absl::IsDataLoss(read.status())) << read.status();
  EXPECT_THAT(std::string(read.status().message()), HasSubstr(path));
  EXPECT_THAT(List(), IsEmpty());
  EXPECT_EQ(Files("damaged").size(), 1u);
  EXPECT_EQ(Metric("spexd_accumulator_damaged_total"), 1);
  ASSERT_TRUE(Create("bad", v1::ACCUMULATOR_KIND_PCA).ok());
  EXPECT_TRUE(Add(1, {"bad"}).additions[0].status.ok());
  server_.reset();
  EXPECT_THAT(log_.str(), HasSubstr("accumulator_damaged"));
}

TEST_F(AccumulatorsTest, RefuseRequestsThatAreWrong) {
  Start();
  const auto expect_refused = [](const absl::Status& status, const std::string& words) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  };
  const auto pca = v1::ACCUMULATOR_KIND_PCA, coadd = v1::ACCUMULATOR_KIND_COADD;
  expect_refused(Create("a b", pca).status(), "name is \"a b\"");
  expect_refused(Create("a", v1::ACCUMULATOR_KIND_UNSPECIFIED).status(), "kind is 0");
  expect_refused(Create("a", pca, [](auto* r) { r->set_forget(0); }).status(),
                 "forget is 0, must be 0.01 to 1");
  expect_refused(Create("a", pca, [](auto* r) { r->set_clip(NAN); }).status(), "clip is nan");
  expect_refused(Create("a", coadd, [](auto* r) { r->set_clip(5); }).status(), "those of PCA");
  expect_refused(Create("a", pca, [](auto* r) { r->set_with_sky(true); }).status(), "with_sky");
  ASSERT_TRUE(Create("a", pca).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(Create("a", coadd).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(Read("a").status())) << "no frame yet";
  EXPECT_TRUE(absl::IsNotFound(Read("b").status()));
  Add(1, {"a"});
  expect_refused(Read("a", 52).status(), "components is 52, must be at most the 51 wavelengths");
  v1::JobHeader header = PathHeader();
  header.mutable_products()->add_accumulators("a");
  header.mutable_products()->add_accumulators("a");
  EXPECT_THAT(Extract(header).message(), HasSubstr("products.accumulators has a name twice"));
  for (int k = 0; k < 15; ++k) header.mutable_products()->add_accumulators(std::to_string(k));
  EXPECT_THAT(Extract(header).message(), HasSubstr("has 17 names, at most 16"));
}

TEST_F(AccumulatorsTest, AreToldByCapabilitiesAndNeedAFolder) {
  Start();
  EXPECT_EQ(Status().limits().max_accumulators(), 64u);
  connection_.reset();
  server_.reset();
  options_.jobs_dir = "";
  Start();
  EXPECT_EQ(Status().limits().max_accumulators(), 0u);
  const auto created = Create("a", v1::ACCUMULATOR_KIND_PCA);
  EXPECT_TRUE(absl::IsFailedPrecondition(created.status())) << created.status();
  EXPECT_THAT(std::string(created.status().message()), HasSubstr("--jobs-dir"));
  const client::JobOutcome outcome = Run(JobThatAddsTo({"a"}));
  ASSERT_EQ(outcome.additions.size(), 1u);
  EXPECT_TRUE(absl::IsFailedPrecondition(outcome.additions[0].status));
}

}  // namespace
}  // namespace spexd::testing
