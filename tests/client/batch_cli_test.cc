// Many frames extracted by one spex.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <future>
#include <memory>
#include <stop_token>
#include <utility>

#include "client/cli/batch/frame_batch.h"
#include "client/cli/batch/frame_list.h"
#include "client/cli/terminal/exit_code.h"
#include "client/embedded/shared_psfs.h"
#include "core/extract/cpu/cpu_engine.h"
#include "tests/client/support/small_frame.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

// Frames preproc-r1.fits, preproc-r2.fits, ... for one PSF.
class ManyFrames : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    frame_ = new SmallFrame();
    server_ = new TestServer({"--allow-root", std::filesystem::temp_directory_path().string()});
  }
  static void TearDownTestSuite() {
    delete server_;
    delete frame_;
  }

  ManyFrames() { AddFrames(3); }

  void AddFrames(int count) {
    for (int k = 0; k < count; ++k) {
      images_.push_back(inputs_ / ("preproc-r" + std::to_string(images_.size() + 1) + ".fits"));
      std::filesystem::copy(frame_->image(), images_.back());
    }
  }
  // Adds a file that is not FITS.
  void AddBadFrame() {
    images_.push_back(inputs_ / "preproc-bad.fits");
    WriteBytes(images_.back(), "not a frame");
  }
  std::vector<std::string> WholeFrames(const std::vector<std::string>& more) const {
    std::vector<std::string> command =
        Joined(Joined({"-i"}, images_), {"-p", frame_->psf(), "--output-dir", outputs_.path()});
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }
  // Returns a command that extracts 5 fibres of each frame.
  std::vector<std::string> Command(std::vector<std::string> more) const {
    more.insert(more.end(), {"-n", "5"});
    return WholeFrames(more);
  }
  static std::vector<std::string> OnTheServer(bool upload) {
    std::vector<std::string> flags = {"--server", server_->address()};
    if (upload) flags.push_back("--upload");
    return flags;
  }

  static inline SmallFrame* frame_ = nullptr;
  static inline TestServer* server_ = nullptr;
  TempFolder inputs_, outputs_;
  std::vector<std::string> images_;
};

TEST_F(ManyFrames, BecomeTheSameFilesAsOneByOneWhereverTheyAreExtracted) {
  std::vector<std::string> expected;
  for (const std::string& image : images_) {
    const TempFolder one;
    const RunResult run = Spex(
        {"-i", image, "-p", frame_->psf(), "-n", "5", "-o", one / "frame.fits", "-m", one / "model.fits"});
    ASSERT_EQ(run.code, 0) << run.output;
    expected.push_back(ReadBytes(one / "frame.fits"));
    expected.push_back(ReadBytes(one / "model.fits"));
  }
  for (const std::vector<std::string>& where :
       {std::vector<std::string>{"--device", "cpu"}, OnTheServer(false), OnTheServer(true)}) {
    const RunResult run = Spex(Command(Joined(where, {"--model-dir", outputs_ / "models"})));
    ASSERT_THAT(run, ExitsWith(0, HasSubstr("3 of 3 frames written: 15 spectra")));
    EXPECT_THAT(outputs_.Entries(), ElementsAre("frame-r1.fits", "frame-r2.fits", "frame-r3.fits", "models"));
    for (size_t k = 0; k < images_.size(); ++k) {
      const std::string number = std::to_string(k + 1);
      EXPECT_TRUE(ReadBytes(outputs_ / ("frame-r" + number + ".fits")) == expected[2 * k]) << run.output;
      EXPECT_TRUE(ReadBytes(outputs_ / ("models/model-r" + number + ".fits")) == expected[2 * k + 1]);
    }
    std::filesystem::remove_all(outputs_ / "models");
    for (const std::string& name : outputs_.Entries()) std::filesystem::remove(outputs_ / name);
  }
}

TEST_F(ManyFrames, GoOnWhereOneFails) {
  AddBadFrame();
  AddFrames(1);
  for (const std::vector<std::string>& where :
       {std::vector<std::string>{"--device", "cpu"}, OnTheServer(false), OnTheServer(true)}) {
    EXPECT_THAT(Spex(Command(where)),
                ExitsWith(cli::kUsage, AllOf(HasSubstr("preproc-bad.fits: is not a FITS file"),
                                             HasSubstr("4 of 5 frames written"),
                                             HasSubstr("Failed: " + images_[3] + "\n"))));
    EXPECT_THAT(outputs_.Entries(),
                ElementsAre("frame-r1.fits", "frame-r2.fits", "frame-r3.fits", "frame-r5.fits"));
  }
}

TEST_F(ManyFrames, AreEachNamedWhereNoServerListens) {
  const RunResult run =
      Spex(Command({"--timeout", "1", "--server", "unix:" + outputs_.path() + "/none", "--quiet"}));
  EXPECT_EQ(run.code, cli::kServer);
  for (const std::string& image : images_) EXPECT_THAT(run.output, HasSubstr("spex: " + image + ": "));
  EXPECT_THAT(outputs_.Entries(), IsEmpty());
}

TEST_F(ManyFrames, MayHaveAPsfEachOfTheirOwnCamera) {
  const TempFolder blue;
  ASSERT_EQ(Spex({"simulate", "--camera", "b", "--fibres", "30", "--rows", "160", "--seed", "4", "--out-dir",
                  blue.path()})
                .code,
            0);
  const std::string b_image = blue / "preproc-b0.fits", b_psf = blue / "psf-of-camera-b0.fits";
  WritePsfOfCamera(blue / "psf-b0.fits", "b0", b_psf);
  const std::string output = outputs_.path();
  EXPECT_THAT(Spex({"-i", images_[0], b_image, "-p", frame_->psf(), b_psf, "--output-dir", output}),
              ExitsWith(0));
  EXPECT_THAT(outputs_.Entries(), ElementsAre("frame-b0.fits", "frame-r1.fits"));
  for (const std::vector<std::string>& where :
       {std::vector<std::string>{"--device", "cpu"}, OnTheServer(true)}) {
    std::vector<std::string> command =
        Joined({"-i", images_[0], b_image, "-p", b_psf, b_psf, "--output-dir", outputs_ / "crossed"}, where);
    EXPECT_THAT(
        Spex(command),
        ExitsWith(cli::kUsage, AllOf(HasSubstr("is of camera r0, but PSF " + b_psf + " is of camera b0"),
                                     HasSubstr("1 of 2 frames written"))));
  }
}

// Returns how often `part` occurs in `text`.
int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_F(ManyFrames, OfAWholeExposureAreOneCommandWithOneSummary) {
  std::vector<std::string> images, psfs, expected;
  for (const std::string camera : {"b", "r", "z"}) {
    const TempFolder made;
    ASSERT_EQ(Spex({"simulate", "--camera", camera, "--fibres", "5", "--rows", "150", "--seed", "4",
                    "--out-dir", made.path()})
                  .code,
              0);
    for (int spectrograph = 0; spectrograph < 10; ++spectrograph) {
      const std::string name = camera + std::to_string(spectrograph) + "-00051060.fits";
      images.push_back(inputs_ / ("preproc-" + name));
      psfs.push_back(inputs_ / ("psf-" + name));
      expected.push_back("frame-" + name);
      std::filesystem::copy(made / ("preproc-" + camera + "0.fits"), images.back());
      std::filesystem::copy(made / ("psf-" + camera + "0.fits"), psfs.back());
    }
  }
  for (const std::vector<std::string>& where :
       {std::vector<std::string>{"--device", "cpu"}, OnTheServer(false)}) {
    std::vector<std::string> command = Joined({"--output-dir", outputs_.path(), "-i"}, images);
    command.push_back("-p");
    command.insert(command.end(), psfs.begin(), psfs.end());
    command.insert(command.end(), where.begin(), where.end());
    const RunResult run = Spex(command);
    ASSERT_EQ(run.code, 0) << run.output;
    EXPECT_EQ(outputs_.Entries(), expected);
    EXPECT_EQ(Count(run.output, "Wrote "), 30) << run.output;
    EXPECT_EQ(Count(run.output, "frames written"), 1) << run.output;
    EXPECT_EQ(Count(run.output, "Total "), 1) << run.output;
    EXPECT_GT(run.output.find("30 of 30 frames written: 150 spectra"), run.output.rfind("Wrote "));
    for (const std::string& name : outputs_.Entries()) std::filesystem::remove(outputs_ / name);
  }
}

TEST_F(ManyFrames, AreRefusedBeforeTheWorkWhereNamesDoNotFit) {
  const std::string psf = frame_->psf(), folder = outputs_.path();
  const auto refusal = [](const std::vector<std::string>& command) {
    const RunResult run = Spex(command);
    EXPECT_EQ(run.code, cli::kUsage) << run.output;
    return run.output;
  };
  const std::vector<std::string> two = {"-i", images_[0], images_[1]};
  const auto with = [&two](const std::vector<std::string>& more) { return Joined(two, more); };
  EXPECT_THAT(refusal(with({"-p", psf, "-o", outputs_ / "frame.fits"})), HasSubstr("use --output-dir"));
  EXPECT_THAT(refusal(with({"-p", psf, psf, psf, "--output-dir", folder})),
              HasSubstr("--psf names 3 files, --input 2"));
  EXPECT_THAT(refusal({"-i", images_[0], "-p", psf}), HasSubstr("--output or --output-dir is required"));
  EXPECT_THAT(
      refusal({"-i", images_[0], inputs_ / "./preproc-r1.fits.gz", "-p", psf, "--output-dir", folder}),
      HasSubstr("would both become"));
  EXPECT_THAT(refusal(with({"-p", psf, "--output-dir", folder, "-m", "model.fits"})), HasSubstr("excludes"));
  const std::string frame = inputs_ / "frame-r7.fits", other = inputs_ / "r7.fits";
  std::filesystem::copy(images_[0], frame);
  EXPECT_THAT(refusal({"-i", frame, other, "-p", psf, "--output-dir", inputs_.path()}),
              HasSubstr("frame-r7.fits is a file that --input reads"));
  EXPECT_THAT(outputs_.Entries(), IsEmpty());
}

TEST_F(ManyFrames, SayNothingWhenQuiet) {
  EXPECT_EQ(Spex(Command({"--quiet", "--device", "cpu"})).output, "");
}

TEST_F(ManyFrames, ShareOneBar) {
  const RunResult run = Spex(Command({"--progress", "bar", "--device", "cpu"}));
  EXPECT_THAT(run.output, HasSubstr("3/3 frames"));
  EXPECT_THAT(run.output, Not(HasSubstr("Wrote")));
}

// So many frames that a signal after the first finds spex working.
TEST_F(ManyFrames, StayWholeAfterCtrlC) {
  AddFrames(47);
  for (const std::vector<std::string>& where :
       {std::vector<std::string>{"--threads", "1"}, OnTheServer(false)}) {
    std::vector<std::string> command = WholeFrames(where);
    command.insert(command.begin(), BinFolder() + "/spex");
    command.insert(command.end(), {"--bundlesize", "1", "--in-flight", "2", "--progress", "lines"});
    Process spex(command);
    ASSERT_TRUE(spex.WaitForLine("Wrote ")) << spex.output();
    spex.Signal(SIGINT);
    EXPECT_EQ(spex.Wait(), cli::kInterrupted) << spex.output();
    EXPECT_THAT(spex.output(), HasSubstr("spex: interrupted; "));
    ASSERT_THAT(outputs_.Entries(), Not(IsEmpty()));
    const size_t whole = std::filesystem::file_size(outputs_ / outputs_.Entries()[0]);
    for (const std::string& name : outputs_.Entries()) {
      EXPECT_THAT(name, StartsWith("frame-r"));
      EXPECT_EQ(std::filesystem::file_size(outputs_ / name), whole);
      std::filesystem::remove(outputs_ / name);
    }
  }
}

// Ends no job before `expected` have begun, and each with `end`. With `accepts` it acts as a server that took
// the job.
class WaitingExtractor : public client::Extractor {
 public:
  WaitingExtractor(int expected, absl::Status end, bool accepts = false)
      : expected_(expected), end_(std::move(end)), accepts_(accepts) {}
  absl::StatusOr<JobOutcome> Run(const client::Job& job, JobObserver* observer,
                                 std::stop_token stop) override {
    if (accepts_) observer->OnAccepted("job", 0);
    MutexLock lock(&mutex_);
    most_ = std::max(most_, ++running_);
    begun_.NotifyAll();
    ++jobs_;
    while (jobs_ < expected_) begun_.Wait(&mutex_);
    --running_;
    return end_;
  }
  int jobs() { return MutexLock(&mutex_), jobs_; }
  int most() { return MutexLock(&mutex_), most_; }

 private:
  const int expected_;
  const absl::Status end_;
  const bool accepts_;
  Mutex mutex_;
  CondVar begun_;
  int jobs_ ABSL_GUARDED_BY(mutex_) = 0, running_ ABSL_GUARDED_BY(mutex_) = 0,
            most_ ABSL_GUARDED_BY(mutex_) = 0;
};

cli::BatchOptions AtOnce(int in_flight) {
  return {.in_flight = in_flight,
          .style = cli::ProgressStyle::kNone,
          .quiet = true,
          .start = std::chrono::steady_clock::now()};
}

TEST(Batches, KeepSoManyFramesInFlightAndNoMore) {
  WaitingExtractor extractor(3, absl::NotFoundError("no frame"));
  cli::ListedFrames frames(std::vector<cli::FrameTask>(10));
  EXPECT_EQ(cli::RunBatch(&frames, AtOnce(3), {.extractor = &extractor}, {}).code, cli::kUsage);
  EXPECT_EQ(extractor.jobs(), 10);
  EXPECT_EQ(extractor.most(), 3);
}

TEST(Batches, EndSoonWhereNoServerTakesAFrame) {
  WaitingExtractor extractor(1, absl::UnavailableError("no server took the job"));
  cli::ListedFrames frames(std::vector<cli::FrameTask>(100));
  EXPECT_EQ(cli::RunBatch(&frames, AtOnce(3), {.extractor = &extractor}, {}).code, cli::kServer);
  EXPECT_GE(extractor.jobs(), 6);
  EXPECT_LE(extractor.jobs(), 8);  // two may have been in flight
}

TEST(Batches, GoOnWhereServersTakeFramesAndAreLost) {
  WaitingExtractor extractor(1, absl::UnavailableError("the connection broke"), /*accepts=*/true);
  cli::ListedFrames frames(std::vector<cli::FrameTask>(20));
  EXPECT_EQ(cli::RunBatch(&frames, AtOnce(3), {.extractor = &extractor}, {}).code, cli::kServer);
  EXPECT_EQ(extractor.jobs(), 20);
}

TEST(OutputNames, AreThePipelines) {
  EXPECT_EQ(cli::OutputName("frame", "/night/preproc-r0-00051060.fits.gz"), "frame-r0-00051060.fits");
  EXPECT_EQ(cli::OutputName("model", "preproc-z9.fits"), "model-z9.fits");
  EXPECT_EQ(cli::OutputName("frame", "arc.fits.fz"), "frame-arc.fits");
}

TEST(SharedPsfs, AreReadAndPreparedOnceUntilTheirLastJobEnds) {
  const SmallFrame frame;
  client::SharedPsfs psfs({frame.psf(), "other.fits", frame.psf()});
  EXPECT_FALSE(psfs.Shares("other.fits"));
  ASSERT_TRUE(psfs.Shares(frame.psf()));
  auto first = psfs.Load(frame.psf(), {});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(psfs.Load(frame.psf(), {})->get(), first->get());
  const auto engine = MakeCpuEngine({});
  const WavelengthGrid grid = {6620, 0.8, 20};
  const auto prepare = [&](const WavelengthGrid& on) {
    return *psfs.Prepare(engine.get(), frame.psf(), on, 25, {});
  };
  {
    const auto prepared = prepare(grid);
    EXPECT_EQ(prepare(grid), prepared);
    EXPECT_NE(prepare({6620, 0.8, 21}), prepared);
  }
  const std::weak_ptr<const Psf> kept = *first;
  first = nullptr;
  psfs.EndJob(frame.psf());
  EXPECT_FALSE(kept.expired());
  psfs.EndJob(frame.psf());
  EXPECT_TRUE(kept.expired());
}

TEST(SharedPsfs, AreKeptForJobsThatMayComeAtAnyTime) {
  const SmallFrame frame;
  client::SharedPsfs psfs({frame.psf()}, client::SharedPsfs::Keep::kAlways);
  ASSERT_TRUE(psfs.Shares(frame.psf()));
  const std::weak_ptr<const Psf> kept = *psfs.Load(frame.psf(), {});
  psfs.EndJob(frame.psf());
  EXPECT_FALSE(kept.expired());
}

// Prepares a PSF when the test allows it.
class HeldEngine : public Engine {
 public:
  EngineInfo Info() const override { return engine_->Info(); }
  absl::StatusOr<std::shared_ptr<const PreparedPsf>> Prepare(std::shared_ptr<const Psf> psf,
                                                             const WavelengthGrid& grid, int bundle_size,
                                                             std::stop_token stop) override {
    entered.set_value();
    let_go.get_future().wait();
    return engine_->Prepare(std::move(psf), grid, bundle_size, std::move(stop));
  }
  absl::StatusOr<StageTimes> Extract(const ExtractRequest& request, const BundleSink& sink) override {
    return engine_->Extract(request, sink);
  }

  std::promise<void> entered, let_go;

 private:
  const std::unique_ptr<Engine> engine_ = MakeCpuEngine({});
};

TEST(SharedPsfs, LetAJobGoThatWaitsWhileAnotherPreparesThem) {
  const SmallFrame frame;
  client::SharedPsfs psfs({frame.psf(), frame.psf()});
  ASSERT_TRUE(psfs.Load(frame.psf(), {}).ok());
  HeldEngine engine;
  const auto prepare = [&](const std::stop_token& stop) {
    return psfs.Prepare(&engine, frame.psf(), {6620, 0.8, 20}, 25, stop).status();
  };
  auto first = std::async(std::launch::async, prepare, std::stop_token());
  engine.entered.get_future().wait();
  std::stop_source stop;
  auto second = std::async(std::launch::async, prepare, stop.get_token());
  stop.request_stop();
  EXPECT_TRUE(absl::IsCancelled(second.get()));
  EXPECT_TRUE(absl::IsCancelled(psfs.Load(frame.psf(), stop.get_token()).status()));
  engine.let_go.set_value();
  EXPECT_TRUE(first.get().ok());
}

TEST(SharedPsfs, AreReadAgainAfterAnError) {
  const TempFolder folder;
  client::SharedPsfs psfs({folder / "psf.fits", folder / "psf.fits"});
  EXPECT_EQ(psfs.Load(folder / "psf.fits", {}).status().code(), absl::StatusCode::kNotFound);
  const SmallFrame frame;
  std::filesystem::copy(frame.psf(), folder / "psf.fits");
  EXPECT_TRUE(psfs.Load(folder / "psf.fits", {}).ok());
}

}  // namespace
}  // namespace spexd::testing
