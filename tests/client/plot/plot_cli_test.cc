// spex plot as a user runs it: what pictures and pages show, and what it refuses.
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/client/support/small_frame.h"
#include "tests/service/support/product_inputs.h"
#include "tests/support/build_paths.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"
#include "tests/support/run_command.h"

namespace spexd::testing {
namespace {

using Words = std::vector<std::string>;

constexpr int kSkipped = 77;

Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::string Script(const std::string& name) { return SourceFolder() + "/tests/client/plot/" + name; }

// One simulated frame with its spectra, model and sky, made once for all tests.
class SpexPlot : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    input_ = new SmallFrame();
    made_ = new TempFolder();
    ASSERT_THAT(Spex({"-i", input_->image(), "-p", input_->psf(), "-o", Frame(), "-m", Model(), "--sky",
                      Sky(), "--sframe", Sframe(), "--lines-out", Redshifts()}),
                ExitsWith(0));
    const std::string psf = *made_ / "displaced-psf.fits";
    WriteShiftedPsf(input_->psf(), -0.3, psf);
    ASSERT_THAT(Spex({"-i", input_->image(), "-p", psf, "-o", Displaced(), "--trace-shifts", "xy"}),
                ExitsWith(0, HasSubstr("Trace shifts: x ok +0.")));
  }
  static void TearDownTestSuite() {
    delete made_;
    delete input_;
  }

  static std::string Frame() { return *made_ / "frame.fits"; }
  // The frame's image, extracted with a PSF whose traces were displaced by 0.3 columns and moved back.
  static std::string Displaced() { return *made_ / "displaced.fits"; }
  static std::string Model() { return *made_ / "model.fits"; }
  static std::string Sky() { return *made_ / "sky.fits"; }
  static std::string Sframe() { return *made_ / "sframe.fits"; }
  static std::string Redshifts() { return *made_ / "z.fits"; }
  // Writes a file of velocities of the frame's targets; returns its path.
  std::string Velocities() const {
    const std::string velocities = folder_ / "rv.fits", templates = folder_ / "templates.fits";
    WriteTemplates(templates, {.step_kms = 10, .first = 5600, .last = 7900});
    EXPECT_THAT(Spex({"analyse", Frame(), "--velocity", templates, "--velocity-out", velocities}),
                ExitsWith(0));
    return velocities;
  }
  // Writes a file of spectra in two arms, made from the frame, with joint velocities (rvtab_arms.fits,
  // rvmod_arms.fits) and redshifts (zlines_arms.fits) in the same folder; returns its path.
  std::string Arms() const {
    const std::string arms = folder_ / "arms.fits", templates = folder_ / "templates.fits";
    WriteTemplates(templates, {.step_kms = 10, .first = 5600, .last = 7900});
    EXPECT_THAT(RunPython({Script("arm_spectra.py"), Sframe(), arms}), ExitsWith(0));
    EXPECT_THAT(Spex({"analyse", arms, "--velocity", templates, "--lines", "--output-dir", folder_.path()}),
                ExitsWith(0));
    return arms;
  }
  std::string JointVelocities() const { return folder_ / "rvtab_arms.fits"; }
  std::string JointRedshifts() const { return folder_ / "zlines_arms.fits"; }
  static Words WithImage() { return {"--image", input_->image(), "--model", Model()}; }

  // Returns the texts of a frame's picture, one per line. They are comments in its SVG.
  std::string Drawn(const std::string& frame, const Words& flags) {
    EXPECT_THAT(Spex(Words{"plot", frame, "-o", folder_ / "a.svg"} + flags), ExitsWith(0));
    const std::string drawn = ReadBytes(folder_ / "a.svg");
    std::string texts;
    for (size_t at = drawn.find("<!-- "); at != std::string::npos; at = drawn.find("<!-- ", at + 1)) {
      texts += drawn.substr(at + 5, drawn.find(" -->", at) - at - 5) + "\n";
    }
    return texts;
  }

  static inline SmallFrame* input_ = nullptr;
  static inline TempFolder* made_ = nullptr;
  TempFolder folder_;
};

TEST_F(SpexPlot, DrawsResolutionSkyAndTruthWhereAskedFor) {
  const std::string plain = Drawn(Frame(), {"--fibres", "3,17"});
  EXPECT_THAT(plain, AllOf(HasSubstr("fibre 3 "), HasSubstr("fibre 17 "), Not(HasSubstr("FWHM")),
                           Not(HasSubstr("without the sky")), Not(HasSubstr("R · truth"))));
  const std::string all =
      Drawn(Frame(), {"--fibres", "3,17", "--resolution", "--sframe", Sframe(), "--truth", input_->truth()});
  EXPECT_THAT(all,
              AllOf(HasSubstr("fibre 3 without the sky"), HasSubstr("fibre 17 without the sky"),
                    HasSubstr("resolution: FWHM"), HasSubstr("row of R at"), HasSubstr("\nR · truth\n")));
  EXPECT_THAT(Drawn(Sframe(), {"--fibres", "3"}), HasSubstr("fibre 3 "));
}

TEST_F(SpexPlot, DrawsTraceShiftsOfFramesThatHaveThem) {
  EXPECT_THAT(
      Drawn(Displaced(), {"--fibres", "3"}),
      AllOf(HasSubstr("\ntrace shifts\n"), HasSubstr("\ndx: ok, mean +0."),
            HasSubstr("\ndy: relative, mean "), HasSubstr(" pixels\n"), HasSubstr("\nerror at most 0.")));
  EXPECT_THAT(Drawn(Frame(), {"--fibres", "3"}), Not(HasSubstr("trace shifts")));
  EXPECT_THAT(RunPython({Script("check_shifts.py"), BinFolder(), Displaced()}), ExitsWith(0));
}

TEST_F(SpexPlot, DrawsRedshiftsOfGalaxies) {
  const std::string best = Drawn(Frame(), {"--sframe", Sframe(), "--redshifts", Redshifts()});
  EXPECT_THAT(best, AllOf(HasSubstr("lines at z"), HasSubstr("their stack"), HasSubstr("GAP")));
  const std::string one = Drawn(Sframe(), {"--redshifts", Redshifts(), "--fibres", "25"});
  EXPECT_THAT(one, AllOf(HasSubstr("fibre 25 "), Not(HasSubstr("fibre 24 "))));
}

TEST_F(SpexPlot, DrawsStarsWithTemplateContinuumResidualAndScan) {
  const std::string velocities = Velocities();
  const Words flags = {"--sframe", Sframe(), "--velocities", velocities, "--redshifts", Redshifts()};
  EXPECT_THAT(
      Drawn(Frame(), flags + Words{"--fibres", "25"}),
      AllOf(HasSubstr("fibre 25 "), HasSubstr("\nbest template\n"), HasSubstr("its continuum (a polynomial)"),
            HasSubstr("\nσ\n"), HasSubstr(" km/s   χ² / bins = "),
            HasSubstr("χ²(v) above its minimum   DCHI2 "), HasSubstr("their stack")));
}

TEST_F(SpexPlot, DrawsJointFitsOverTheArms) {
  const std::string arms = Arms();
  const Words flags = {"--velocities", JointVelocities(), "--redshifts", JointRedshifts()};
  EXPECT_THAT(Drawn(arms, flags + Words{"--targets", "39627000051060001"}),
              AllOf(HasSubstr("\nTARGETID 39627000051060001  ·  fibre 1   v = "), HasSubstr("\nTEFF "),
                    HasSubstr("\nR   S/N "), HasSubstr("\nZ   S/N "), HasSubstr("\n10⁻¹⁷ erg/(s cm² Å)\n"),
                    HasSubstr("\njoint model\n"), HasSubstr("\nR\nZ\nall\n"),
                    HasSubstr("\nvelocity by arm\n"), HasSubstr("their stack")));
  EXPECT_THAT(Drawn(arms, {"--velocities", JointVelocities()}), HasSubstr("\nvelocity by arm\n"));
  EXPECT_THAT(Drawn(arms, flags + Words{"--fibres", "2"}), HasSubstr("  ·  fibre 2 "));
  EXPECT_THAT(
      RunPython(Words{Script("check_ticks.py"), BinFolder(), "plot_products", arms, folder_ / "a.svg"} +
                flags),
      ExitsWith(0));
}

TEST_F(SpexPlot, NamesTheFileThatIsNotOfTheSameSpectra) {
  const TempFolder out;
  const std::string arms = Arms(), other = folder_ / "other.fits";
  ASSERT_THAT(RunPython({Script("arm_spectra.py"), Sframe(), other, "1"}), ExitsWith(0));
  const std::pair<Words, const char*> cases[] = {
      {{other, "--velocities", JointVelocities()}, "rvtab_arms.fits: is not of "},
      {{other, "--redshifts", JointRedshifts()}, "other.fits, which has no TARGETID 39627000051060000"},
      {{arms, "--velocities", JointVelocities(), "--star-models", JointRedshifts()},
       "zlines_arms.fits: not a file of models of spex analyse"},
      {{Frame(), "--velocities", JointVelocities()},
       "rvmod_arms.fits: R_WAVELENGTH is not that of the spectra"},
      {{Frame(), Frame(), "--velocities", JointVelocities()},
       "frames of different cameras are drawn together"},
      {{arms, "--redshifts", Redshifts()}, "z.fits: is of a single frame"},
      {{arms, "--redshifts", JointRedshifts(), "--sframe", Sframe()}, "goes with a single frame"},
      {{arms, "--velocities", JointVelocities(), "--targets", "7"}, "to 39627000051060029, not 7"},
      {{arms, "--velocities", JointVelocities(), "--targets", "7", "--fibres", "3"}, "excludes"},
      {{arms}, "spectra of several arms are drawn with --velocities or --redshifts"},
      {{JointVelocities()}, "name its spectra, and this file with --velocities"},
      {{Frame(), Sframe()}, "sframe.fits: several frames are drawn with --velocities or --redshifts"},
  };
  for (const auto& [flags, message] : cases) {
    EXPECT_THAT(Spex(Words{"plot"} + flags + Words{"-o", out / "a.png"}), ExitsWith(2, HasSubstr(message)));
  }
  std::filesystem::remove(folder_ / "rvmod_arms.fits");
  EXPECT_THAT(Spex({"plot", arms, "--velocities", JointVelocities(), "-o", out / "a.png"}),
              ExitsWith(2, HasSubstr("rvmod_arms.fits")));
  EXPECT_THAT(out.Entries(), IsEmpty());
}

TEST_F(SpexPlot, HasThePullsOfCompare) {
  const std::string one = folder_ / "one.fits";
  ASSERT_EQ(Spex({"-i", input_->image(), "-p", input_->psf(), "-o", one, "-s", "3", "-n", "1"}).code, 0);
  const RunResult compared = Spex({"compare", one, "--truth", input_->truth()});
  const std::string before = "robust sigma ";
  const size_t at = compared.output.find(before);
  ASSERT_NE(at, std::string::npos) << compared.output;
  const std::string sigma = compared.output.substr(at + before.size(), 6);
  EXPECT_THAT(Drawn(one, {"--truth", input_->truth()}), HasSubstr("robust σ " + sigma));
}

TEST_F(SpexPlot, ShowsTheWindowThatIsAskedFor) {
  const std::string pixels = Drawn(Frame(), WithImage() + Words{"--window", "20:60,30:90"});
  EXPECT_THAT(pixels, AllOf(HasSubstr("CCD row"), HasSubstr("in this window"), HasSubstr("\n60\n"),
                            Not(HasSubstr("\n150\n")), Not(HasSubstr("wavelength of fibre"))));
  const std::string spectra =
      Drawn(Frame(), WithImage() + Words{"--psf", input_->psf(), "--window-spectra", "10:13,6630:6650"});
  EXPECT_THAT(spectra, AllOf(HasSubstr("wavelength of fibre 11 (Å)"), HasSubstr("\n6640\n")));
}

TEST_F(SpexPlot, NamesTheReasonsOfMaskedPixels) {
  const std::string whole = Drawn(Frame(), WithImage());
  // The simulator's saturated hole and its cosmic rays.
  EXPECT_THAT(whole, AllOf(HasSubstr("masked pixels in this window:"), HasSubstr("saturated: ")));
}

TEST_F(SpexPlot, KnowsWidthsAndTraces) {
  EXPECT_THAT(RunPython({Script("check_plot_data.py"), BinFolder(), Frame(), input_->psf(), Model()}),
              ExitsWith(0));
}

TEST_F(SpexPlot, LabelsTwoTicksOfEveryAxisAtLeast) {
  const Words check = {Script("check_ticks.py"), BinFolder()};
  const std::string picture = folder_ / "a.svg";
  for (const Words& drawn :
       {Words{},
        Words{"plot_frame", Frame(), picture, "--resolution", "--sframe", Sframe(), "--truth",
              input_->truth(), "--psf", input_->psf()} +
            WithImage(),
        Words{"plot_frame", Displaced(), picture} + WithImage(),
        Words{"plot_products", Frame(), picture, "--sframe", Sframe(), "--redshifts", Redshifts()}}) {
    EXPECT_THAT(RunPython(check + drawn), ExitsWith(0));
  }
}

TEST_F(SpexPlot, RefusesWhatItCannotDrawAndSaysWhy) {
  const TempFolder out;
  const std::string picture = out / "a.png";
  const Words image = Words{"-o", picture} + WithImage();
  const std::pair<Words, const char*> cases[] = {
      {{}, "plot takes -o for a picture, --html for a page, or both"},
      {{"-o", out / "a.html"}, "--html writes a page"},
      {{"-o", picture, "--image", input_->image()}, "--image requires --model"},
      {Words{"--html", out / "a.html"} + WithImage(), "--image requires --output"},
      {image + Words{"--window", "0:9000,0:10"}, "--window 0:9000,0:10: columns 0:9000 are not within 0:"},
      {image + Words{"--window", "9:9,0:10"}, "9:9 is empty"},
      {image + Words{"--window", "all"}, "--window all: expected LOW:HIGH,LOW:HIGH"},
      {image + Words{"--window-spectra", "0:3,6600:6650"}, "--window-spectra requires --psf"},
      {image + Words{"--psf", input_->psf(), "--window-spectra", "0:3,100:200"}, "the PSF has traces from"},
      {image + Words{"--psf", input_->psf(), "--window-spectra", "90:99,6600:6650"}, "but 0 to 29"},
      {image + Words{"--psf", Sky()}, "sky.fits: not a PSF: there is no XTRACE"},
      {{"-o", picture, "--sframe", Sky()}, "sky.fits: not an sframe: it is the sky itself"},
      {{"-o", picture, "--truth", Sky()}, "sky.fits: not a truth"},
      {{"-o", picture, "--truth", out / "none.fits"}, "none.fits"},
      {{"--html", out / "a.html", "--fibres", "3,x"}, "--fibres 3,x: expected numbers"},
      {{"--html", out / "a.html", "--fibres", "77"}, "the frame has 0 to 29, not 77"},
      {{"--html", out / "none/a.html"}, "none"},
      {{"--html", out / "a.html", "--redshifts", Sky()},
       "sky.fits: not a file of spex analyse with an HDU ZLINES"},
      {{"-o", picture, "--redshifts", Redshifts(), "--truth", input_->truth()},
       "a picture of --velocities or"},
      {image + Words{"--redshifts", Redshifts()}, "--image excludes --redshifts"},
      {{"-o", picture, "--redshifts", Sky()}, "sky.fits: not a file of spex analyse with an HDU ZLINES"},
      {{"-o", picture, "--velocities", Redshifts()}, "z.fits: not a file of spex analyse with an HDU RVTAB"},
      {{"-o", picture, "--velocities", out / "none.fits"}, "none.fits"},
  };
  for (const auto& [flags, message] : cases) {
    EXPECT_THAT(Spex(Words{"plot", Frame()} + flags), ExitsWith(2, HasSubstr(message)));
  }
  EXPECT_THAT(out.Entries(), IsEmpty());
}

TEST_F(SpexPlot, WritesAPageBesideAPicture) {
  const TempFolder out;
  EXPECT_THAT(Spex({"plot", Frame(), "-o", out / "a.png", "--html", out / "a.html", "--fibres", "3,17"}),
              ExitsWith(0));
  EXPECT_THAT(out.Entries(), ElementsAre("a.html", "a.png"));
  EXPECT_THAT(ReadBytes(out / "a.html"), AllOf(HasSubstr("\"number\": 3,"), HasSubstr("\"number\": 17,"),
                                               Not(HasSubstr("\"number\": 4,"))));
}

TEST_F(SpexPlot, WritesPagesWithoutMatplotlib) {
  WriteBytes(folder_ / "matplotlib.py", "raise ModuleNotFoundError(\"none\", name=\"matplotlib\")\n");
  ProcessOptions without;
  without.environment = {"PYTHONPATH=" + folder_.path()};
  EXPECT_THAT(Spex({"plot", Frame(), "--html", folder_ / "a.html"}, without), ExitsWith(0));
}

TEST_F(SpexPlot, WritesPagesThatShowInChromium) {
  const std::string frame = folder_ / "odd.fits", page = folder_ / "odd.html";
  ASSERT_THAT(RunPython({Script("odd_frame.py"), Displaced(), frame}), ExitsWith(0));
  ASSERT_THAT(Spex({"plot", frame, "--html", page, "--sframe", Sframe(), "--truth", input_->truth()}),
              ExitsWith(0));
  EXPECT_THAT(ReadBytes(page), Not(HasSubstr("<script>alert")));
  const CommandResult shown = RunPython({Script("check_plot_page.py"), page, frame});
  if (shown.exit_code == kSkipped) GTEST_SKIP() << shown.output;
  EXPECT_EQ(shown.exit_code, 0) << shown.output;
}

TEST(NightReports, TellWhatWentWrongAndNothingOfUsualNights) {
  const TempFolder folder;
  EXPECT_THAT(RunPython({Script("bad_night.py"), BinFolder(), folder / "night.json"}), ExitsWith(0));
}

TEST(NightReports, ArePagesThatShowInChromium) {
  const TempFolder folder;
  const std::string night = folder / "night.json", page = folder / "night.html";
  ASSERT_THAT(RunPython({Script("bad_night.py"), BinFolder(), night}), ExitsWith(0));
  ASSERT_THAT(RunPython({BinFolder() + "/night_page.py", night, page}), ExitsWith(0));
  EXPECT_THAT(ReadBytes(page), Not(HasSubstr("<script>alert")));
  const CommandResult shown = RunPython({Script("check_night_page.py"), page});
  if (shown.exit_code == kSkipped) GTEST_SKIP() << shown.output;
  EXPECT_EQ(shown.exit_code, 0) << shown.output;
}

TEST_F(SpexPlot, WritesPagesWhoseVelocitiesAndRedshiftsShowInChromium) {
  const std::string velocities = Velocities(), page = folder_ / "a.html";
  ASSERT_THAT(Spex({"plot", Frame(), "--html", page, "--sframe", Sframe(), "--velocities", velocities,
                    "--redshifts", Redshifts()}),
              ExitsWith(0));
  const CommandResult shown = RunPython({Script("check_products_page.py"), page, velocities, Redshifts()});
  if (shown.exit_code == kSkipped) GTEST_SKIP() << shown.output;
  EXPECT_EQ(shown.exit_code, 0) << shown.output;
}

TEST_F(SpexPlot, WritesPagesWhoseArmsShowInChromium) {
  const std::string arms = Arms(), page = folder_ / "a.html";
  ASSERT_THAT(Spex({"plot", arms, "--html", page, "--velocities", JointVelocities(), "--redshifts",
                    JointRedshifts()}),
              ExitsWith(0));
  const CommandResult shown = RunPython({Script("check_arms_page.py"), page, arms, JointVelocities()});
  if (shown.exit_code == kSkipped) GTEST_SKIP() << shown.output;
  EXPECT_EQ(shown.exit_code, 0) << shown.output;
}

}  // namespace
}  // namespace spexd::testing
