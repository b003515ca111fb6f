// Jobs that measure the shifts of their frame's traces.
#include "core/job/job_traces.h"

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/extract/cpu/cpu_engine.h"
#include "core/fits/moved_psf_writer.h"
#include "core/fits/readers.h"
#include "core/fits/writers.h"
#include "core/job/run_job.h"
#include "core/model/psf_traces/move_psf.h"
#include "tests/support/matchers.h"
#include "tests/support/temp_folder.h"
#include "tests/traces/shifted_files.h"
#include "tests/traces/shifted_frame.h"

namespace spexd::testing {
namespace {

constexpr FibreRange kFibres = {20, 10};  // of two bundles
constexpr int kThreads = 2;

enum class ImageAs { kFile, kRaw, kArrays };

JobSpec Auto() {
  JobSpec spec;
  spec.trace_shifts = TraceAxes::kAuto;
  return spec;
}

// Gives jobs the files of a folder and a shared engine.
class TracesHost : public JobHost {
 public:
  TracesHost(const std::string& folder, Engine* engine) : folder_(folder), engine_(engine) {}

  absl::StatusOr<JobSources> Open() override {
    JobSources sources;
    sources.image_name = "preproc.fits";
    sources.psf_name = psf_name;
    SPEXD_ASSIGN_OR_RETURN(sources.psf, Source::FromFile(folder_ + "/" + psf_name));
    sources.trace_reference = reference;
    sources.trace_reference_name = reference != nullptr ? "sky.dat" : "";
    if (as == ImageAs::kFile) {
      SPEXD_ASSIGN_OR_RETURN(sources.image, Source::FromFile(folder_ + "/preproc.fits"));
    } else if (as == ImageAs::kRaw) {
      sources.raw_image = raw;
    } else {
      sources.arrays = ImageArrays{PlanesOf(raw), raw.cards};
    }
    return sources;
  }
  int ReadThreads() override { return kThreads; }
  Engine* EngineIfReady() override { return engine_; }
  absl::StatusOr<Engine*> WaitForEngine() override { return engine_; }
  void OnStage(const StageSeconds& stage) override {
    stages.push_back(stage.stage);
    if (stage.stage == stop_at) stop.request_stop();
  }
  absl::Status Admit(const JobPlan& plan, const JobInput& input, const JobNeeds& asked) override {
    admitted = true;
    needs = asked;
    return absl::OkStatus();
  }
  absl::StatusOr<std::shared_ptr<const Psf>> LoadPsf(const Source& source) override {
    SPEXD_ASSIGN_OR_RETURN(Psf psf, ReadPsf(source));
    return std::make_shared<const Psf>(std::move(psf));
  }
  absl::StatusOr<std::shared_ptr<const PreparedPsf>> Prepare(Engine* engine,
                                                             const std::shared_ptr<const Psf>& psf,
                                                             const JobPlan& job,
                                                             const std::stop_token& token) override {
    ++prepared;
    return engine->Prepare(psf, job.solve_grid, job.bundle_size, token);
  }
  void OnPlan(std::shared_ptr<const JobPlan> job, int rows, int columns) override { plan = std::move(job); }
  absl::Status OnBundle(std::shared_ptr<const BundleSpectra> bundle, const JobPlan& job, int done) override {
    return absl::OkStatus();
  }

  std::string psf_name = "psf.fits";
  ImageAs as = ImageAs::kFile;
  RawImage raw;
  std::shared_ptr<const ReferenceSpectrum> reference;
  std::string stop_at;  // the stage after which the host requests a stop
  std::stop_source stop;

  bool admitted = false;
  JobNeeds needs;
  int prepared = 0;  // number of PSFs that could have come from a cache
  std::vector<std::string> stages;
  std::shared_ptr<const JobPlan> plan;

 private:
  const std::string folder_;
  Engine* const engine_;
};

struct Extracted {
  JobResult result;
  Frame frame;
  Array<float, 2> model;
};

// Returns the image as arrays. Pixels without data get a mask instead of an ivar of 0.
RawImage ToRaw(const Image& image) {
  RawImage raw;
  raw.rows = image.rows();
  raw.columns = image.columns();
  std::string mask;
  const auto append = [](const auto& value, std::string* bytes) {
    bytes->append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  for (const float pixel : image.pixels.flat()) append(pixel, &raw.bytes);
  for (const float ivar : image.ivar.flat()) {
    append(ivar > 0 ? ivar : 1.0f, &raw.bytes);
    append(int32_t{ivar > 0 ? 0 : 1}, &mask);
  }
  raw.bytes += mask;
  return raw;
}

class JobTraces : public ::testing::Test {
 protected:
  JobTraces() : engine_(MakeCpuEngine({.threads = kThreads})) {
    spec_.first_fibre = kFibres.first;
    spec_.fibre_count = kFibres.count;
    spec_.model = true;
    spec_.trace_shifts = TraceAxes::kXY;
  }

  void Use(const ShiftedFrameOptions& options, const std::vector<std::string>& cards = {}) {
    frame_ = MakeShiftedFrame(options);
    Use(cards);
  }
  void Use(const std::vector<std::string>& cards = {}) {
    reference_ = std::make_shared<const ReferenceSpectrum>(frame_.sky);
    const double middle = 0.5 * (frame_.psf.wave_min + frame_.psf.wave_max);
    spec_.grid = WavelengthGrid{middle - 20, 0.8, 50};
    ASSERT_THAT(WritePsf(frame_.psf, folder_ / "psf.fits"), IsOk());
    WriteImage(frame_.image, folder_ / "preproc.fits", cards);
  }
  TracesHost Host() {
    TracesHost host(folder_.path(), engine_.get());
    host.reference = reference_;
    return host;
  }
  absl::StatusOr<Extracted> Run(TracesHost* host) {
    JobRun run(spec_, JobRun::Assemble::kFrame, host, host->stop.get_token());
    Extracted extracted;
    SPEXD_ASSIGN_OR_RETURN(extracted.result, run.Run());
    extracted.model = run.Model();
    extracted.frame = run.TakeFrame();
    return extracted;
  }
  Extracted RunWell(TracesHost* host) {
    absl::StatusOr<Extracted> extracted = Run(host);
    EXPECT_TRUE(extracted.ok()) << extracted.status();
    return extracted.ok() ? *std::move(extracted) : Extracted();
  }
  // Runs the job without measuring shifts.
  Extracted RunOff(const std::string& psf_name = "psf.fits") {
    const TraceAxes asked = std::exchange(spec_.trace_shifts, TraceAxes::kOff);
    TracesHost host = Host();
    host.psf_name = psf_name;
    Extracted extracted = RunWell(&host);
    EXPECT_FALSE(extracted.frame.origin.traces.has_value());
    EXPECT_EQ(host.needs.trace_bytes, 0);
    spec_.trace_shifts = asked;
    return extracted;
  }

  TempFolder folder_;
  std::unique_ptr<Engine> engine_;
  ShiftedFrame frame_;
  std::shared_ptr<const ReferenceSpectrum> reference_;
  JobSpec spec_;
};

ShiftedFrameOptions Shifted() {
  ShiftedFrameOptions options;
  options.x = MakeSeries({{0.35, 0.06}, {-0.12, 0.04}});
  options.y = MakeSeries({{-0.28, 0.05}, {0.08, 0.03}});
  return options;
}

void ExpectSameSpectra(const Extracted& a, const Extracted& b) {
  EXPECT_TRUE(a.frame.spectra == b.frame.spectra);
  EXPECT_EQ(a.frame.scores, b.frame.scores);
  EXPECT_TRUE(a.model == b.model);
}

TEST_F(JobTraces, GiveTheFrameOfTheWrittenPsfToTheBit) {
  Use(Shifted());
  TracesHost host = Host();
  const Extracted moved = RunWell(&host);
  ASSERT_TRUE(moved.frame.origin.traces.has_value());
  const TraceReport& report = *moved.frame.origin.traces;
  EXPECT_TRUE(report.moved);
  EXPECT_EQ(report.shifts.x.status, ShiftStatus::kOk) << report.shifts.reason;
  EXPECT_EQ(report.shifts.y.status, ShiftStatus::kOk) << report.shifts.reason;
  EXPECT_LT(Difference(frame_.psf, report.shifts.x.series, frame_.x).rms, 0.006);
  EXPECT_EQ(report.reference, "sky.dat");
  EXPECT_THAT(moved.result.summary.warnings, IsEmpty());

  const Source psf = Source::FromFile(folder_ / "psf.fits").value();
  ASSERT_TRUE(WriteMovedPsf(psf, report, folder_ / "moved.fits", {}).ok());
  ExpectSameSpectra(moved, RunOff("moved.fits"));
  EXPECT_FALSE(moved.frame.spectra == RunOff().frame.spectra);
  EXPECT_EQ(moved.result.psf_hash, psf.content_hash());
}

TEST_F(JobTraces, AreMeasuredBetweenDecodingAndPreparing) {
  Use(Shifted());
  TracesHost host = Host();
  ASSERT_TRUE(Run(&host).ok());
  ASSERT_GE(host.stages.size(), 3u);
  EXPECT_THAT(std::vector<std::string>(host.stages.begin(), host.stages.begin() + 3),
              ElementsAre("decode", "traces", "prepare"));
  EXPECT_EQ(host.prepared, 0);  // a cache would not help
  ASSERT_TRUE(host.plan->origin.traces.has_value());
  const std::vector<double> all = FibrePositions(frame_.psf);
  EXPECT_EQ(host.plan->origin.traces->u,
            std::vector<double>(all.begin() + kFibres.first, all.begin() + kFibres.end()));
  EXPECT_GT(host.needs.trace_bytes, int64_t{20} * frame_.psf.fibres * frame_.psf.rows);
  EXPECT_LT(host.needs.trace_bytes, int64_t{400} * frame_.psf.fibres * frame_.psf.rows);
}

TEST_F(JobTraces, AreThoseOfTheImageHoweverItComes) {
  Use(Shifted());
  TracesHost host = Host();
  const Extracted from_file = RunWell(&host);
  for (const ImageAs as : {ImageAs::kRaw, ImageAs::kArrays}) {
    TracesHost other = Host();
    other.as = as;
    other.raw = ToRaw(frame_.image);
    const Extracted extracted = RunWell(&other);
    ExpectSameSpectra(extracted, from_file);
    EXPECT_EQ(extracted.frame.origin.traces->shifts.y.series, from_file.frame.origin.traces->shifts.y.series);
    const int64_t pixels = int64_t{frame_.psf.rows} * frame_.psf.columns;
    EXPECT_EQ(other.needs.image_bytes, pixels * (as == ImageAs::kRaw ? 20 : 8));
  }
}

TEST_F(JobTraces, ThatAreNegligibleLeaveThePsfAsItIs) {
  ShiftedFrameOptions options;
  options.simulator.noise = false;
  options.x = MakeSeries({{0.003}});
  Use(options);
  spec_.trace_shifts = TraceAxes::kX;
  TracesHost host = Host();
  const Extracted extracted = RunWell(&host);
  const TraceReport& report = *extracted.frame.origin.traces;
  EXPECT_FALSE(report.moved);
  EXPECT_EQ(report.shifts.x.status, ShiftStatus::kOk);
  EXPECT_NEAR(report.shifts.x.mean, 0.003, 0.002);
  EXPECT_EQ(host.prepared, 1);
  ExpectSameSpectra(extracted, RunOff());
}

TEST_F(JobTraces, ThatCannotBeMeasuredLeaveTheFrameAsWithoutThem) {
  frame_ = MakeShiftedFrame({});
  std::fill(frame_.image.pixels.flat().begin(), frame_.image.pixels.flat().end(), 0.0f);
  Use();
  TracesHost host = Host();
  const Extracted extracted = RunWell(&host);
  const TraceReport& report = *extracted.frame.origin.traces;
  EXPECT_FALSE(report.moved);
  EXPECT_EQ(report.shifts.x.status, ShiftStatus::kRefused);
  EXPECT_EQ(report.shifts.y.status, ShiftStatus::kRefused);
  EXPECT_THAT(
      extracted.result.summary.warnings,
      Contains("trace shifts in x and y were not measured: there is no light on the traces; the PSF's "
               "own traces were used"));
  EXPECT_EQ(host.prepared, 1);
  ExpectSameSpectra(extracted, RunOff());

  spec_.trace_required = true;
  TracesHost required = Host();
  EXPECT_THAT(
      Run(&required).status(),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("preproc.fits with PSF psf.fits: trace shifts in x and y were not measured: "
                               "there is no light"),
                     HasSubstr("do without trace_required"))));
  EXPECT_EQ(required.plan, nullptr);
}

TEST_F(JobTraces, MoveXAloneWhereYIsRefused) {
  ShiftedFrameOptions options = Shifted();
  options.y = {};
  options.edit_truth = [](Truth* truth) {  // a continuum
    std::fill(truth->flux.flat().begin(), truth->flux.flat().end(), 300.0f);
  };
  Use(options);
  TracesHost host = Host();
  const Extracted extracted = RunWell(&host);
  const TraceReport& report = *extracted.frame.origin.traces;
  EXPECT_TRUE(report.moved);
  EXPECT_EQ(report.shifts.y.status, ShiftStatus::kRefused);
  EXPECT_THAT(
      extracted.result.summary.warnings,
      Contains(AllOf(StartsWith("trace shifts in y were not measured: "), HasSubstr("were used in y"))));
  const Source psf = Source::FromFile(folder_ / "psf.fits").value();
  ASSERT_TRUE(WriteMovedPsf(psf, report, folder_ / "moved.fits", {}).ok());
  ExpectSameSpectra(extracted, RunOff("moved.fits"));
}

TEST_F(JobTraces, EndTheJobOnceAStopIsRequested) {
  Use(Shifted());
  for (const char* stage : {"decode", "traces"}) {
    TracesHost host = Host();
    host.stop_at = stage;
    EXPECT_THAT(Run(&host).status(), StatusIs(absl::StatusCode::kCancelled)) << stage;
    EXPECT_EQ(host.stages.back(), stage);
  }
}

TEST_F(JobTraces, OfAPsfThatHasNoneAreRefusedBeforeTheJobIsAdmitted) {
  frame_ = MakeShiftedFrame({});
  frame_.psf.traces.y.wave_max += 1;
  Use();
  TracesHost host = Host();
  EXPECT_THAT(Run(&host).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("PSF psf.fits: "), HasSubstr("XTRACE has the domain"))));
  EXPECT_FALSE(host.admitted);
}

TEST_F(JobTraces, AreMeasuredWithoutExtractionToo) {
  Use(Shifted(), {absl::StrFormat("%-80s", "FLAVOR  = 'science '")});
  TracesHost host = Host();
  const TraceReport of_job = *RunWell(&host).frame.origin.traces;
  const absl::StatusOr<TraceReport> measured = MeasureFrameTraces(Host().Open().value(), Auto(), {1});
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_EQ(measured->shifts.x.series, of_job.shifts.x.series);
  EXPECT_EQ(measured->shifts.y.series, of_job.shifts.y.series);
  EXPECT_EQ(measured->moved, of_job.moved);
  EXPECT_EQ(measured->u, FibrePositions(frame_.psf));
}

TEST_F(JobTraces, OfAFlatAreMeasuredInXAlone) {
  Use(Shifted(), {absl::StrFormat("%-80s", "FLAVOR  = 'FLAT    '")});
  const absl::StatusOr<TraceReport> measured = MeasureFrameTraces(Host().Open().value(), Auto(), {kThreads});
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_EQ(measured->shifts.x.status, ShiftStatus::kOk);
  EXPECT_EQ(measured->shifts.y.status, ShiftStatus::kNone);
  EXPECT_EQ(measured->reference, "");
}

}  // namespace
}  // namespace spexd::testing
