// The order in which a job calls its host, and what ends it.
#include "core/job/run_job.h"

#include <algorithm>

#include "core/base/status_macros.h"
#include "core/fits/readers.h"
#include "core/fits/writers.h"
#include "tests/service/support/attack_files.h"
#include "tests/service/support/fake_engine.h"
#include "tests/service/support/inputs.h"
#include "tests/support/matchers.h"
#include "tests/support/time_to_stop.h"

namespace spexd::testing {
namespace {

// Records the calls.
class NotingHost : public JobHost {
 public:
  explicit NotingHost(const std::string& folder) : folder_(folder) {}

  void OnState(JobState state) override { Note(JobStateName(state)); }
  absl::StatusOr<JobSources> Open() override {
    Note("open");
    JobSources sources;
    sources.image_name = "preproc.fits";
    sources.psf_name = "psf.fits";
    sources.image = Source::FromFile(folder_ + "/preproc.fits").value();
    sources.psf = Source::FromFile(folder_ + "/psf.fits").value();
    sources.loaded_psf = loaded;
    return sources;
  }
  int ReadThreads() override { return 2; }
  Engine* EngineIfReady() override { return engine_is_late ? nullptr : &engine; }
  absl::StatusOr<Engine*> WaitForEngine() override {
    Note("engine");
    return &engine;
  }
  absl::Status OnEstimate(const JobEstimate& estimate, absl::Status fits) override {
    Note("estimate");
    return fits;
  }
  absl::Status Admit(const JobPlan& plan, const JobInput& input, const JobNeeds& asked) override {
    Note("admit");
    needs = asked;
    return admitted;
  }
  absl::StatusOr<std::shared_ptr<const Psf>> LoadPsf(const Source& source) override {
    Note("psf");
    SPEXD_ASSIGN_OR_RETURN(Psf psf, ReadPsf(source));
    return std::make_shared<const Psf>(std::move(psf));
  }
  absl::StatusOr<std::shared_ptr<const PreparedPsf>> Prepare(Engine* on,
                                                             const std::shared_ptr<const Psf>& psf,
                                                             const JobPlan& plan,
                                                             const std::stop_token& stop) override {
    Note("prepare");
    EXPECT_FALSE(GaussHermite(*psf).core().terms.front().amplitude.empty());
    return on->Prepare(psf, plan.solve_grid, plan.bundle_size, stop);
  }
  absl::Status OnBundle(std::shared_ptr<const BundleSpectra> bundle, const JobPlan& plan, int done) override {
    Note("bundle");
    return absl::OkStatus();
  }

  const std::shared_ptr<EngineControl> control = std::make_shared<EngineControl>();
  FakeEngine engine{control};
  bool engine_is_late = false;
  absl::Status admitted;
  std::shared_ptr<const Psf> loaded;
  JobNeeds needs;
  std::string stop_at;  // the call in which the host requests a stop
  std::stop_source stop;
  std::vector<std::string> calls;

 private:
  void Note(const std::string& call) {
    calls.push_back(call);
    if (call == stop_at) stop.request_stop();
  }
  const std::string folder_;
};

class JobRunTest : public ::testing::Test {
 protected:
  JobRunTest() {
    WritePsfFile(folder_ / "psf.fits");
    WritePreprocFile(folder_ / "preproc.fits");
  }
  absl::StatusOr<JobResult> Run() {
    JobSpec spec;
    spec.bundle_size = 5;
    return JobRun(spec, JobRun::Assemble::kFrame, &host_, host_.stop.get_token()).Run();
  }
  TempFolder folder_;
  NotingHost host_{folder_.path()};
};

TEST_F(JobRunTest, EstimatesAndAsksToBeAdmittedBeforeAnythingLargeIsRead) {
  const absl::StatusOr<JobResult> result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(host_.calls, ElementsAre("reading", "open", "estimate", "admit", "psf", "preparing", "prepare",
                                       "extracting", "bundle", "bundle"));
  const int64_t pixels = kRows * kColumns;
  EXPECT_GE(host_.needs.image_bytes, pixels * (4 + 4 + 2));  // image, ivar and mask; scratch memory for tiles
  EXPECT_LT(host_.needs.image_bytes, pixels * (4 + 4 + 2 + 1));
  EXPECT_GT(host_.needs.psf_bytes, 0);
  EXPECT_EQ(result->engine, "fake (no device)");
  EXPECT_EQ(result->stages.front().stage, "decode");
}

TEST_F(JobRunTest, NeedsNoMemoryForAPsfThatIsLoaded) {
  host_.loaded = std::make_shared<const Psf>(SmallPsf());
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(host_.needs.psf_bytes, 0);
  EXPECT_EQ(std::count(host_.calls.begin(), host_.calls.end(), "psf"), 0);
}

TEST_F(JobRunTest, EstimatesLaterWhereTheEngineIsNotThereYet) {
  host_.engine_is_late = true;
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(host_.calls, ElementsAre("reading", "open", "admit", "psf", "preparing", "engine", "estimate",
                                       "prepare", "extracting", "bundle", "bundle"));
}

TEST_F(JobRunTest, EndsBeforeItIsAdmittedIfTheEngineCouldNeverHoldABundle) {
  host_.control->Set([](auto& behaviour) {
    behaviour.estimate.min_bytes = 2000;
    behaviour.info.max_bundle_bytes = 1999;
  });
  const absl::Status status = Run().status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("a bundle of 5 fibres on 51 bins"), HasSubstr("2000"), HasSubstr("1999")));
  EXPECT_EQ(host_.calls.back(), "estimate");
}

TEST_F(JobRunTest, EndsWithWhatTheHostSaysWhenItIsNotAdmitted) {
  host_.admitted = absl::ResourceExhaustedError("no room");
  EXPECT_EQ(Run().status(), host_.admitted);
  EXPECT_EQ(host_.calls.back(), "admit");
}

TEST_F(JobRunTest, WarnsOfNegativeIvarWhoeverDecodesTheImage) {
  PreprocFile file;
  file.pixels.Assign({kRows, kColumns}, 10);
  file.ivar.Assign(file.pixels.shape(), 0.25f);
  file.ivar(2, 3) = file.ivar(2, 4) = file.ivar(2, 5) = -0.25f;
  file.mask.Assign(file.pixels.shape());
  file.mask(2, 4) = 1;
  file.readnoise.Assign(file.pixels.shape(), 3);
  ASSERT_TRUE(WritePreproc(file, folder_ / "preproc.fits", /*rice=*/true).ok());
  const absl::StatusOr<JobResult> here = Run();
  ASSERT_TRUE(here.ok()) << here.status();
  EXPECT_THAT(here->summary.warnings,
              ElementsAre(HasSubstr("2 pixels that MASK does not flag have IVAR < 0")));

  host_.control->Set([](auto& behaviour) {
    behaviour.info.decodes = true;
    behaviour.negative_ivar = 2;
  });
  const absl::StatusOr<JobResult> by_the_engine = Run();
  ASSERT_TRUE(by_the_engine.ok()) << by_the_engine.status();
  EXPECT_EQ(by_the_engine->summary.warnings, here->summary.warnings);
}

TEST_F(JobRunTest, LeavesTheImageCodedIfTheEngineMeasuresTracesInIt) {
  PreprocFile file;
  file.pixels.Assign({kRows, kColumns});
  for (int64_t k = 0; k < file.pixels.size(); ++k) file.pixels.flat()[k] = static_cast<float>(k * k % 17);
  file.ivar.Assign(file.pixels.shape(), 0.25f);
  file.mask.Assign(file.pixels.shape());
  file.readnoise.Assign(file.pixels.shape(), 3);
  ASSERT_TRUE(WritePreproc(file, folder_ / "preproc.fits", /*rice=*/true).ok());
  host_.control->Set([](auto& behaviour) { behaviour.info.decodes = true; });
  ASSERT_TRUE(Run().ok());
  const int64_t coded_bytes = host_.needs.image_bytes;
  JobSpec spec;
  spec.bundle_size = 5;
  spec.trace_shifts = TraceAxes::kX;
  const absl::StatusOr<JobResult> measured =
      JobRun(spec, JobRun::Assemble::kFrame, &host_, host_.stop.get_token()).Run();
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_EQ(host_.needs.image_bytes, coded_bytes);
  EXPECT_THAT(measured->summary.warnings, ElementsAre(HasSubstr("trace shifts in x were not measured")));
}

TEST_F(JobRunTest, EndsAfterTheStepInWhichAStopIsRequested) {
  const std::pair<const char*, const char*> last_calls[] = {
      {"open", "open"}, {"admit", "admit"}, {"psf", "psf"}, {"prepare", "prepare"}};
  for (const auto& [stop_at, last] : last_calls) {
    SCOPED_TRACE(stop_at);
    NotingHost host(folder_.path());
    host.stop_at = stop_at;
    EXPECT_THAT(JobRun(JobSpec(), JobRun::Assemble::kSummary, &host, host.stop.get_token()).Run().status(),
                StatusIs(absl::StatusCode::kCancelled));
    EXPECT_EQ(host.calls.back(), last);
  }
}

// IMAGE and IVAR are one tile each, so that the job cannot end between two pieces of work.
TEST_F(JobRunTest, StopsInsideAFrameThatIsDecoded) {
  constexpr int kSide = 4096;
  WriteText(folder_ / "preproc.fits", FlatFrame(kSide, kSide));
  ASSERT_TRUE(WritePsf(StraightPsf(kSide, kSide, 10), folder_ / "psf.fits").ok());
  const double begin = ProcessorSeconds();
  ASSERT_TRUE(Run().ok());
  const double whole = ProcessorSeconds() - begin;
  const auto stop_after = [&](double after) {
    return SecondsToStop(after, [&](const std::stop_token& stop) {
      NotingHost host(folder_.path());
      return JobRun(JobSpec(), JobRun::Assemble::kSummary, &host, stop).Run().status();
    });
  };
  for (const double part : {0.1, 0.2, 0.4}) {
    // Several threads decode, and a later run may be faster than the first: the stop then comes earlier.
    double after = part * whole, seconds = stop_after(after);
    for (; seconds < 0 && after > 1e-3; seconds = stop_after(after)) after /= 2;
    EXPECT_GE(seconds, 0) << "ended before " << after << " s";
    EXPECT_LT(seconds, 0.4 * whole) << "stopped after " << after << " s";
  }
}

TEST(ImageInPlace, HasThePixelsOfTheMaskRuleWhereverItsBytesLie) {
  constexpr int kRows = 150, kColumns = 1007;
  RawImage raw;
  raw.rows = kRows;
  raw.columns = kColumns;
  for (int plane = 0; plane < 2; ++plane) {
    for (int k = 0; k < kRows * kColumns; ++k) {
      const float value = plane == 1 && k % 5 == 0 ? -1.0f : static_cast<float>(k + plane);
      raw.bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
    }
  }
  for (int32_t k = 0; k < kRows * kColumns; ++k) {
    const int32_t mask = k % 11 == 0 ? 1 : 0;
    raw.bytes.append(reinterpret_cast<const char*>(&mask), sizeof(mask));
  }
  const size_t plane = raw.bytes.size() / 3;
  const std::string moved = "x" + raw.bytes;  // not aligned
  const ImagePlanes planes = {kRows, kColumns, &moved[1], &moved[1 + plane], &moved[1 + 2 * plane]};
  ImagePlanes unflagged = planes;
  unflagged.mask = nullptr;
  int64_t negative = 0, unflagged_negative = 0;
  for (int k = 0; k < kRows * kColumns; ++k) {
    const bool positive = k % 5 != 0, flagged = k % 11 == 0;
    negative += !positive && !flagged;
    unflagged_negative += !positive;
    const auto index = static_cast<size_t>(k);
    ASSERT_EQ(LoadPixel(planes, index).value, positive && !flagged ? static_cast<float>(k) : 0) << k;
    ASSERT_EQ(LoadPixel(PlanesOf(raw), index).ivar, positive && !flagged ? static_cast<float>(k + 1) : 0)
        << k;
    ASSERT_EQ(LoadPixel(unflagged, index).value, positive ? static_cast<float>(k) : 0) << k;
  }
  for (int threads : {1, 3}) {
    EXPECT_EQ(CountUnflaggedNegative(planes, {threads}).value(), negative);
    EXPECT_EQ(CountUnflaggedNegative(unflagged, {threads}).value(), unflagged_negative);
  }
}

}  // namespace
}  // namespace spexd::testing
