// spex as a user runs it: flags, exit codes, embedded and remote jobs, comparisons and pictures.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/cli/terminal/exit_code.h"
#include "client/cli/terminal/progress.h"
#include "core/base/text.h"
#include "core/fits/readers.h"
#include "core/fits/writers.h"
#include "tests/client/support/small_frame.h"
#include "tests/support/idle_machine.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

using ::testing::Gt;

Frame Read(const std::string& path) {
  const absl::StatusOr<Source> source = Source::FromFile(path);
  EXPECT_TRUE(source.ok()) << source.status();
  absl::StatusOr<Frame> frame = ReadFrame(*source);
  EXPECT_TRUE(frame.ok()) << frame.status();
  return *std::move(frame);
}

// One simulated frame, one extraction of it with a model, and one server, made once for all tests that only
// read them.
class SpexOnAFrame : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    input_ = new SmallFrame();
    outputs_ = new TempFolder();
    server_ = new TestServer({"--allow-root", input_->folder()});
    const RunResult run =
        Spex({"-i", input_->image(), "-p", input_->psf(), "-o", Reference(), "-m", ReferenceModel()});
    reference_output_ = run.output;
    ASSERT_EQ(run.code, 0) << run.output;
  }
  static void TearDownTestSuite() {
    delete server_;
    delete outputs_;
    delete input_;
  }

  static std::string Reference() { return *outputs_ / "reference.fits"; }
  static std::string ReferenceModel() { return *outputs_ / "reference-model.fits"; }
  // Returns the arguments of an extraction of the frame to `output`.
  static std::vector<std::string> Arguments(const std::string& output, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"extract", "-i", input_->image(), "-p", input_->psf(), "-o", output});
    return more;
  }
  static std::vector<std::string> Remote(const std::string& output, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"--server", server_->address()});
    return Arguments(output, more);
  }

  static inline SmallFrame* input_ = nullptr;
  static inline TempFolder* outputs_ = nullptr;
  static inline TestServer* server_ = nullptr;
  static inline std::string reference_output_;
};

TEST(SpexFlags, AnswersHelpAndVersion) {
  const RunResult help = Spex({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* word : {"extract", "traceshifts", "doctor", "compare", "plot", "simulate", "bench", "load", "submit",
                           "watch", "jobs", "cancel", "status", "psf", "Exit codes"}) {
    EXPECT_THAT(help.output, HasSubstr(word));
  }
  EXPECT_THAT(Spex({"--version"}).output, HasSubstr("spex "));
  const RunResult extract = Spex({"extract", "--help"});
  EXPECT_EQ(extract.code, 0);
  const absl::string_view flags =
      "-i --input -p --psf -o --output -m --model -w --wavelength -s --specmin -n --nspec -r --regularize "
      "-f --fibermap --bundlesize --nsubbundles --nwavestep --psferr --pixpad-frac --wavepad-frac "
      "--barycentric-correction --no-scores --no-gpu --server --upload --threads --device --devices "
      "--timeout --quiet --trace-shifts --trace-degrees --trace-required --trace-reference --psf-out";
  for (const absl::string_view flag : absl::StrSplit(flags, ' ')) {
    EXPECT_THAT(extract.output, HasSubstr(std::string(flag)));
  }
}

TEST(SpexFlags, ExitsWith2ForWrongUsage) {
  EXPECT_EQ(Spex({}).code, 2);
  EXPECT_EQ(Spex({"nonsense"}).code, 2);
  EXPECT_EQ(Spex({"-i", "a.fits"}).code, 2);
  EXPECT_EQ(Spex({"-i", "a", "-p", "b", "-o", "c", "--unknown"}).code, 2);
  EXPECT_EQ(Spex({"-i", "a", "-p", "b", "-o", "c", "-s", "many"}).code, 2);
  EXPECT_EQ(Spex({"-i", "a", "-p", "b", "-o", "c", "--device", "tpu"}).code, 2);
  EXPECT_EQ(Spex({"compare", "a"}).code, 2);
  EXPECT_EQ(Spex({"psf"}).code, 2);
  EXPECT_EQ(Spex({"simulate", "--camera", "x"}).code, 2);
}

TEST(SpexFlags, QuotesNamesWithoutControlCharacters) {
  for (const std::string name : {"a\xc2\x85"
                                 "b.fits",
                                 "a\xc2\x9b"
                                 "2Jb.fits",
                                 "a\x1b[2Jb.fits",
                                 "a\xe2\x80\xae"
                                 "b.fits"}) {
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{"-i", name, "-p", name, "-o", "c"},
          std::vector<std::string>{"check", name}, std::vector<std::string>{"status", "--server", name},
          std::vector<std::string>{name}}) {
      const RunResult run = Spex(arguments);
      EXPECT_NE(run.code, 0) << run.output;
      EXPECT_FALSE(HasControlCharacters(absl::StrReplaceAll(run.output, {{"\n", ""}}))) << run.output;
    }
  }
}

TEST(SpexFlags, KnowsWhatIsAskedForWithoutFlags) {
  const RunResult bare = Spex({});
  EXPECT_THAT(bare.output, HasSubstr("Exit codes"));
  EXPECT_EQ(Spex({"help"}).code, 0);
  EXPECT_THAT(Spex({"help", "psf"}).output, HasSubstr("unload"));
  EXPECT_EQ(Spex({"-V"}).output, Spex({"--version"}).output);
  const RunResult slip = Spex({"extrcat"});
  EXPECT_EQ(slip.code, 2);
  EXPECT_EQ(slip.output, "spex: no command is called extrcat; did you mean extract?\n");
  EXPECT_THAT(Spex({"nonsense"}).output, HasSubstr("`spex help` lists them"));
}

TEST(SpexFlags, NamesTheFlagThatWasMeant) {
  const struct {
    std::vector<std::string> arguments;
    std::string message;
  } cases[] = {
      {{"-i", "a", "-p", "b", "-o", "c", "--wavelenght", "1,2,3"},
       "spex extract has no flag --wavelenght; did you mean --wavelength?"},
      {{"extract", "--psff=b"}, "spex extract has no flag --psff; did you mean --psf?"},
      {{"night", "list", "--barycentric"},
       "spex night has no flag --barycentric; did you mean --barycentric-correction?"},
      {{"plot", "--nonsense"}, "spex plot has no flag --nonsense; `spex plot --help` lists them"},
      {{"psf", "list", "--jsn"}, "spex psf list has no flag --jsn; did you mean --json?"},
      {{"psf", "laod", "a.fits"}, "spex psf has no command laod; did you mean load?"},
  };
  for (const auto& c : cases) {
    const RunResult run = Spex(c.arguments);
    EXPECT_EQ(run.code, 2);
    EXPECT_EQ(run.output, "spex: " + c.message + "\n");
  }
}

TEST(SpexFlags, HasASecondNameBesideAnotherProgramOfTheFirst) {
  Process second({BinFolder() + "/spexd-extract", "--version"});
  EXPECT_EQ(second.Wait(), 0);
  EXPECT_EQ(second.output(), Spex({"--version"}).output);
}

TEST(SpexFlags, SayWhyTheyAreRefused) {
  for (const char* flag : {"--use-specter", "--decorrelate-fibers"}) {
    EXPECT_THAT(Spex({"-i", "a", "-p", "b", "-o", "c", flag}),
                ExitsWith(2, HasSubstr(std::string("spex: ") + flag + ": ")));
  }
  ProcessOptions rank;
  rank.environment = {"PMI_SIZE=20"};
  EXPECT_THAT(Spex({"-i", "a", "-p", "b", "-o", "c", "--mpi"}, rank),
              ExitsWith(2, HasSubstr("--mpi: PMI_SIZE is 20")));
}

TEST(SpexFlags, ExitsWith3WhereNoServerListens) {
  const TempFolder folder;
  const RunResult status = Spex({"status", "--server", "unix:" + folder.path() + "/none"});
  EXPECT_EQ(status.code, 3);
  EXPECT_EQ(status.output, "spex: spexd at unix:" + folder.path() +
                               "/none: there is no such socket; check its path, and that spexd runs\n");
  EXPECT_THAT(Spex({"status", "--server", "localhost"}),
              ExitsWith(2, HasSubstr("has no port; give host:port, such as localhost:50051")));
  EXPECT_THAT(Spex({"--timeout", "20", "--server", "unix:" + folder.path() + "/none", "-i", "a", "-p", "b",
                    "-o", folder / "frame.fits"}),
              ExitsWith(3, HasSubstr("trying again")));
  EXPECT_THAT(folder.Entries(), ElementsAre());
}

TEST(ExitCodes, FollowTheStatus) {
  EXPECT_EQ(cli::ExitCodeOf(absl::OkStatus()), 0);
  EXPECT_EQ(cli::ExitCodeOf(absl::InvalidArgumentError("")), 2);
  EXPECT_EQ(cli::ExitCodeOf(absl::PermissionDeniedError("")), 2);
  EXPECT_EQ(cli::ExitCodeOf(absl::ResourceExhaustedError("")), 3);
  EXPECT_EQ(cli::ExitCodeOf(absl::DeadlineExceededError("")), 3);
  EXPECT_EQ(cli::ExitCodeOf(absl::DataLossError("")), 4);
  EXPECT_EQ(cli::ExitCodeOf(absl::CancelledError("")), 130);
}

TEST(ProgressBar, ShowsBundlesSpectraAndWhenItEnds) {
  const std::string bar = cli::FormatBar({"extracting", 5, 20, 125, 12.0, 10.0}, false);
  EXPECT_THAT(bar, HasSubstr("[######------------------]  25 %"));
  EXPECT_THAT(bar, HasSubstr("5/20 bundles  125 spectra  12.0 s  ETA 30.0 s"));
  EXPECT_LE(cli::FormatBar({"extracting", 19, 20, 475, 1000, 900, 80}, false).size(), 80u);
  EXPECT_THAT(cli::FormatBar({"extracting", 20, 20, 500, 12.0, 10.0}, true), Not(HasSubstr("ETA")));
  EXPECT_THAT(cli::FormatBar({"queued", 0, 0, 0, 75, 0}, true), HasSubstr("queued      1:15 min"));
}

TEST(ProgressBar, FitsIntoNarrowTerminals) {
  for (const bool unicode : {false, true}) {
    for (int columns = 9; columns <= 120; ++columns) {
      const std::string bar = cli::FormatBar({"extracting", 19, 20, 475, 1000, 900, columns}, unicode);
      const auto characters =
          std::count_if(bar.begin(), bar.end(), [](char c) { return (c & 0xc0) != 0x80; });
      EXPECT_LT(characters, columns) << bar;
      EXPECT_THAT(bar, HasSubstr("95 %"));
    }
  }
}

TEST_F(SpexOnAFrame, PrintsALineForEachBundleAndHowWellThePsfFits) {
  EXPECT_THAT(reference_output_, HasSubstr("Done preproc-r0.fits spectra 0:25\n"));
  EXPECT_THAT(reference_output_, HasSubstr("Done preproc-r0.fits spectra 25:30\n"));
  for (const char* word : {"Wrote", "30 spectra", "Fit: median chi2pix 0.", "; worst fibres ", "Total"})
    EXPECT_THAT(reference_output_, HasSubstr(word));
  for (const char* word : {"eliminate", "Flux residual", "Root error", "warning"})
    EXPECT_THAT(reference_output_, Not(HasSubstr(word)));
}

TEST_F(SpexOnAFrame, PrintsStagesAndErrorsOfTheSolutionIfVerbose) {
  const TempFolder folder;
  for (const RunResult& run : {Spex(Arguments(folder / "here.fits", {"-n", "3", "-v"})),
                               Spex(Remote(folder / "there.fits", {"-n", "3", "--verbose"}))}) {
    for (const char* word : {"decode", "spots", "eliminate", "Flux residual", "Root error"})
      EXPECT_THAT(run.output, HasSubstr(word));
  }
}

TEST_F(SpexOnAFrame, WarnsOfAPsfWhoseTracesAreOffHereAndOnAServer) {
  const TempFolder folder;
  const std::string psf = folder / "psf.fits", frame = folder / "frame.fits";
  WriteShiftedPsf(input_->psf(), 0.5, psf);
  const std::vector<std::string> command = {"-i", input_->image(), "-p", psf, "-o", frame, "--quiet"};
  const RunResult here = Spex(command);
  EXPECT_THAT(
      here,
      ExitsWith(0, AllOf(StartsWith("spex: warning: image and PSF do not fit each other: median chi2pix "),
                         HasSubstr("Use the PSF of this exposure"))));
  EXPECT_EQ(Spex(Joined(command, {"--upload", "--server", server_->address()})).output, here.output);
  const Frame written = ReadFrame(Source::FromFile(frame).value()).value();
  EXPECT_GT(written.origin.chi2pix_median, 1);
  ASSERT_TRUE(written.scores.has_value());
  EXPECT_THAT(written.scores->median_chi2pix, AllOf(SizeIs(30), Contains(Gt(1.0))));
}

TEST_F(SpexOnAFrame, EndsWithCode1IfChi2pixIsAboveTheLimitThatIsGiven) {
  const TempFolder folder;
  const std::string frame = folder / "frame.fits";
  EXPECT_EQ(Spex(Arguments(frame, {"--max-chi2pix", "1"})).code, 0);
  for (const std::string& output : {std::string("-o"), std::string("--output-dir")}) {
    const std::string to = output == "-o" ? frame : folder / "frames";
    EXPECT_THAT(
        Spex({"-i", input_->image(), "-p", input_->psf(), output, to, "--quiet", "--max-chi2pix", "0.5"}),
        ExitsWith(1, AllOf(HasSubstr("the largest median chi2pix, of the frame or of a fibre, is 0."),
                           HasSubstr("; --max-chi2pix is 0.5"))));
  }
  EXPECT_TRUE(std::filesystem::exists(frame));
  EXPECT_EQ(Spex(Arguments(frame, {"--max-chi2pix", "-1"})).code, 2);
}

TEST_F(SpexOnAFrame, DrawsABarOnRequest) {
  const TempFolder folder;
  EXPECT_THAT(Spex(Arguments(folder / "frame.fits", {"--progress", "bar"})),
              ExitsWith(0, AllOf(HasSubstr("100 %  2/2 bundles"), Not(HasSubstr("Done")))));
}

TEST_F(SpexOnAFrame, SaysNothingWhenQuiet) {
  const TempFolder folder;
  const RunResult run = Spex(Arguments(folder / "frame.fits", {"--quiet", "--nwavestep", "50"}));
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.output, "");
}

TEST_F(SpexOnAFrame, PassesByServersOfAListThatAreNotThere) {
  const TempFolder folder;
  const std::string dead = "unix:" + folder.path() + "/none";
  ProcessOptions options;
  options.environment = {"SPEXD_SERVER=" + dead + "," + server_->address()};
  EXPECT_THAT(Spex(Arguments(folder / "frame.fits", {"-n", "5", "--priority", "3"}), options), ExitsWith(0));
  EXPECT_THAT(Spex({"status"}, options), ExitsWith(3, AllOf(HasSubstr(dead), HasSubstr("engine cpu"))));
  EXPECT_THAT(Spex({"load", "-i", input_->image(), "-p", input_->psf()}, options),
              ExitsWith(2, HasSubstr("names 2 servers")));
}

TEST_F(SpexOnAFrame, HasNoPrioritiesInThisProcess) {
  const TempFolder folder;
  EXPECT_THAT(Spex(Arguments(folder / "frame.fits", {"-n", "2", "--priority", "1"})),
              ExitsWith(0, HasSubstr("without effect here: --priority")));
  EXPECT_EQ(Spex(Arguments(folder / "frame.fits", {"--priority", "11"})).code, 2);
}

TEST_F(SpexOnAFrame, WritesTheSameFileByReferenceByUploadAndEmbedded) {
  const TempFolder folder;
  const std::string frame = folder / "frame.fits", model = folder / "model.fits";
  const std::string expected = ReadBytes(Reference()), expected_model = ReadBytes(ReferenceModel());
  ASSERT_GT(expected.size(), 100000u);
  for (const std::vector<std::string>& how :
       {std::vector<std::string>{"--server", server_->address()},
        std::vector<std::string>{"--server", server_->address(), "--upload"},
        std::vector<std::string>{"--threads", "1"}}) {
    ASSERT_THAT(Spex(Arguments(frame, Joined(how, {"-m", model}))), ExitsWith(0));
    EXPECT_TRUE(ReadBytes(frame) == expected);
    EXPECT_TRUE(ReadBytes(model) == expected_model);
    EXPECT_THAT(folder.Entries(), ElementsAre("frame.fits", "model.fits"));
  }
}

TEST_F(SpexOnAFrame, WritesTheSameFileForOtherOptionsToo) {
  const TempFolder folder;
  const std::string here = folder / "here.fits.gz", there = folder / "there.fits.gz";
  const absl::string_view usual =
      "-w 6620,6640,0.3 -s 13 -n 15 -r 0.001 --psferr 0.02 --barycentric-correction --no-scores "
      "--bundlesize 10";
  const std::vector<std::string> options = Joined(absl::StrSplit(usual, ' '), {"-f", input_->image()});
  ASSERT_THAT(Spex(Arguments(here, options)),
              ExitsWith(0, HasSubstr("Done preproc-r0.fits spectra 13:20\n")));
  ASSERT_THAT(Spex(Remote(there, options)), ExitsWith(0));
  EXPECT_TRUE(ReadBytes(here) == ReadBytes(there));
  const Frame frame = Read(here);
  EXPECT_EQ(frame.fibres.count, 15);
  EXPECT_EQ(frame.grid.count, 68);
  EXPECT_FALSE(frame.scores.has_value());
}

TEST_F(SpexOnAFrame, RunsWithAPsfThatTheServerHoldsByHash) {
  const TempFolder folder;
  const RunResult loaded =
      Spex({"psf", "load", input_->psf(), "--server", server_->address(), "--upload", "--json"});
  ASSERT_EQ(loaded.code, 0) << loaded.output;
  const std::string hash = nlohmann::json::parse(loaded.output).at(0).at("hash").get<std::string>();
  EXPECT_THAT(Spex({"psf", "list", "--server", server_->address()}).output, HasSubstr(hash));
  EXPECT_THAT(Spex({"--server", server_->address(), "-i", input_->image(), "-p", "sha256:" + hash, "-o",
                    folder / "frame.fits"}),
              ExitsWith(0));
  EXPECT_TRUE(Read(folder / "frame.fits").spectra == Read(Reference()).spectra);
  const auto unload = [](const std::string& name) {
    return Spex({"psf", "unload", name, "--server", server_->address()});
  };
  EXPECT_THAT(unload(hash.substr(0, 7)).output, HasSubstr("must have at least 8"));
  EXPECT_THAT(unload("0123456789ab").output, HasSubstr("begins with 0123456789ab"));
  EXPECT_EQ(unload(hash.substr(0, 12)).output, "Unloaded " + hash + "\n");
  ASSERT_EQ(Spex({"psf", "load", input_->psf(), "--server", server_->address(), "--upload"}).code, 0);
  EXPECT_EQ(Spex({"psf", "unload", "sha256:" + hash, "--server", server_->address()}).code, 0);
  EXPECT_THAT(Spex({"psf", "unload", hash, "--server", server_->address()}), ExitsWith(2));
  EXPECT_THAT(Spex({"-i", input_->image(), "-p", "sha256:" + hash, "-o", folder / "other.fits"}),
              ExitsWith(2, HasSubstr("--server")));
}

TEST_F(SpexOnAFrame, ReportsFlagsWithoutEffect) {
  const TempFolder folder;
  const RunResult run =
      Spex(Remote(folder / "frame.fits", {"--nsubbundles", "6", "--nwavestep", "50", "--pixpad-frac", "0.8",
                                          "--wavepad-frac", "0.2", "--no-gpu"}));
  EXPECT_EQ(run.code, 0) << run.output;
  EXPECT_THAT(
      run.output,
      HasSubstr("without effect here: --nsubbundles, --nwavestep, --pixpad-frac, --wavepad-frac, --no-gpu"));
  EXPECT_TRUE(ReadBytes(folder / "frame.fits") == ReadBytes(Reference()));
}

// A flag of desi_extract_spectra or of gpu_specter's spex that not every extraction has.
struct PipelineFlag {
  std::vector<std::string> given;
  std::string idle;  // how it is reported as without effect; "": it has an effect
};

TEST_F(SpexOnAFrame, TakesTheFlagsOfThePipelinesExtractors) {
  const TempFolder folder;
  const PipelineFlag flags[] = {
      {{"-v"}, ""},
      {{"--verbose"}, ""},
      {{"--loglevel", "info"}, ""},
      {{"--no-gpu"}, ""},
      {{"--mpi"}, "--mpi"},
      {{"--async-io"}, "--async-io"},
      {{"--wavepad", "10"}, "--wavepad"},
      {{"--wavepad-frac", "0.2"}, "--wavepad-frac"},
      {{"--pixpad-frac", "0.8"}, "--pixpad-frac"},
      {{"--nsubbundles", "5"}, "--nsubbundles"},
      {{"--nwavestep", "50"}, "--nwavestep"},
      {{"--ranks-per-bundle", "1"}, "--ranks-per-bundle"},
  };
  const std::string plain = folder / "plain.fits", frame = folder / "frame.fits";
  ASSERT_EQ(Spex(Arguments(plain, {"-n", "3"})).code, 0);
  for (const PipelineFlag& flag : flags) {
    SCOPED_TRACE(flag.given[0]);
    const RunResult run = Spex(Joined(Arguments(frame, flag.given), {"-n", "3"}));
    EXPECT_EQ(run.code, 0) << run.output;
    if (flag.idle.empty()) {
      EXPECT_THAT(run.output, Not(HasSubstr("without effect")));
    } else {
      EXPECT_THAT(run.output, HasSubstr("spex: without effect here: " + flag.idle + "\n"));
    }
    EXPECT_TRUE(ReadBytes(frame) == ReadBytes(plain));
  }
  for (const char* level : {"warn", "ERROR", "critical"})
    EXPECT_EQ(Spex(Arguments(frame, {"-n", "3", "--loglevel", level})).output, "");
}

TEST_F(SpexOnAFrame, AsksForAGpuByTheNamesOfThePipelinesExtractors) {
  const TempFolder folder;
  ProcessOptions without;
  without.environment = {"SPEXD_CUDA_MODULE=/nowhere/libspexd_cuda.so"};
  for (const char* flag : {"--gpu", "--use-gpu"}) {
    const RunResult gpu = Spex(Arguments(folder / "frame.fits", {flag}), without);
    EXPECT_THAT(gpu, ExitsWith(2, HasSubstr("spex: --device cuda: $SPEXD_CUDA_MODULE names")));
    EXPECT_EQ(Spex(Arguments(folder / "frame.fits", {flag, "--no-gpu"})).code, 2);
    EXPECT_EQ(Spex(Arguments(folder / "frame.fits", {flag, "--device", "cpu"})).code, 2);
  }
  EXPECT_THAT(folder.Entries(), ElementsAre());
}

TEST_F(SpexOnAFrame, GivesUpAtTheTimeout) {
  const TempFolder folder;
  for (const auto& arguments : {Arguments(folder / "a.fits", {"--timeout", "0.001"}),
                                Remote(folder / "b.fits", {"--timeout", "0.001"})}) {
    EXPECT_THAT(Spex(arguments), ExitsWith(3));
  }
  EXPECT_THAT(folder.Entries(), ElementsAre());
}

// One bundle of 25 fibres on 4601 narrow bins, which alone takes a minute.
TEST(Spex, GivesUpInTheMiddleOfABundleAtTheTimeout) {
  const TempFolder folder;
  ASSERT_THAT(Spex({"simulate", "--fibres", "25", "--seed", "4", "--out-dir", folder.path()}), ExitsWith(0));
  const auto start = std::chrono::steady_clock::now();
  const RunResult run =
      Spex({"-i", folder / "preproc-r0.fits", "-p", folder / "psf-r0.fits", "-o", folder / "frame.fits", "-w",
            "6530,6760,0.05", "--device", "cpu", "--threads", "1", "--timeout", "2"});
  EXPECT_LT(std::chrono::steady_clock::now() - start, OnAnIdleMachine(std::chrono::seconds(7)));
  EXPECT_THAT(run, ExitsWith(3, HasSubstr("--timeout")));
  EXPECT_FALSE(std::filesystem::exists(folder / "frame.fits"));
}

TEST_F(SpexOnAFrame, SimulatesTheSameFrameThroughItsPsf) {
  const TempFolder folder;
  const std::vector<std::string> arguments = {"simulate", "--psf",     input_->psf(), "--seed",
                                              "4",        "--out-dir", folder.path()};
  const RunResult run = Spex(arguments);
  EXPECT_THAT(run, ExitsWith(0, HasSubstr("Simulated 30 fibres on 160 x ")));
  EXPECT_FALSE(std::filesystem::exists(folder / "psf-r0.fits")) << "the user has it";
  EXPECT_TRUE(std::filesystem::exists(folder / "truth-r0.fits"));
  const auto image = ReadPreprocImage(Source::FromFile(folder / "preproc-r0.fits").value());
  const auto expected = ReadPreprocImage(Source::FromFile(input_->image()).value());
  ASSERT_TRUE(image.ok() && expected.ok()) << image.status() << expected.status();
  EXPECT_EQ(image->pixels, expected->pixels);
  EXPECT_EQ(image->ivar, expected->ivar);

  WritePsfOfCamera(input_->psf(), "B3", folder / "psf.fits");
  EXPECT_THAT(Spex({"simulate", "--psf", folder / "psf.fits", "--out-dir", folder.path()}), ExitsWith(0));
  EXPECT_TRUE(std::filesystem::exists(folder / "preproc-b0.fits"));
  EXPECT_THAT(Spex({"-i", folder / "preproc-b0.fits", "-p", folder / "psf.fits", "-o", folder / "frame.fits",
                    "-s", "0", "-n", "2"}),
              ExitsWith(0));
  EXPECT_THAT(Spex({"simulate", "--psf", folder / "psf.fits", "--camera", "r", "--out-dir", folder.path()}),
              ExitsWith(2, HasSubstr("camera is 'r', but CAMERA of the PSF is 'B3'")));
}

TEST_F(SpexOnAFrame, RefusesASizeOfAnInstrumentThatAPsfHas) {
  const TempFolder folder;
  for (const std::string option : {"--fibres", "--rows", "--columns"}) {
    EXPECT_THAT(Spex({"simulate", "--psf", input_->psf(), option, "100", "--out-dir", folder.path()}),
                ExitsWith(2, AllOf(HasSubstr("--psf"), HasSubstr("excludes"), HasSubstr(option))));
  }
  EXPECT_THAT(Spex({"simulate", "--psf", folder / "none.fits", "--out-dir", folder.path()}),
              ExitsWith(2, HasSubstr("none.fits")));
}

TEST_F(SpexOnAFrame, FindsAFrameEqualToItself) {
  const RunResult same =
      Spex({"compare", Reference(), Reference(), "--max-pull", "0", "--max-ivar", "0", "--max-resolution",
            "0", "--max-mask-differences", "0", "--min-within", "0.01,1"});
  EXPECT_THAT(same, ExitsWith(0, HasSubstr("fibres 0:30")));
}

TEST_F(SpexOnAFrame, ExitsWith1BeyondEachLimitOfAComparison) {
  const TempFolder folder;
  Frame frame = Read(Reference());
  Spectra& spectra = frame.spectra;
  int bin = 50;
  while (spectra.mask(3, bin) != 0) ++bin;
  spectra.flux(3, bin) += 2 / std::sqrt(spectra.ivar(3, bin));
  spectra.ivar(4, bin) *= 1.1f;
  spectra.resolution(5, 5, bin) += 0.01f;
  spectra.mask(6, bin) ^= 1;
  ASSERT_TRUE(WriteFrame(frame, folder / "other.fits").ok());
  const std::vector<std::pair<std::string, std::string>> limits = {{"--max-pull", "1.9"},
                                                                   {"--max-ivar", "0.04"},
                                                                   {"--max-resolution", "0.009"},
                                                                   {"--max-mask-differences", "0"},
                                                                   {"--min-within", "1.9,1"}};
  for (const auto& [flag, limit] : limits) {
    EXPECT_THAT(Spex({"compare", folder / "other.fits", Reference(), flag, limit}),
                ExitsWith(1, HasSubstr("FAIL")));
  }
  EXPECT_EQ(Spex({"compare", folder / "other.fits", Reference(), "--max-pull", "2.1", "--max-ivar", "0.06",
                  "--max-resolution", "0.011", "--max-mask-differences", "1", "--min-within", "1.9,0.99"})
                .code,
            0);
}

TEST_F(SpexOnAFrame, MeasuresPullsAgainstTheTruth) {
  const std::vector<std::string> compare = {"compare", Reference(), "--truth", input_->truth(),
                                            "--truth-sigma-range"};
  const auto with = [&compare](const std::string& range) {
    std::vector<std::string> arguments = compare;
    arguments.push_back(range);
    return Spex(arguments);
  };
  EXPECT_THAT(
      with("0.9,1.1"),
      ExitsWith(0, AllOf(HasSubstr("robust sigma"),
                         ContainsRegex(
                             "bins; left out [0-9]+: MASK [0-9]+, chi2pix [0-9]+, ends of the grid [1-9]"))));
  EXPECT_EQ(with("0.1,0.2").code, 1);
  EXPECT_EQ(with("0.1").code, 2);
}

TEST_F(SpexOnAFrame, RefusesToCompareDifferentGrids) {
  const TempFolder folder;
  ASSERT_EQ(Spex(Arguments(folder / "frame.fits", {"-w", "6620,6630,1", "-n", "2"})).code, 0);
  EXPECT_THAT(Spex({"compare", folder / "frame.fits", Reference()}), ExitsWith(2, HasSubstr("grids differ")));
}

TEST_F(SpexOnAFrame, DrawsAPicture) {
  const TempFolder folder;
  const std::string picture = folder / "frame.png";
  ASSERT_THAT(
      Spex({"plot", Reference(), "-o", picture, "--image", input_->image(), "--model", ReferenceModel()}),
      ExitsWith(0));
  EXPECT_GT(std::filesystem::file_size(picture), 10000u);
  EXPECT_EQ(ReadBytes(picture).substr(1, 3), "PNG");
  EXPECT_THAT(folder.Entries(), ElementsAre("frame.png"));
}

// Writes the frame, with a camera and with ivar < 0 at `negative` pixels that nothing flags and at one that
// MASK flags.
void WriteOddFrame(const std::string& from, int negative, const std::string& camera, const std::string& to) {
  const absl::StatusOr<Source> source = Source::FromFile(from);
  ASSERT_TRUE(source.ok()) << source.status();
  absl::StatusOr<Preproc> preproc = ReadPreproc(*source);
  ASSERT_TRUE(preproc.ok()) << preproc.status();
  PreprocFile file;
  file.pixels = preproc->image.pixels;
  file.ivar = preproc->image.ivar;
  file.mask.Assign(file.pixels.shape());
  file.readnoise.Assign(file.pixels.shape(), 3);
  for (int k = 0; k <= negative; ++k) file.ivar(2, k) = -1e-4f;
  file.mask(2, negative) = 1;
  std::string card = "CAMERA  = '" + camera + "'";
  card.resize(80, ' ');
  file.extra_cards = {card};
  ASSERT_TRUE(WritePreproc(file, to, /*rice=*/false).ok());
}

TEST_F(SpexOnAFrame, WarnsOfNegativeIvarThatNothingFlagsHereAndOnAServer) {
  const TempFolder folder;
  const std::string odd = folder / "odd.fits", frame = folder / "frame.fits";
  WriteOddFrame(input_->image(), 37, "r0", odd);
  std::vector<std::string> arguments = {"-i", odd, "-p", input_->psf(), "-o", frame, "--quiet"};
  const std::string warning =
      "spex: warning: " + odd +
      ": 37 pixels that MASK does not flag have IVAR < 0 and were left out; was IVAR compressed with loss?\n";
  const RunResult here = Spex(arguments);
  EXPECT_EQ(here.code, 0);
  EXPECT_EQ(here.output, warning);
  arguments.insert(arguments.end(), {"--server", server_->address(), "--upload"});
  const RunResult there = Spex(arguments);
  EXPECT_EQ(there.code, 0);
  EXPECT_EQ(there.output, warning);
}

TEST_F(SpexOnAFrame, RefusesAPsfOfAnotherCameraWhereverItExtracts) {
  const TempFolder folder;
  const std::string odd = folder / "odd.fits", psf = folder / "psf.fits", list = folder / "list.txt";
  const std::string output = folder / "frame.fits";
  WriteOddFrame(input_->image(), 0, "r5", odd);
  WritePsfOfCamera(input_->psf(), "r0", psf);
  WriteBytes(list, "image psf output\n" + odd + " " + psf + " " + output + "\n");
  const std::vector<std::vector<std::string>> commands = {
      {"-i", odd, "-p", psf, "-o", output},
      {"-i", odd, "-p", psf, "-o", output, "--upload", "--server", server_->address()},
      {"-i", odd, "-p", psf, "--output-dir", folder / "frames"},
      {"night", list}};
  for (const std::vector<std::string>& command : commands) {
    EXPECT_THAT(Spex(command), ExitsWith(2, AllOf(HasSubstr("odd.fits is of camera r5, but PSF"),
                                                  HasSubstr("psf.fits is of camera r0"))));
  }
  EXPECT_FALSE(std::filesystem::exists(output));
}

TEST_F(SpexOnAFrame, ChecksWithoutExtracting) {
  const TempFolder folder;
  const std::string odd = folder / "odd.fits", psf = folder / "psf.fits", text = folder / "text.fits";
  WriteOddFrame(input_->image(), 3, "r5", odd);
  WritePsfOfCamera(input_->psf(), "r0", psf);
  WriteBytes(text, "not a FITS file");

  EXPECT_THAT(Spex({"check", input_->image(), input_->psf(), "-w", "6620,6640,1"}),
              ExitsWith(0, AllOf(HasSubstr("camera r0"), HasSubstr("FIBERMAP 30 rows"),
                                 HasSubstr("6620 to 6640 Angstrom in 21 bins"))));

  EXPECT_THAT(
      Spex({"check", odd, psf}),
      ExitsWith(1, AllOf(HasSubstr("Warning: " + odd + ": 3 pixels that MASK does not flag have IVAR < 0"),
                         HasSubstr("Refused: image " + odd + " is of camera r5"))));

  const RunResult beyond = Spex({"check", input_->image(), input_->psf(), "-w", "3000,9000,1"});
  EXPECT_EQ(beyond.code, 1);
  const std::string flag = "use -w ";
  const size_t at = beyond.output.find(flag);
  ASSERT_NE(at, std::string::npos) << beyond.output;
  const std::string proposed =
      beyond.output.substr(at + flag.size(), beyond.output.find('\n', at) - at - flag.size());
  EXPECT_EQ(Spex({"check", input_->image(), input_->psf(), "-w", proposed}).code, 0) << proposed;

  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"check", text, psf},
                                                {"check", odd, folder / "none.fits"},
                                                {"check", odd, psf, "-w", "1,2"}}) {
    EXPECT_EQ(Spex(wrong).code, 2);
  }
}

TEST_F(SpexOnAFrame, SaysThatTooFewFibresHaveNoBad2dFit) {
  const TempFolder folder;
  const std::string frame = folder / "frame.fits";
  EXPECT_THAT(Spex(Arguments(frame, {"-n", "2"})).output, HasSubstr("No BAD2DFIT: it compares fibres"));
  EXPECT_THAT(Spex(Arguments(frame, {"-n", "3"})).output, Not(HasSubstr("No BAD2DFIT")));
}

TEST_F(SpexOnAFrame, DrawsTheFibresOfThoseNumbers) {
  const TempFolder folder;
  const std::string cut = folder / "cut.fits", picture = folder / "cut.svg";
  ASSERT_EQ(Spex(Arguments(cut, {"-s", "13", "-n", "15", "-w", "6620,6640,1"})).code, 0);
  ASSERT_THAT(Spex({"plot", cut, "-o", picture, "--fibres", "13,14"}), ExitsWith(0));
  const std::string drawn = ReadBytes(picture);  // the file also has its texts as comments
  EXPECT_THAT(drawn, HasSubstr("fibre 13 "));
  EXPECT_THAT(drawn, HasSubstr("fibre 14 "));
  EXPECT_THAT(drawn, Not(HasSubstr("fibre 26")));
  EXPECT_THAT(Spex({"plot", cut, "-o", picture, "--fibres", "13,3"}),
              ExitsWith(2, HasSubstr("the frame has 13 to 27, not 3")));
}

TEST_F(SpexOnAFrame, ExplainsWhyItCannotDraw) {
  const TempFolder folder;
  EXPECT_THAT(Spex({"plot", folder / "none.fits", "-o", folder / "frame.png"}),
              ExitsWith(2, HasSubstr("none.fits")));
  ProcessOptions without;
  without.environment = {"SPEXD_PYTHON=/nowhere/python3"};
  EXPECT_THAT(Spex({"plot", Reference(), "-o", folder / "frame.png"}, without),
              ExitsWith(2, HasSubstr("needs Python")));
  // A matplotlib that cannot be imported simulates one that is not installed.
  WriteBytes(folder / "matplotlib.py", "raise ModuleNotFoundError(\"none\", name=\"matplotlib\")\n");
  without.environment = {"PYTHONPATH=" + folder.path()};
  EXPECT_THAT(Spex({"plot", Reference(), "-o", folder / "frame.png"}, without),
              ExitsWith(2, HasSubstr("apt-get install python3-matplotlib")));
}

TEST_F(SpexOnAFrame, ShowsTheServersStatus) {
  EXPECT_THAT(Spex({"status", "--server", server_->address()}),
              ExitsWith(0, AllOf(HasSubstr("engine cpu"), HasSubstr(input_->folder()))));
  const RunResult json = Spex({"status", "--server", server_->address(), "--json"});
  EXPECT_EQ(json.code, 0);
  const nlohmann::json status = nlohmann::json::parse(json.output);
  ASSERT_EQ(status.size(), 1u);
  EXPECT_EQ(status.at(0).at("address"), server_->address());
  EXPECT_FALSE(status.at(0).at("draining").get<bool>());
  EXPECT_EQ(status.at(0).at("limits").at("max_upload_bytes"), 1 << 30);  // a number, not a text
}

}  // namespace
}  // namespace spexd::testing
