// spex night: the frames of a list, each extracted once, whatever ends the program on the way.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "client/cli/night/night_list.h"
#include "client/cli/batch/record_file.h"
#include "client/cli/terminal/exit_code.h"
#include "tests/client/support/small_frame.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

constexpr int kFrames = 8;

// A list of frames 00.fits, 01.fits, ... for one PSF, in the folder out.
class Night : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { frame_ = new SmallFrame(); }
  static void TearDownTestSuite() { delete frame_; }

  Night() {
    std::string text = "# a night\nexpid image psf output\n\n";
    for (int k = 0; k < kFrames; ++k) {
      std::filesystem::copy(frame_->image(), Image(k));
      text += std::to_string(k) + " " + Image(k) + " " + frame_->psf() + " " + Output(k) + "  # frame\n";
    }
    WriteBytes(folder_ / "night.txt", text);
  }
  std::string Image(int k) const { return folder_ / ("preproc-" + std::to_string(k) + ".fits"); }
  std::string Output(int k) const { return folder_ / ("out/" + std::to_string(k) + ".fits"); }
  std::vector<std::string> Command(const std::vector<std::string>& more = {}) const {
    return Joined({"night", folder_ / "night.txt", "--progress", "lines", "--json", folder_ / "night.json"},
                  more);
  }
  // Expects that each output equals what `spex extract` would write for 5 fibres.
  void ExpectAllRight() const {
    for (int k = 0; k < kFrames; ++k) {
      const std::string want = folder_ / "want.fits";
      ASSERT_EQ(
          Spex({"-i", Image(k), "-p", frame_->psf(), "-n", "5", "--device", "cpu", "-q", "-o", want}).code,
          0);
      EXPECT_TRUE(ReadBytes(want) == ReadBytes(Output(k))) << k;
    }
  }
  // Returns how often the record names each output.
  std::map<std::string, int> Recorded() const {
    std::map<std::string, int> times;
    std::ifstream file(folder_ / "out/spex-night.jsonl");
    for (std::string line; std::getline(file, line);) {
      const auto record = nlohmann::json::parse(line, nullptr, false);
      if (record.is_object()) ++times[record["output"]];
    }
    return times;
  }
  std::map<std::string, int> States() const {
    std::map<std::string, int> states;
    const auto night = nlohmann::json::parse(ReadBytes(folder_ / "night.json"));
    for (const auto& frame : night["frames"]) {
      ++states[frame["state"]];
    }
    return states;
  }
  // Returns the number of files in the output folder.
  int64_t FilesOut() const { return std::distance(std::filesystem::directory_iterator(folder_ / "out"), {}); }
  using Counts = std::map<std::string, int>;

  static inline SmallFrame* frame_ = nullptr;
  TempFolder folder_;
};

const std::vector<std::string> kFiveFibres = {"-n", "5", "--device", "cpu", "--in-flight", "1"};

TEST_F(Night, GoesOnAfterKillsAndMakesEveryFrameOnce) {
  std::vector<std::string> command = Command(kFiveFibres);
  command.insert(command.begin(), BinFolder() + "/spex");
  for (int kills = 0; kills < 2; ++kills) {
    Process spex(command);
    ASSERT_TRUE(spex.WaitForLine("Wrote ")) << spex.output();
    spex.Signal(SIGKILL);
    EXPECT_EQ(spex.Wait(), 128 + SIGKILL);
  }
  EXPECT_THAT(Spex(Command(kFiveFibres)), ExitsWith(0));
  const int skipped = States()["skipped"];
  EXPECT_GE(skipped, 2);
  EXPECT_EQ(States()["written"], kFrames - skipped);
  EXPECT_EQ(Recorded().size(), kFrames);
  for (const auto& [output, times] : Recorded()) EXPECT_EQ(times, 1) << output;
  ExpectAllRight();
  EXPECT_EQ(FilesOut(), kFrames + 1);  // the frames and the record
  EXPECT_THAT(Spex(Command(kFiveFibres)), ExitsWith(0, HasSubstr("0 of 8 frames written, 8 skipped")));
  EXPECT_EQ(States(), (Counts{{"skipped", kFrames}}));
}

TEST_F(Night, RemovesWhatKilledProcessesLeftOfItsOutputsAndNothingElse) {
  ASSERT_EQ(Spex(Command(kFiveFibres)).code, 0);
  std::filesystem::remove(Output(1));
  WriteBytes(folder_ / "out/.0.fits.spexd-1dcb9ee0", "left of a frame that is there");
  WriteBytes(folder_ / "out/.1.fits.spexd-1dcb9ee0", "left of a frame that is missing");
  WriteBytes(folder_ / "out/.0.fits.1dcb9ee0", "somebody's");
  WriteBytes(folder_ / "out/.other.fits.spexd-1dcb9ee0", "somebody's");
  ASSERT_EQ(Spex(Command(kFiveFibres)).code, 0);
  EXPECT_EQ(States(), (Counts{{"skipped", kFrames - 1}, {"written", 1}}));
  EXPECT_EQ(FilesOut(), kFrames + 1 + 2);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "out/.0.fits.1dcb9ee0"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "out/.other.fits.spexd-1dcb9ee0"));
}

TEST_F(Night, IsSharedByTwoAtOnceWithEveryFrameMadeOnce) {
  std::vector<std::string> command = Command(kFiveFibres);
  command.insert(command.begin(), BinFolder() + "/spex");
  Process first(command), second(command);
  EXPECT_EQ(first.Wait(), 0) << first.output();
  EXPECT_EQ(second.Wait(), 0) << second.output();
  EXPECT_EQ(Recorded().size(), kFrames);
  for (const auto& [output, times] : Recorded()) EXPECT_EQ(times, 1) << output;
  ExpectAllRight();
}

TEST_F(Night, MakesAgainWhatIsDamagedGoneOrOfOtherInputsOrSettings) {
  ASSERT_EQ(Spex(Command(kFiveFibres)).code, 0);
  std::string damaged = ReadBytes(Output(0));
  damaged[damaged.size() / 2] ^= 1;
  WriteBytes(Output(0), damaged);
  std::filesystem::remove(Output(1));
  const TempFolder other;
  ASSERT_EQ(
      Spex({"simulate", "--fibres", "30", "--rows", "160", "--seed", "9", "--out-dir", other.path()}).code,
      0);
  std::filesystem::copy(other / "preproc-r0.fits", Image(2),
                        std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(Spex(Command(kFiveFibres)).code, 0);
  EXPECT_EQ(States(), (Counts{{"skipped", kFrames - 3}, {"written", 3}}));
  ExpectAllRight();
  EXPECT_EQ(Spex(Command({"-n", "6", "--device", "cpu"})).code, 0);
  EXPECT_EQ(States(), (Counts{{"written", kFrames}}));
}

TEST_F(Night, IsDividedIntoPartsAndServersGiveTheSameFiles) {
  TestServer server({"--allow-root", std::filesystem::temp_directory_path().string()});
  TestServer other({"--allow-root", std::filesystem::temp_directory_path().string()});
  const std::string servers = server.address() + "," + other.address();
  for (const char* part : {"1/2", "2/2"}) {
    EXPECT_THAT(Spex(Command({"-n", "5", "--server", servers, "--part", part})), ExitsWith(0));
    EXPECT_EQ(States(), (Counts{{"written", kFrames / 2}}));
  }
  ExpectAllRight();
}

TEST_F(Night, NamesWhatFailsAndMakesTheOthers) {
  WriteBytes(Image(3), "no frame");
  std::filesystem::remove(Image(4));
  const RunResult run = Spex(Command({"-n", "5", "--device", "cpu", "--plot", folder_ / "night.png"}));
  EXPECT_EQ(run.code, cli::kUsage) << run.output;
  EXPECT_EQ(States(), (Counts{{"failed", 2}, {"written", kFrames - 2}}));
  EXPECT_THAT(run.output, HasSubstr("preproc-3.fits: is not a FITS file"));
  EXPECT_THAT(run.output, HasSubstr("preproc-4.fits: No such file"));
  EXPECT_THAT(run.output, HasSubstr("chi2pix"));
  EXPECT_THAT(ReadBytes(folder_ / "night.png"), StartsWith("\x89PNG"));
}

TEST_F(Night, ReplacesNeitherItsListNorItsFilesByReports) {
  const std::string list = ReadBytes(folder_ / "night.txt");
  EXPECT_THAT(Spex(Command({"--report", folder_ / "night.txt"})),
              ExitsWith(cli::kUsage, HasSubstr("night.txt is the list")));
  EXPECT_THAT(Spex(Command({"--report", Image(3)})),
              ExitsWith(cli::kUsage, HasSubstr("preproc-3.fits is an image of the list")));
  EXPECT_EQ(ReadBytes(folder_ / "night.txt"), list);
}

TEST_F(Night, TellsOfBadFitsAlsoWhenTheFramesAreSkipped) {
  std::vector<std::string> command = Joined(kFiveFibres, {"--max-chi2pix", "0.1"});
  for (const char* state : {"written", "skipped"}) {
    const RunResult run = Spex(Command(command));
    EXPECT_EQ(run.code, cli::kDifferent);
    EXPECT_EQ(States(), (Counts{{state, kFrames}}));
    EXPECT_THAT(run.output, HasSubstr("preproc-3.fits: the largest median chi2pix"));
    EXPECT_THAT(run.output, HasSubstr("bad fits"));
  }
  const auto night = nlohmann::json::parse(ReadBytes(folder_ / "night.json"));
  const auto& frame = night["frames"][0];
  EXPECT_FALSE(frame["bad_fit"]);
  EXPECT_GE(frame["largest_chi2pix"], frame["chi2pix"]);
  EXPECT_GE(frame["outliers_chi2pix"], 0);
}

TEST(NightLists, MayBeginWithAByteOrderMark) {
  const auto rows = cli::ParseNightList("\xEF\xBB\xBFimage psf output\na b c\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->front().image, "a");
}

TEST(NightLists, NameTheLineOfAnError) {
  const auto error = [](const std::string& text) {
    return std::string(cli::ParseNightList(text).status().message());
  };
  EXPECT_THAT(error("image psf\n"), HasSubstr("line 1: the column output is missing"));
  EXPECT_THAT(error("# x\nimage psf output flux\n"), HasSubstr("line 2: no column is called flux"));
  EXPECT_THAT(error("image psf output image\n"), HasSubstr("the column image stands there twice"));
  EXPECT_THAT(error("image psf output\na b\n"), HasSubstr("line 2: 2 columns, must be 3"));
  EXPECT_THAT(error("image psf output\na b -\n"), HasSubstr("line 2: output is -"));
  EXPECT_THAT(error("image psf output\n"), HasSubstr("no frames"));
  const auto rows = cli::ParseNightList("image psf output model\na p o -\nb p q m # last\r\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ((*rows)[0].model, "");
  EXPECT_EQ((*rows)[1].model, "m");
  for (const char* part : {"0/2", "3/2", "1", "a/b"}) EXPECT_FALSE(cli::ParseNightPart(part).ok()) << part;
}

TEST(RecordFiles, OutliveATornLineAndKeepClaimsApart) {
  const TempFolder folder;
  WriteBytes(folder / cli::kRecordName, "{\"output\": \"a\", \"n\": 1}\n{\"output\": \"b\"");
  const auto one = *cli::RecordFile::Open(folder.path()), two = *cli::RecordFile::Open(folder.path());
  EXPECT_TRUE(one->Find("a")->has_value());
  EXPECT_FALSE(one->Find("b")->has_value());
  ASSERT_TRUE(two->Add({{"output", "c"}, {"n", 2}}).ok());
  EXPECT_EQ((**one->Find("c"))["n"], 2);
  EXPECT_TRUE(one->IsOfOthers("c"));
  EXPECT_FALSE(one->IsOfOthers("a"));  // it is of an earlier run
  EXPECT_TRUE(two->Find("c")->has_value());
  EXPECT_FALSE(two->IsOfOthers("c"));
  EXPECT_TRUE(*one->Claim("x"));
  EXPECT_FALSE(*two->Claim("x"));
  EXPECT_FALSE(*one->Claim("x"));  // another thread has claimed it
  EXPECT_TRUE(*two->Claim("y"));
  one->Release("x");
  EXPECT_TRUE(*two->Claim("x"));
}

}  // namespace
}  // namespace spexd::testing
