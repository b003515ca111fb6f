// Trace shifts as a user of spex sees them: flags, the PSF with moved traces, spex traceshifts, nights.
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "core/fits/readers.h"
#include "core/fits/writers.h"
#include "tests/support/build_paths.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"
#include "tests/traces/shifted_files.h"
#include "tests/traces/shifted_frame.h"

namespace spexd::testing {
namespace {

using nlohmann::json;

constexpr double kShiftX = 0.3, kShiftY = 0.2;  // pixels
constexpr double kTolerance = 0.02;

// A frame whose traces are displaced from its PSF's, the sky as its reference, and an image without light.
// They are made once for all tests.
class SpexTraces : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    files_ = new TempFolder();
    const ShiftedFrame frame = MakeShiftedFrame({.x = MakeSeries({{kShiftX}}), .y = MakeSeries({{kShiftY}})});
    ASSERT_THAT(WritePsf(frame.psf, Psf()), IsOk());
    WriteImage(frame.image, Input());
    Image dark;
    dark.pixels.Assign(frame.image.pixels.shape());
    dark.ivar.Assign(frame.image.pixels.shape(), 0.1f);
    WriteImage(dark, Dark());
    WriteBytes(Sky(), TextOf(frame.sky));
  }
  static void TearDownTestSuite() { delete files_; }

  static std::string Psf() { return *files_ / "psf.fits"; }
  static std::string Input() { return *files_ / "preproc.fits"; }
  static std::string Dark() { return *files_ / "dark.fits"; }
  static std::string Sky() { return *files_ / "sky.dat"; }

  static std::vector<std::string> Extract(const std::string& output, const std::vector<std::string>& more) {
    return Joined({"extract", "-i", Input(), "-p", Psf(), "-n", "5", "--device", "cpu", "-o", output}, more);
  }
  // Returns the flags for a measurement in x and y against the sky.
  static std::vector<std::string> AgainstSky(const std::vector<std::string>& more = {}) {
    return Joined({"--trace-shifts", "xy", "--trace-reference", Sky()}, more);
  }
  static RunResult Measure(const std::vector<std::string>& more) {
    return Spex(Joined({"traceshifts", "-i", Input(), "-p", Psf()}, more));
  }
  static RunResult MeasureDark(const std::vector<std::string>& more = {}) {
    return Spex(Joined({"traceshifts", "-i", Dark(), "-p", Psf()}, more));
  }
  std::string Out(const std::string& name) const { return folder_ / name; }

  static inline TempFolder* files_ = nullptr;
  TempFolder folder_;
};

TEST_F(SpexTraces, GiveTheFrameThatTheWrittenPsfGivesWithoutThem) {
  ASSERT_THAT(Spex(Extract(Out("moved.fits"), AgainstSky({"--psf-out", Out("psf.fits")}))),
              ExitsWith(0, AllOf(HasSubstr("Trace shifts: x ok +0."), HasSubstr(", y ok +0."),
                                 HasSubstr("Wrote " + Out("psf.fits")))));
  ASSERT_THAT(Spex({"extract", "-i", Input(), "-p", Out("psf.fits"), "-n", "5", "--device", "cpu", "-q", "-o",
                    Out("same.fits")}),
              ExitsWith(0));
  EXPECT_THAT(Spex({"compare", Out("moved.fits"), Out("same.fits"), "--max-pull", "0", "--max-ivar", "0",
                    "--max-resolution", "0", "--max-mask-differences", "0"}),
              ExitsWith(0));
  ASSERT_THAT(Spex(Extract(Out("unmoved.fits"), {"-q"})), ExitsWith(0));
  EXPECT_THAT(Spex({"compare", Out("unmoved.fits"), Out("same.fits"), "--max-pull", "0"}), ExitsWith(1));
}

TEST_F(SpexTraces, GiveTheSamePsfAndFrameOnAServerAndInADetachedJob) {
  const TestServer server({"--allow-root", files_->path(), "--device", "cpu", "--jobs-dir", Out("jobs")});
  ASSERT_THAT(Spex(Extract(Out("here.fits"), AgainstSky({"--psf-out", Out("psf-here.fits")}))), ExitsWith(0));
  for (const std::vector<std::string>& how : {std::vector<std::string>{}, {"--upload"}}) {
    ASSERT_THAT(Spex(Extract(Out("there.fits"),
                             AgainstSky(Joined(
                                 {"--psf-out", Out("psf-there.fits"), "--server", server.address()}, how)))),
                ExitsWith(0, HasSubstr("Trace shifts: x ok")));
    EXPECT_TRUE(ReadBytes(Out("here.fits")) == ReadBytes(Out("there.fits")));
    EXPECT_TRUE(ReadBytes(Out("psf-here.fits")) == ReadBytes(Out("psf-there.fits")));
  }
  const RunResult submitted = Spex(
      Joined({"submit", "-i", Input(), "-p", Psf(), "-n", "5", "--server", server.address()}, AgainstSky()));
  ASSERT_THAT(submitted, ExitsWith(0));
  const std::string id(absl::StripAsciiWhitespace(submitted.output));
  ASSERT_THAT(Spex({"watch", id, "-o", Out("later.fits"), "--server", server.address()}),
              ExitsWith(0, HasSubstr("Trace shifts: x ok")));
  EXPECT_TRUE(ReadBytes(Out("here.fits")) == ReadBytes(Out("later.fits")));
}

TEST_F(SpexTraces, AreMeasuredWithoutExtractionAsATableAndAsJson) {
  const RunResult table = Measure({"--trace-reference", Sky()});
  EXPECT_THAT(table,
              ExitsWith(0, AllOf(HasSubstr("axis  status"), HasSubstr("\nx     ok         +0."),
                                 HasSubstr("\ny     ok         +0."), HasSubstr(" lines of " + Sky()))));
  EXPECT_THAT(table.output, Not(HasSubstr("Refused")));

  const RunResult run = Measure({"--trace-reference", Sky(), "--json"});
  ASSERT_THAT(run, ExitsWith(0));
  const json shifts = json::parse(run.output);
  EXPECT_EQ(shifts["x"]["status"], "ok");
  EXPECT_NEAR(shifts["x"]["mean"].get<double>(), kShiftX, kTolerance);
  EXPECT_NEAR(shifts["y"]["mean"].get<double>(), kShiftY, kTolerance);
  EXPECT_LE(shifts["x"]["min"], shifts["x"]["mean"]);
  EXPECT_GE(shifts["x"]["max"], shifts["x"]["mean"]);
  EXPECT_GT(shifts["x"]["error"], 0);
  EXPECT_EQ(shifts["moved"], true);
  EXPECT_EQ(shifts["reason"], "");
  EXPECT_EQ(shifts["reference"], Sky());
  EXPECT_GT(shifts["passes"], 0);
  EXPECT_GT(shifts["lines"], 1);
}

TEST_F(SpexTraces, MeasuredWithoutExtractionMoveThePsfAsAnExtractionDoes) {
  ASSERT_THAT(Measure({"--trace-reference", Sky(), "--psf-out", Out("measured.fits")}), ExitsWith(0));
  ASSERT_THAT(Spex(Extract(Out("frame.fits"), AgainstSky({"--psf-out", Out("extracted.fits")}))),
              ExitsWith(0));
  EXPECT_TRUE(ReadBytes(Out("measured.fits")) == ReadBytes(Out("extracted.fits")));
}

TEST_F(SpexTraces, InYAreRelativeWithoutAReferenceAndNoneIfXAloneIsAskedFor) {
  const json relative = json::parse(Measure({"--json"}).output);
  EXPECT_EQ(relative["y"]["status"], "relative");
  EXPECT_EQ(relative["reference"], "");
  const json none = json::parse(Measure({"--trace-shifts", "x", "--json"}).output);
  EXPECT_EQ(none["y"]["status"], "none");
  EXPECT_TRUE(none["y"]["mean"].is_null());
}

TEST_F(SpexTraces, InYOfASimulatedArcAreAbsoluteAgainstTheShippedLamps) {
  const std::string lamps = SourceFolder() + "/core/traces/references/arc-lamps.dat";
  ASSERT_THAT(
      Spex({"simulate", "--fibres", "30", "--rows", "1500", "--arc", lamps, "--out-dir", folder_.path()}),
      ExitsWith(0));
  auto psf = ReadPsf(Source::FromFile(Out("psf-r0.fits")).value());
  ASSERT_THAT(psf.status(), IsOk());
  for (int fibre = 0; fibre < psf->fibres; ++fibre) psf->traces.y.coeff(fibre, 0) -= kShiftY;
  ASSERT_THAT(WritePsf(*psf, Out("displaced.fits")), IsOk());
  const RunResult run = Spex({"traceshifts", "-i", Out("preproc-r0.fits"), "-p", Out("displaced.fits"),
                              "--trace-reference", lamps, "--json"});
  ASSERT_THAT(run, ExitsWith(0));
  const json shifts = json::parse(run.output);
  EXPECT_EQ(shifts["y"]["status"], "ok");
  EXPECT_NEAR(shifts["y"]["mean"].get<double>(), kShiftY, kTolerance);
}

TEST_F(SpexTraces, ThatAreRefusedAreAnErrorOnlyIfTheyAreRequired) {
  EXPECT_THAT(MeasureDark(), ExitsWith(0, AllOf(HasSubstr("x     refused          -"),
                                                HasSubstr("Refused: trace shifts in x and y were not"))));
  const json dark = json::parse(MeasureDark({"--json"}).output);
  EXPECT_EQ(dark["x"]["status"], "refused");
  EXPECT_TRUE(dark["x"]["mean"].is_null());
  EXPECT_THAT(dark["reason"].get<std::string>(), HasSubstr("light"));
  EXPECT_THAT(MeasureDark({"--trace-required", "--psf-out", Out("psf.fits")}),
              ExitsWith(2, HasSubstr("spex: " + Dark() + " with PSF " + Psf())));
  EXPECT_THAT(
      Spex({"extract", "-i", Dark(), "-p", Psf(), "-n", "5", "--device", "cpu", "-o", Out("frame.fits"),
            "--trace-shifts", "xy", "--trace-required", "--psf-out", Out("psf.fits")}),
      ExitsWith(2, HasSubstr("were not measured")));
  EXPECT_TRUE(folder_.Entries().empty());
}

TEST_F(SpexTraces, RefuseFlagsThatDoNotFitBeforeTheWork) {
  const std::string out = Out("frame.fits"), missing = Out("missing/psf.fits");
  const struct {
    std::vector<std::string> arguments;
    std::string message;
  } cases[] = {
      {Extract(out, {"--trace-reference", Sky()}), "trace_reference is given, but trace_shifts is off"},
      {Extract(out, {"--trace-degrees", "1,1,1,1"}), "trace_degrees is given, but trace_shifts is off"},
      {Extract(out, {"--psf-out", Out("psf.fits")}),
       "--psf-out: no trace shifts are measured; add --trace-shifts"},
      {Extract(out, {"--trace-required"}), "trace_required is given, but trace_shifts is off"},
      {Extract(out, {"--trace-shifts", "y"}), "must be off, auto, x, xy"},
      {Extract(out, {"--trace-shifts", "x", "--trace-degrees", "6,0,0,0"}), "trace_degrees"},
      {Extract(out, AgainstSky({"--psf-out", Psf()})), Psf() + " is the file that --psf reads"},
      {Extract(out, AgainstSky({"--psf-out", Input()})), Input() + " is the file that --input reads"},
      {Extract(out, AgainstSky({"--psf-out", Sky()})), Sky() + " is the file that --trace-reference reads"},
      {Extract(Sky(), AgainstSky()), Sky() + " is the file that --trace-reference reads"},
      {Extract(out, AgainstSky({"--psf-out", out})), "--output and --psf-out are both " + out},
      {Extract(out, AgainstSky({"-m", Out("m"), "--psf-out", Out("m")})), "--model and --psf-out are both"},
      {Extract(out, AgainstSky({"--psf-out", missing})), missing},
      {{"extract", "-i", Input(), "-p", "sha256:00", "-o", out, "--trace-shifts", "x", "--psf-out", Out("p")},
       "give --psf the path of that file"},
      {Extract(out, {"--trace-shifts", "xy", "--trace-reference", "sha256:00"}), "only a server (--server)"},
      {Extract(out, {"--trace-shifts", "xy", "--trace-reference", Psf()}), Psf() + ", line 1"},
      {Extract(out, {"--trace-shifts", "xy", "--trace-reference", Out("no.dat")}), Out("no.dat")},
      {{"submit", "-i", Input(), "-p", Psf(), "--trace-required"}, "set trace_shifts to auto, x or xy"},
      {{"extract", "-i", Input(), "-p", Psf(), "--output-dir", folder_.path(), "--trace-shifts", "x",
        "--psf-out", Out("p")},
       "--psf-out"},
      {{"simulate", "--arc", Psf(), "--out-dir", folder_.path()}, Psf() + ", line 1"},
      {{"simulate", "--arc", Sky(), "--sky-fibres", "3"}, "--sky-fibres excludes --arc"},
      {{"traceshifts", "-i", Input(), "-p", Psf(), "--trace-shifts", "off"}, "give auto, x or xy"},
      {{"traceshifts", "-i", Input(), "-p", "sha256:00"}, "give a path"},
      {{"traceshifts", "-i", Input(), "-p", Psf(), "--psf-out", Psf()},
       Psf() + " is the file that --psf reads"},
      {{"traceshifts", "-i", Input(), "-p", Psf(), "--bundlesize", "0"}, "bundle_size is 0, must be 1 to"},
  };
  for (const auto& [arguments, message] : cases)
    EXPECT_THAT(Spex(arguments), ExitsWith(2, HasSubstr(message)));
  EXPECT_TRUE(folder_.Entries().empty());
}

TEST_F(SpexTraces, CheckSaysWhetherTheyCouldBeMeasured) {
  EXPECT_THAT(
      Spex(Joined({"check", Input(), Psf()}, AgainstSky())),
      ExitsWith(0, AllOf(HasSubstr("Traces " + Sky()), HasSubstr("An extraction takes these files."))));
  EXPECT_THAT(Spex({"check", Input(), Psf(), "--trace-shifts", "x", "--trace-reference", Psf()}),
              ExitsWith(1, HasSubstr("Refused: " + Psf() + ", line 1")));
}

// A night of one frame with its own reference file, which changes.
class TracesOfANight : public SpexTraces {
 protected:
  TracesOfANight() {
    WriteBytes(Out("night.txt"),
               "image psf output\n" + Input() + " " + Psf() + " " + Out("out/frame.fits") + "\n");
    WriteBytes(Reference(), ReadBytes(Sky()));
  }
  std::string Reference() const { return Out("reference.dat"); }
  // Runs the night; returns the record of the frame.
  json Run(const std::vector<std::string>& more) const {
    EXPECT_THAT(
        Spex(Joined({"night", Out("night.txt"), "-n", "5", "--device", "cpu", "--json", Out("night.json")},
                    more)),
        ExitsWith(0));
    return json::parse(ReadBytes(Out("night.json")))["frames"][0];
  }
};

TEST_F(TracesOfANight, AreInItsRecordAndRedoneIfOptionsOrTheReferenceChange) {
  const std::vector<std::string> command = {"--trace-shifts", "xy", "--trace-reference", Reference()};
  const json first = Run(command);
  EXPECT_EQ(first["state"], "written");
  EXPECT_EQ(first["trace_shifts"]["x"]["status"], "ok");
  EXPECT_NEAR(first["trace_shifts"]["y"]["mean"].get<double>(), kShiftY, kTolerance);
  const json again = Run(command);
  EXPECT_EQ(again["state"], "skipped");
  EXPECT_EQ(again["trace_shifts"], first["trace_shifts"]);
  WriteBytes(Reference(), ReadBytes(Sky()) + "# another night's\n");
  EXPECT_EQ(Run(command)["state"], "written");
  EXPECT_EQ(Run(command)["state"], "skipped");
  EXPECT_EQ(Run({"--trace-shifts", "xy"})["state"], "written");
  EXPECT_EQ(Run({"--trace-shifts", "x"})["state"], "written");
  EXPECT_EQ(Run({"--trace-shifts", "x", "--trace-required"})["state"], "written");
  EXPECT_EQ(Run({"--trace-shifts", "x", "--trace-required", "--trace-degrees", "1,1,1,1"})["state"],
            "written");
}

TEST_F(TracesOfANight, DoNotMatterToARecordWithoutThem) {
  const json first = Run({});
  EXPECT_FALSE(first.contains("trace_shifts"));
  for (const auto& [name, value] : first["made_of"]["settings"].items())
    EXPECT_THAT(name, Not(HasSubstr("trace_")));
  EXPECT_EQ(Run({"--trace-shifts", "x"})["state"], "written");
}

}  // namespace
}  // namespace spexd::testing
