// Analyses as clients of the service see them: files equal to those of the same analysis in this process,
// from every kind of source, and what is refused.
#include <string>
#include <utility>
#include <vector>

#include "client/analysis/analysis_client.h"
#include "client/connection/grpc_connection.h"
#include "client/detached_client.h"
#include "core/fits/readers.h"
#include "core/fits/writers.h"
#include "core/products/coadd/coadd_frames.h"
#include "core/products/joint/joint_input.h"
#include "core/products/joint/joint_task.h"
#include "core/products/template_file.h"
#include "server/server.h"
#include "spexd/v1/analysis.grpc.pb.h"
#include "tests/analysis/coadd/camera_frames.h"
#include "tests/service/support/harness.h"
#include "tests/service/support/product_inputs.h"
#include "tests/support/matchers.h"

namespace spexd::testing {
namespace {

using grpc::StatusCode;

const std::vector<FibreOfCamera> kFibresOfExposure = {{39, 5}, {40, 7}, {41, 9, 0, "SKY"}, {42, 11}};

class AnalysisServiceTest : public ServiceTest {
 protected:
  AnalysisServiceTest() {
    for (const char letter : {'b', 'r', 'z'}) {
      Frame frame = FrameOfCamera(letter, 7, kFibresOfExposure);
      // A small library covers the wavelengths of all three.
      frame.grid.first = letter == 'b' ? 6000 : letter == 'r' ? 6040 : 6090;
      // A modulation that no model fits exactly.
      for (int64_t k = 0; k < frame.spectra.flux.size(); ++k)
        frame.spectra.flux.flat()[static_cast<size_t>(k)] *= static_cast<float>(1 + 0.1 * (k % 7));
      EXPECT_THAT(WriteFrame(frame, FramePath(letter)), IsOk());
      EXPECT_THAT(sums_.Add(frame, FramePath(letter)), IsOk());
    }
    EXPECT_THAT(WriteCoadd(*sums_.Result(), folder_ / "coadd.fits"), IsOk());
    WriteTemplates(folder_ / "templates.fits", {.first = 5900, .last = 6250});
    engine_->Set([](auto& b) { b.reshape = ReshapeToSpectra; });
  }
  std::string FramePath(char letter) const { return folder_ / (std::string("frame-") + letter + "0.fits"); }
  std::vector<client::AnalysisSource> Frames() const {
    return {{FramePath('z'), ""}, {FramePath('b'), ""}, {FramePath('r'), ""}};
  }
  // Returns a job that asks for all products of the coadd.
  client::AnalysisJob CoaddJob() const {
    client::AnalysisJob job;
    job.sources = {{folder_ / "coadd.fits", ""}};
    job.templates = folder_ / "templates.fits";
    job.models = job.lines = true;
    return job;
  }

  absl::StatusOr<client::AnalysisOutcome> Analyse(const client::AnalysisJob& job, bool upload = false) const {
    const auto server = client::MakeGrpcConnection(server_->grpc_address());
    return client::RemoteAnalyser(server.get(), {.upload = upload, .retry = {}}).Run(job, nullptr, {});
  }
  // Returns the files of the job made in this process, from `inputs` instead of its sources.
  client::AnalysisOutcome Expected(const client::AnalysisJob& job, std::vector<SpectraInput> inputs) const {
    const SpectraKind kind = std::holds_alternative<TargetSpectra>(inputs[0].spectra) ? SpectraKind::kTargets
                                                                                      : SpectraKind::kFrame;
    for (SpectraInput& input : inputs)
      EXPECT_THAT(SubtractOwnSky(nullptr, job.sky_subtracted, {}, &input), IsOk());
    TargetSpectra spectra = JoinInputs(std::move(inputs)).value();
    EXPECT_THAT(KeepArms(job.arms, &spectra), IsOk());
    const TemplateLibrary library = *ReadTemplates(*Source::FromFile(folder_ / "templates.fits"));
    JointTask task;
    task.templates = &library;
    task.velocities = !job.templates.empty();
    task.models = job.models;
    task.lines = job.lines;
    task.rows = job.rows;
    client::AnalysisOutcome expected;
    EXPECT_THAT(RunJointTask(spectra, kind, task,
                             [&](JointProduct product, absl::StatusOr<JointFile> file) {
                               expected.FileOf(product) = std::move(file);
                             })
                    .status(),
                IsOk());
    return expected;
  }
  static std::vector<SpectraInput> Read(const client::AnalysisJob& job) {
    std::vector<SpectraInput> inputs;
    for (const client::AnalysisSource& source : job.sources)
      inputs.push_back(ReadSpectraInput(*Source::FromFile(source.spectra)).value());
    return inputs;
  }
  static void ExpectSameFiles(absl::StatusOr<client::AnalysisOutcome> outcome,
                              client::AnalysisOutcome expected) {
    ASSERT_THAT(outcome.status(), IsOk());
    for (const JointProduct product : kJointProducts) {
      const absl::StatusOr<JointFile>&made = outcome->FileOf(product), &same = expected.FileOf(product);
      ASSERT_EQ(made.status().code(), same.status().code()) << NameOf(product) << ": " << made.status();
      if (absl::IsCancelled(same.status())) continue;  // not asked for
      ASSERT_THAT(same.status(), IsOk());
      EXPECT_TRUE(made->bytes == same->bytes) << NameOf(product);
      EXPECT_EQ(made->targets, same->targets);
      EXPECT_EQ(made->good, same->good);
    }
  }

  // Returns a header that asks for redshifts of the coadd, by its path.
  v1::AnalysisHeader LinesHeader() const {
    v1::AnalysisHeader header;
    header.add_spectra()->set_path(folder_ / "coadd.fits");
    header.set_lines(true);
    return header;
  }
  Answer Call(const v1::AnalysisHeader& header) const {
    grpc::ClientContext context;
    const auto stub = v1::Analysis::NewStub(NewChannel());
    const auto stream = stub->Analyse(&context);
    v1::AnalyseRequest request;
    *request.mutable_header() = header;
    stream->Write(request);
    stream->WritesDone();
    Answer answer;
    v1::ExtractEvent event;
    while (stream->Read(&event)) answer.events.push_back(event);
    answer.status = stream->Finish();
    return answer;
  }
  void ExpectRefused(const v1::AnalysisHeader& header, StatusCode code, const std::string& words) const {
    const Answer answer = Call(header);
    EXPECT_EQ(answer.status.error_code(), code) << answer.message();
    EXPECT_THAT(answer.message(), HasSubstr(words));
  }

  CoaddFrameSums sums_;
};

TEST_F(AnalysisServiceTest, MakesTheFilesOfTheSameAnalysisHereByPathAndByUpload) {
  Start();
  const client::AnalysisOutcome expected = Expected(CoaddJob(), Read(CoaddJob()));
  for (const bool upload : {false, true}) ExpectSameFiles(Analyse(CoaddJob(), upload), expected);
  EXPECT_EQ(Metric("spexd_products_total{outcome=\"ok\",product=\"velocities\"}"), 2);
  EXPECT_EQ(Metric("spexd_stage_duration_seconds_count{stage=\"redshifts\"}"), 2);
  EXPECT_EQ(Metric("spexd_jobs_total{outcome=\"ok\"}"), 2);
}

TEST_F(AnalysisServiceTest, SaysHowFarItIsAndWhatItTook) {
  Start();
  v1::AnalysisHeader header = LinesHeader();
  header.mutable_templates()->set_path(folder_ / "templates.fits");
  const Answer answer = Call(header);
  ASSERT_TRUE(answer.status.ok()) << answer.message();
  EXPECT_THAT(answer.states(), ElementsAre("queued", "reading", "analysing"));
  ASSERT_NE(answer.summary(), nullptr);
  std::vector<std::string> stages;
  for (const v1::StageSeconds& stage : answer.summary()->stages()) stages.push_back(stage.stage());
  EXPECT_THAT(stages, ElementsAre("receive", "redshifts", "velocities"));
  EXPECT_GT(answer.summary()->run_seconds(), 0);
}

TEST_F(AnalysisServiceTest, TakesTheFramesOfAnExposureInAnyOrder) {
  Start();
  client::AnalysisJob job = CoaddJob();
  job.sources = Frames();
  job.sky_subtracted = true;
  for (const bool upload : {false, true}) ExpectSameFiles(Analyse(job, upload), Expected(job, Read(job)));
}

TEST_F(AnalysisServiceTest, SelectsRowsAndArms) {
  Start();
  client::AnalysisJob job = CoaddJob();
  job.rows.target_ids = {40, 42};
  job.rows.min_snr = 1;
  job.arms = {"r", "z"};
  ExpectSameFiles(Analyse(job), Expected(job, Read(job)));
  job.rows.target_ids->clear();
  const auto none = Analyse(job);
  ASSERT_THAT(none.status(), IsOk());
  EXPECT_EQ(none->velocities->targets, 0);
}

TEST_F(AnalysisServiceTest, TakesTheResultOfADetachedJobAsItsWatcherGetsIt) {
  options_.jobs_dir = folder_ / "jobs";
  WritePreprocWithSky(folder_ / "preproc.fits");
  Start();
  const auto server = client::MakeGrpcConnection(server_->grpc_address());
  client::DetachedClient detached({server.get()});
  client::Job extraction;
  extraction.image = folder_ / "preproc.fits";
  extraction.psf = folder_ / "psf.fits";
  const auto submitted = detached.Submit(extraction, {.request_id = "r0", .upload = false}, nullptr, {});
  ASSERT_THAT(submitted.status(), IsOk());
  const auto watched = detached.Watch(submitted->job_id, nullptr, std::nullopt, {});
  ASSERT_THAT(watched.status(), IsOk());

  client::AnalysisJob job = CoaddJob();
  job.sources = {{client::kJobPrefix + submitted->job_id, ""}};
  ExpectSameFiles(Analyse(job), Expected(job, {{extraction.image, watched->outcome.frame}}));

  job.sources[0].spectra = "job:unknown";
  EXPECT_THAT(Analyse(job).status(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("unknown")));
  EXPECT_THAT(detached.Acknowledge(*watched, {}), IsOk());
  job.sources[0].spectra = client::kJobPrefix + submitted->job_id;
  EXPECT_THAT(Analyse(job).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("acknowledged")));
}

TEST_F(AnalysisServiceTest, TemplatesThatCannotBeReadFailTheVelocitiesAlone) {
  Start();
  WriteTemplates(folder_ / "templates.fits", {.hole = true, .first = 5900, .last = 6250});
  const auto outcome = Analyse(CoaddJob());
  ASSERT_THAT(outcome.status(), IsOk());
  EXPECT_THAT(outcome->velocities.status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("templates.fits")));
  EXPECT_EQ(outcome->models.status(), outcome->velocities.status());
  EXPECT_THAT(outcome->redshifts.status(), IsOk());
}

TEST_F(AnalysisServiceTest, RefusesHeadersThatSayWhatIsWrong) {
  Start();
  const auto expect = [&](const auto& change, const std::string& words) {
    v1::AnalysisHeader header = LinesHeader();
    change(header);
    ExpectRefused(header, StatusCode::INVALID_ARGUMENT, words);
  };
  expect([](auto& h) { h.clear_lines(); }, "no product is asked for");
  expect([](auto& h) { h.clear_spectra(); }, "spectra: there are 0 sources, must be 1 to 16");
  expect([](auto& h) { h.mutable_spectra(0)->clear_path(); }, "spectra[0]: no source is set");
  expect([](auto& h) { h.mutable_spectra(0)->set_job_id(""); }, "spectra[0]: a job's id of 0 characters");
  expect([](auto& h) { h.set_models(true); }, "models: are those of velocities");
  expect([](auto& h) { h.set_coefficients(22); }, "coefficients: 22, must be 1 to 21");
  expect([](auto& h) { h.set_priority(11); }, "priority is 11");
  expect([](auto& h) { h.mutable_exclude()->add_first(4300); }, "exclude: 1 first and 0 last wavelengths");
  expect(
      [](auto& h) {
        h.mutable_exclude()->add_first(5);
        h.mutable_exclude()->add_last(5);
      },
      "exclude: 5 to 5 Angstrom");
  expect([](auto& h) { h.mutable_rows()->set_stars_by_redrock(true); }, "needs redrock's file");
  expect([](auto& h) { h.mutable_rows()->set_min_snr(std::numeric_limits<double>::quiet_NaN()); },
         "rows.min_snr");
  expect([](auto& h) { h.mutable_rows()->add_object_types("("); }, "(");
  expect([](auto& h) { h.add_arms("x"); }, "arms: x, must be B, R or Z");
  expect([](auto& h) { h.GetReflection()->MutableUnknownFields(&h)->AddVarint(99, 1); }, "has field 99");
  expect([](auto& h) { *h.add_spectra() = h.spectra(0); }, "coadd.fits");
}

TEST_F(AnalysisServiceTest, RefusesSourcesThatAreNotThere) {
  Start();
  v1::AnalysisHeader header = LinesHeader();
  header.mutable_spectra(0)->set_path(folder_ / "none.fits");
  ExpectRefused(header, StatusCode::NOT_FOUND, "none.fits");
  header.mutable_spectra(0)->set_path("/etc/passwd");
  ExpectRefused(header, StatusCode::PERMISSION_DENIED, "/etc/passwd");
  header.mutable_spectra(0)->set_job_id("1-1");
  ExpectRefused(header, StatusCode::FAILED_PRECONDITION, "--jobs-dir");
  header = LinesHeader();
  header.mutable_spectra(0)->mutable_fiberflat()->set_content_hash(std::string(64, '0'));
  ExpectRefused(header, StatusCode::FAILED_PRECONDITION, std::string(64, '0'));
  header = LinesHeader();
  header.mutable_spectra(0)->mutable_upload()->set_name("coadd.fits");
  header.mutable_spectra(0)->mutable_upload()->set_bytes(1000);
  ExpectRefused(header, StatusCode::DATA_LOSS, "spectra[0]");
}

TEST_F(AnalysisServiceTest, RefusesWhatNeedsMoreMemoryThanItHasBeforeItIsTaken) {
  options_.max_product_bytes = 1 << 20;
  Start();
  ExpectRefused(LinesHeader(), StatusCode::RESOURCE_EXHAUSTED, "1048576");
  EXPECT_EQ(Call(LinesHeader()).retry_seconds(), -1);
}

}  // namespace
}  // namespace spexd::testing
