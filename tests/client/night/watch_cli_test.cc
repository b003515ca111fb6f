// spex night --watch: frames are extracted as they appear in a folder, until it is stopped.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "client/cli/terminal/exit_code.h"
#include "tests/client/support/small_frame.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

namespace fs = std::filesystem;

// Frames of r0 appear in the folder "in", and are extracted to the folder "out".
class Watch : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    frame_ = new SmallFrame();
    other_ = new TempFolder();
    ASSERT_EQ(
        Spex({"simulate", "--fibres", "30", "--rows", "160", "--seed", "9", "--out-dir", other_->path()})
            .code,
        0);
  }
  static void TearDownTestSuite() {
    delete frame_;
    delete other_;
  }

  Watch() { fs::create_directory(folder_ / "in"); }

  std::string In(const std::string& name) const { return folder_ / ("in/preproc-" + name); }
  std::string Out(const std::string& name) const { return folder_ / ("out/frame-" + name); }
  void Start(const std::vector<std::string>& more = {}, const ProcessOptions& options = {}) {
    spex_ = std::make_unique<Process>(
        Joined({BinFolder() + "/spex", "night", "--watch", folder_ / "in", "--psf-for", "R0=" + frame_->psf(),
                "--output-dir", folder_ / "out", "-n", "5", "--device", "cpu", "--progress", "lines",
                "--json", folder_ / "night.json"},
               more),
        options);
    ASSERT_TRUE(spex_->WaitForLine("Watching ")) << spex_->output();
  }
  void ExpectLine(const std::string& text) { ASSERT_TRUE(spex_->WaitForLine(text)) << spex_->output(); }
  int Stop() {
    spex_->Signal(SIGTERM);
    return spex_->Wait();
  }
  // Expects the frame that `spex extract` would write.
  void ExpectRight(const std::string& input) const {
    const std::string name = input.substr(0, input.find(".fits")) + ".fits", want = folder_ / "want.fits";
    ASSERT_EQ(
        Spex({"-i", In(input), "-p", frame_->psf(), "-n", "5", "--device", "cpu", "-q", "-o", want}).code, 0);
    EXPECT_TRUE(ReadBytes(want) == ReadBytes(Out(name))) << input;
  }
  nlohmann::json Frames() const { return nlohmann::json::parse(ReadBytes(folder_ / "night.json"))["frames"]; }
  std::map<std::string, int> States() const {
    std::map<std::string, int> states;
    const nlohmann::json frames = Frames();
    for (const auto& frame : frames) ++states[frame["state"]];
    return states;
  }
  // Returns the names in the output folder, including hidden ones.
  std::vector<std::string> Outputs() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_ / "out"))
      names.push_back(entry.path().filename());
    return names;
  }
  using Counts = std::map<std::string, int>;

  static inline SmallFrame* frame_ = nullptr;
  static inline TempFolder* other_ = nullptr;  // contains another frame of r0
  TempFolder folder_;
  std::unique_ptr<Process> spex_;
};

TEST_F(Watch, ExtractsFramesThatAreThereCopiedRenamedOrWrittenSlowly) {
  fs::copy(frame_->image(), In("there.fits"));
  Start();
  ExpectLine("frame-there.fits");
  fs::copy(frame_->image(), In("copied.fits"));
  ExpectLine("frame-copied.fits");
  fs::copy(frame_->image(), folder_ / "in/.preproc-renamed.fits.Qr7x");
  fs::rename(folder_ / "in/.preproc-renamed.fits.Qr7x", In("renamed.fits"));
  ExpectLine("frame-renamed.fits");
  const std::string bytes = ReadBytes(frame_->image());
  {
    std::ofstream slowly(In("slow.fits"), std::ios::binary);
    const size_t piece = bytes.size() / 4;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      slowly << bytes.substr(at, piece) << std::flush;
      // Other frames do not wait for the slow one.
      const std::string name = "beside" + std::to_string(at / piece) + ".fits";
      fs::copy(frame_->image(), In(name));
      ExpectLine("frame-" + name);
    }
  }
  ExpectLine("frame-slow.fits");
  EXPECT_EQ(Stop(), 0) << spex_->output();
  EXPECT_EQ(States()["written"], static_cast<int>(Frames().size()));
  for (const char* name : {"there.fits", "copied.fits", "renamed.fits", "slow.fits"}) ExpectRight(name);
  EXPECT_EQ(Outputs().size(), Frames().size() + 1);  // the frames and the record
}

TEST_F(Watch, WaitsForTheRestOfATruncatedFrame) {
  const std::string bytes = ReadBytes(frame_->image());
  Start();
  WriteBytes(In("half.fits"), bytes.substr(0, bytes.size() / 2));
  fs::copy(frame_->image(), In("whole.fits"));
  ExpectLine("frame-whole.fits");
  WriteBytes(In("half.fits"), bytes);
  ExpectLine("frame-half.fits");
  WriteBytes(In("never.fits"), bytes.substr(0, bytes.size() / 2));
  EXPECT_EQ(Stop(), 0) << spex_->output();
  ExpectRight("half.fits");
  EXPECT_THAT(States(), ::testing::Contains(Pair("written", 2)));
  EXPECT_FALSE(fs::exists(Out("never.fits")));
}

TEST_F(Watch, ExtractsNewContentAgainAndTheSameContentNot) {
  Start();
  fs::copy(frame_->image(), In("1.fits"));
  ExpectLine("Wrote " + Out("1.fits"));
  fs::copy(*other_ / "preproc-r0.fits", In("1.fits"), fs::copy_options::overwrite_existing);
  ExpectLine("Wrote " + Out("1.fits"));
  fs::copy(*other_ / "preproc-r0.fits", In("1.fits"), fs::copy_options::overwrite_existing);
  ExpectLine("Skipped " + Out("1.fits"));
  EXPECT_EQ(Stop(), 0) << spex_->output();
  EXPECT_EQ(States(), (Counts{{"written", 1}}));
  ExpectRight("1.fits");
}

TEST_F(Watch, NamesTheCameraWhosePsfIsMissingAndExtractsTheOthers) {
  Start();
  std::string bytes = ReadBytes(frame_->image());
  const std::string card = "CAMERA  = 'r0";
  ASSERT_NE(bytes.find(card), std::string::npos);
  for (size_t at = bytes.find(card); at != std::string::npos; at = bytes.find(card, at + 1)) {
    bytes[at + card.size() - 1] = '7';
  }
  WriteBytes(In("r7.fits"), bytes);
  ExpectLine("preproc-r7.fits: is of camera r7, whose PSF is not given; add --psf-for r7=FILE");
  fs::copy(frame_->image(), In("r0.fits"));
  ExpectLine("frame-r0.fits");
  EXPECT_EQ(Stop(), cli::kUsage);
  EXPECT_EQ(States(), (Counts{{"failed", 1}, {"written", 1}}));
}

TEST_F(Watch, ExtractsAHundredFramesThatAppearAtOnceAndEndsWithItsReport) {
  Start();
  for (int k = 0; k < 100; ++k) fs::copy(frame_->image(), In(std::to_string(k) + ".fits"));
  for (int k = 0; k < 100; ++k) ExpectLine("Wrote ");
  EXPECT_EQ(Stop(), 0);
  EXPECT_THAT(spex_->output(), HasSubstr("100 of 100 frames written"));
  EXPECT_EQ(States(), (Counts{{"written", 100}}));
}

TEST_F(Watch, IsStoppedInTheMiddleAndGoesOnWithTheNextCommand) {
  constexpr int kFrames = 20;
  for (int k = 0; k < kFrames; ++k) fs::copy(frame_->image(), In(std::to_string(k) + ".fits"));
  Start();
  ExpectLine("Wrote ");
  EXPECT_EQ(Stop(), 0) << spex_->output();
  const int written = States()["written"];
  EXPECT_EQ(States()["not reached"], kFrames - written);
  EXPECT_THAT(Outputs(), Each(AnyOf(StartsWith("frame-"), "spex-night.jsonl")));
  EXPECT_EQ(Outputs().size(), static_cast<size_t>(written + 1));
  Start();
  for (int k = 0; k < kFrames; ++k) ExpectLine(folder_ / "out/frame-");
  EXPECT_EQ(Stop(), 0) << spex_->output();
  EXPECT_EQ(States(), (Counts{{"skipped", written}, {"written", kFrames - written}}));
}

TEST_F(Watch, TriesAFrameAgainThatFoundTheDiskFull) {
  Start({}, {.max_file_bytes = 8192});
  fs::copy(frame_->image(), In("1.fits"));
  ExpectLine("trying again in 30 s");
  EXPECT_EQ(Stop(), cli::kInternal);
  EXPECT_THAT(Outputs(), ElementsAre("spex-night.jsonl"));
  Start();
  ExpectLine("Wrote " + Out("1.fits"));
  EXPECT_EQ(Stop(), 0);
}

TEST_F(Watch, EndsWithAnErrorWhenTheFolderIsRemoved) {
  Start();
  fs::copy(frame_->image(), In("1.fits"));
  ExpectLine("Wrote ");
  fs::remove_all(folder_ / "in");
  EXPECT_EQ(spex_->Wait(), cli::kUsage);
  EXPECT_THAT(spex_->output(), HasSubstr("in was removed or renamed; the watch has ended"));
  EXPECT_EQ(States(), (Counts{{"written", 1}}));
}

TEST_F(Watch, RefusesFlagsThatDoNotFit) {
  const auto error = [this](const std::vector<std::string>& flags) {
    const RunResult run = Spex(Joined({"night"}, flags));
    EXPECT_EQ(run.code, cli::kUsage) << run.output;
    return run.output;
  };
  const std::vector<std::string> watch = {"--watch", folder_ / "in", "--output-dir", folder_ / "out"};
  EXPECT_THAT(error({}), HasSubstr("name a list of frames, or a folder"));
  error(Joined(watch, {"list.txt", "--psf-for", "r0=" + frame_->psf()}));
  EXPECT_THAT(error(watch), HasSubstr("--psf-for"));
  EXPECT_THAT(error(Joined(watch, {"--psf-for", "r0"})), HasSubstr("such as r0=psf-r0.fits"));
  EXPECT_THAT(error(Joined(watch, {"--psf-for", "r0=a.fits"})), HasSubstr("a.fits"));
  WritePsfOfCamera(frame_->psf(), "R3", folder_ / "r3.fits");
  EXPECT_THAT(error(Joined(watch, {"--psf-for", "b1=" + (folder_ / "r3.fits")})),
              HasSubstr("is of camera r3"));
  EXPECT_THAT(error(Joined(watch, {"--psf-for", "r0=" + frame_->psf(), "--psf-for", "R0=b.fits"})),
              HasSubstr("both of camera r0"));
}

// Exposures of two cameras of one spectrograph.
TEST(WatchedExposures, AreMadeAsSoonAsAllCamerasAreThereAndAgainForANewFrame) {
  const TempFolder folder;
  for (const char* seed : {"5", "6"}) {
    for (const char* camera : {"b", "r"}) {
      ASSERT_EQ(Spex({"simulate", "--camera", camera, "--fibres", "20", "--rows", "240", "--exposures", "1",
                      "--seed", seed, "--sky-fibres", "4", "--emitters", "16", "--holes", "0", "--out-dir",
                      folder / seed})
                    .code,
                0);
    }
  }
  const auto image = [&](const std::string& seed, const std::string& camera) {
    for (const auto& entry : fs::directory_iterator(folder / seed)) {
      if (entry.path().filename().string().starts_with("preproc-" + camera)) return entry.path();
    }
    return fs::path();
  };
  fs::create_directory(folder / "in");
  Process spex({BinFolder() + "/spex", "night", "--watch", folder / "in", "--output-dir", folder / "out",
                "--psf-for", "b0=" + (folder / "5/psf-b0.fits"), "--psf-for",
                "r0=" + (folder / "5/psf-r0.fits"), "--products", "sky,sframe,exposure-redshifts", "--device",
                "cpu", "--progress", "lines"});
  const auto exposures = [&] {
    std::ifstream file(folder / "out/spex-night.jsonl");
    int count = 0;
    for (std::string line; std::getline(file, line);) {
      const auto record = nlohmann::json::parse(line, nullptr, false);
      count += record.is_object() && record["kind"] == "exposure" && record["frames"].size() == 2 ? 1 : 0;
    }
    return count;
  };
  const auto arrive = [&](const char* seed, const char* camera) {
    fs::copy(image(seed, camera), fs::path(folder / "in") / image(seed, camera).filename(),
             fs::copy_options::overwrite_existing);
    return spex.WaitForLine("Wrote ");
  };
  ASSERT_TRUE(spex.WaitForLine("Watching "));
  ASSERT_TRUE(arrive("5", "b")) << spex.output();
  EXPECT_EQ(exposures(), 0);
  ASSERT_TRUE(arrive("5", "r")) << spex.output();
  EXPECT_TRUE(Eventually([&] { return exposures() == 1; }));
  ASSERT_TRUE(arrive("6", "r")) << spex.output();
  EXPECT_TRUE(Eventually([&] { return exposures() == 2; }));
  spex.Signal(SIGTERM);
  EXPECT_EQ(spex.Wait(), 0) << spex.output();
}

}  // namespace
}  // namespace spexd::testing
