// spex load as a user runs it, on its own server.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/fits/hdu/output_file.h"
#include "tests/client/support/small_frame.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

class SpexLoad : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    input_ = new SmallFrame();
    server_ = new TestServer({"--allow-root", input_->folder(), "--threads", "2", "--device", "cpu"});
    ASSERT_TRUE(WriteFileAtomically(Gzipped(), ReadBytes(input_->image())).ok());
  }
  static void TearDownTestSuite() {
    delete server_;
    delete input_;
  }

  static std::string Gzipped() { return input_->folder() + "/preproc-r0.fits.gz"; }
  static RunResult LoadOn(const std::string& fibres, std::vector<std::string> more) {
    more.insert(more.begin(), {"load", "--server", server_->address(), "-p", input_->psf(), "-w",
                               "6618,6662,0.8", "-n", fibres});
    return Spex(more);
  }
  // Runs a few frames of 5 fibres on 55 bins.
  static RunResult Load(std::vector<std::string> more, const std::string& fibres = "5") {
    more.insert(more.end(), {"--frames", "3", "--ceiling-seconds", "0"});
    return LoadOn(fibres, more);
  }
  // Runs such frames, which arrive at random.
  static RunResult LoadAtRate(const std::string& rate, std::vector<std::string> more) {
    more.insert(more.end(),
                {"-i", input_->image(), "--by", "upload", "--no-ceiling", "--rate", rate, "--seed", "7"});
    return LoadOn("5", more);
  }

  static inline SmallFrame* input_ = nullptr;
  static inline TestServer* server_ = nullptr;
};

TEST_F(SpexLoad, TimesEveryFileWayAndNumberOfClients) {
  const TempFolder folder;
  const RunResult run = Load({"-i", input_->image(), Gzipped(), "--clients", "1,2", "--folder",
                              input_->folder(), "--json", folder / "load.json"});
  ASSERT_THAT(run,
              ExitsWith(0, AllOf(HasSubstr("$ spex load --server"), HasSubstr("5 fibres x 56 bins"),
                                 HasSubstr("cpu, "), HasSubstr("| decoding alone"), HasSubstr("| eliminate "),
                                 HasSubstr("preproc-r0.fits.gz by upload, 2 clients, 3 frames: "))));
  const nlohmann::json json = nlohmann::json::parse(ReadBytes(folder / "load.json"));
  ASSERT_THAT(json.at("rows"), SizeIs(8));
  std::vector<std::string> rows;
  for (const nlohmann::json& row : json.at("rows")) {
    rows.push_back(row.at("frame").get<std::string>().substr(input_->folder().size() + 1) + " " +
                   row.at("by").get<std::string>() + " " + row.at("clients").dump());
    EXPECT_EQ(row.at("frames"), 3);
    EXPECT_THAT(row.at("jobs"), SizeIs(3));
    for (const nlohmann::json& job : row.at("jobs")) {
      EXPECT_GT(job.at("stages").at("decode"), 0);
      EXPECT_GT(job.at("stages").at("spots"), 0);
      EXPECT_LE(job.at("first_bundle"), job.at("wall"));
      EXPECT_LE(job.at("run"), job.at("wall"));
    }
  }
  EXPECT_THAT(
      rows, ElementsAre("preproc-r0.fits path 1", "preproc-r0.fits path 2", "preproc-r0.fits upload 1",
                        "preproc-r0.fits upload 2", "preproc-r0.fits.gz path 1", "preproc-r0.fits.gz path 2",
                        "preproc-r0.fits.gz upload 1", "preproc-r0.fits.gz upload 2"));
  EXPECT_THAT(json.at("decoding"), SizeIs(2));
  EXPECT_GT(json.at("decoding").at(1).at("frames_per_second"), 0);
  EXPECT_EQ(json.at("server").at("max_running_jobs"), 2);
  for (const auto& entry : std::filesystem::directory_iterator(input_->folder())) {
    EXPECT_FALSE(entry.is_directory()) << entry.path() << " was left behind";
  }
}

TEST_F(SpexLoad, GivesTheServerAPsfItHasNotSeenEachTime) {
  ASSERT_THAT(Load({"-i", input_->image(), "--by", "upload", "--clients", "2", "--no-ceiling", "-q"}),
              ExitsWith(0, AllOf(Not(HasSubstr("decoding alone")), Not(HasSubstr("to warm up")))));
  const RunResult list = Spex({"psf", "list", "--server", server_->address()});
  EXPECT_THAT(list.output, AllOf(HasSubstr(", 1 grids,"), Not(HasSubstr(", 2 grids,"))));
}

TEST_F(SpexLoad, TimesJobsThatAskForProducts) {
  const TempFolder folder;
  ASSERT_THAT(Load({"-i", input_->image(), "--by", "upload", "--clients", "2", "--no-ceiling", "--sky",
                    "--lines", "--json", folder / "load.json"},
                   "30"),
              ExitsWith(0, AllOf(HasSubstr("own PSF\n"), HasSubstr(" sky "), HasSubstr(" lines "))));
  const nlohmann::json json = nlohmann::json::parse(ReadBytes(folder / "load.json"));
  for (const nlohmann::json& job : json.at("rows").at(0).at("jobs")) {
    EXPECT_GT(job.at("stages").at("sky"), 0);
    EXPECT_GT(job.at("stages").at("lines"), 0);
  }
  const RunResult wrong = Load({"-i", input_->image(), "--by", "upload", "--clients", "1", "--no-ceiling",
                                "--sky", "--fiberflat", input_->psf()},
                               "30");
  EXPECT_NE(wrong.code, 0);
  EXPECT_THAT(wrong.output, HasSubstr("preproc-r0.fits: sky: "));
  EXPECT_THAT(Load({"-i", input_->image(), "--fiberflat", input_->psf()}),
              ExitsWith(2, HasSubstr("--fiberflat: no product is asked for")));
}

TEST_F(SpexLoad, SaysHowToMoveThePsfsThatTheServerMayNotRead) {
  EXPECT_THAT(Load({"-i", input_->image(), "--by", "path", "--clients", "1", "--no-ceiling"}),
              ExitsWith(2, AllOf(HasSubstr("lies outside the allowed roots"), HasSubstr("--folder"))));
}

TEST_F(SpexLoad, LetsJobsArriveAtRandom) {
  const TempFolder folder;
  ASSERT_THAT(LoadAtRate("20", {"--seconds", "1", "--json", folder / "load.json"}),
              ExitsWith(0, AllOf(HasSubstr("(--seed 7), at most 64 at once"), HasSubstr("whole p50"))));
  const nlohmann::json row =
      nlohmann::json::parse(ReadBytes(folder / "load.json")).at("arrivals").at("rows").at(0);
  const int jobs = static_cast<int>(row.at("jobs").size());
  EXPECT_GT(jobs, 5);
  EXPECT_EQ(row.at("done").get<int>() + row.at("refused").get<int>() + row.at("failed").get<int>(), jobs);
  EXPECT_EQ(row.at("failed"), 0) << row.at("first_error");
  EXPECT_LE(row.at("whole").at("p50"), row.at("whole").at("p99"));
}

TEST_F(SpexLoad, SearchesTheHighestRateWithinALatency) {
  ASSERT_THAT(LoadAtRate("100", {"--seconds", "0.1", "--latency-goal", "0.001"}),
              ExitsWith(0, HasSubstr("99 % of the jobs within 0.001 s at no rate that was tried")));
}

TEST_F(SpexLoad, NamesWhatIsWrong) {
  const std::string image = input_->image();
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"-i", image, "--by", "mail"}, "--by"},
      {{"-i", image, "--clients", "0"}, "--clients"},
      {{"-i", image, "--clients", "1,many"}, "--clients"},
      {{"-i", image, "--clients", "4"}, "--frames: 3, must be at least 4"},
      {{"-i", image, "--threads", "-1"}, "--threads"},
      {{"-i", image, "--clients", "1", "--json", "/nowhere/load.json"}, "/nowhere/load.json"},
      {{"-i", image, "--clients", "1", "--folder", "/nowhere"}, "/nowhere"},
      {{"-i", "/nowhere/frame.fits", "--clients", "1"}, "/nowhere/frame.fits"},
      {{"-i", input_->psf(), "--clients", "1"}, "there is no HDU IMAGE"},
      {{"--clients", "1"}, "--input"},
      {{"-i", image, "--rate", "5"}, "--frames"},
      {{"-i", image, "--latency-goal", "5"}, "--rate"},
      {{"-i", image, "--seconds", "5"}, "--rate"},
  };
  for (const auto& [flags, words] : wrong) {
    EXPECT_THAT(Load(flags), ExitsWith(2, HasSubstr(words)));
  }
  const RunResult grid =
      Spex({"load", "--server", server_->address(), "-i", image, "-p", input_->psf(), "-w", "5760,7620,0.8"});
  EXPECT_THAT(grid, ExitsWith(2, HasSubstr("wavelength grid 5760 to 7620")));
}

TEST_F(SpexLoad, SaysWhenNobodyAnswers) {
  EXPECT_THAT(Spex({"load", "--server", "unix:" + input_->folder() + "/nobody", "-i", input_->image(), "-p",
                    input_->psf(), "--clients", "1"}),
              ExitsWith(3, HasSubstr("nobody")));
}

}  // namespace
}  // namespace spexd::testing
