// The synthetic library: its stars, its file, and the flags that make it.
#include "core/products/synthetic_templates.h"

#include <cmath>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "core/analysis/usable_spectra.h"
#include "core/analysis/velocity/star_model.h"
#include "core/analysis/velocity/velocity.h"
#include "core/analysis/velocity_units.h"
#include "core/fits/hdu/fits_file.h"
#include "core/products/template_file.h"
#include "tests/analysis/made_up_frame.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"
#include "tests/support/temp_folder.h"

namespace spexd::testing {
namespace {

constexpr double kStarLevel = 100, kStarVariance = 4;  // of stars in simulated frames: 50 sigma a bin

// The node of a star: TEFF, LOGG, FEH.
using StarNode = std::vector<double>;

// Returns a frame of 400 bins from `first_wave` on: stars of a library at a velocity, without noise.
Frame SyntheticFrame(const std::vector<StarNode>& stars, double velocity, double first_wave,
                     const TemplateLibrary& library) {
  Frame frame = DarkFrame(static_cast<int>(stars.size()), kStarVariance);
  frame.grid.first = first_wave;
  const BinnedTemplates templates = BinnedTemplates::Make(library, frame.grid.Values(), 1000, {}, {}).value();
  for (size_t k = 0; k < stars.size(); ++k) {
    const StarNode& star = stars[k];
    std::vector<double> light =
        EvaluateStarLight(library, templates, {velocity, star[0], star[1], star[2], 0});
    const double mean = std::accumulate(light.begin(), light.end(), 0.0) / static_cast<double>(light.size());
    for (double& value : light) value *= kStarLevel / mean;
    AddLight(light, static_cast<int>(k), &frame);
  }
  return frame;
}

// Tests a part of each of DESI's arms: H beta, H alpha, the calcium triplet.
class SyntheticStarsOfAnArm : public ::testing::TestWithParam<double> {};

TEST_P(SyntheticStarsOfAnArm, HaveVelocitiesAndParametersThatTheArmAloneTells) {
  constexpr double kVelocity = -217.4;
  const double first = GetParam(), last = first + (kFrameBins - 1) * kWaveStep;
  const TemplateLibrary library =
      MakeSyntheticTemplates({.first = first, .last = last, .threads = 2}).value();
  const std::vector<StarNode> stars = {{4400, 1.6, -1.6}, {5800, 3.7, -0.3}, {6500, 4.2, -1.2}};
  const Frame frame = SyntheticFrame(stars, kVelocity, first, library);
  const auto found = FitVelocities(MakeUsable(frame).value(), {0, 1, 2}, library, {.threads = 2}).value();
  for (size_t k = 0; k < stars.size(); ++k) {
    SCOPED_TRACE(stars[k][0]);
    EXPECT_EQ(found[k].flag, 0);
    EXPECT_NEAR(found[k].v, kVelocity, 0.1 * found[k].error);
    EXPECT_LT(found[k].error, 5) << "km/s";
    EXPECT_GT(found[k].dchi2, 500);
    const double limits[] = {250, 0.8, 0.25};
    for (size_t p = 0; p < stars[k].size(); ++p) {
      EXPECT_NEAR(found[k].parameters[p], stars[k][p], 0.2 * found[k].parameter_errors[p]) << p;
      EXPECT_LT(found[k].parameter_errors[p], limits[p]) << p;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Arms, SyntheticStarsOfAnArm, ::testing::Values(4850, 6400, 8440));

TEST(SyntheticTemplatesTest, AreTheSameWhateverTheRangeAndTheThreads) {
  const SyntheticTemplates narrow = {.first = 5000, .last = 5100};
  const TemplateLibrary one = MakeSyntheticTemplates(narrow).value();
  SyntheticTemplates request = narrow;
  request.threads = 3;
  EXPECT_TRUE(MakeSyntheticTemplates(request)->SameSpectra(one));
  request.last = 5200;
  const TemplateLibrary wide = MakeSyntheticTemplates(request).value();
  for (int64_t row = 0; row < one.templates(); ++row) {
    const double scale = wide.flux(row, 0) / one.flux(row, 0);
    for (int64_t k = 0; k < one.samples(); ++k) {
      ASSERT_NEAR(wide.flux(row, k), scale * one.flux(row, k), 1e-6);
    }
  }
}

TEST(SyntheticTemplatesTest, AreRefusedWhereTheyHaveNoLines) {
  const auto refusal = [](const SyntheticTemplates& request) {
    return std::string(MakeSyntheticTemplates(request).status().message());
  };
  EXPECT_THAT(refusal({.first = 2999, .last = 5000}),
              HasSubstr("the range is 2999 to 5000 Angstrom, must ascend within 3000 to 11000"));
  EXPECT_THAT(refusal({.first = 5000, .last = 5000}), HasSubstr("must ascend"));
  EXPECT_THAT(refusal({.last = std::nan("")}), HasSubstr("must ascend"));
  EXPECT_THAT(refusal({.step = 0.9}), HasSubstr("the step is 0.9 km/s, must be 1 to 10"));
  EXPECT_THAT(refusal({.step = 11}), HasSubstr("the step is 11 km/s, must be 1 to 10"));
}

class SyntheticTemplatesCliTest : public ::testing::Test {
 protected:
  static RunResult Make(const std::vector<std::string>& arguments) {
    return Spex(Joined({"templates", "make"}, arguments));
  }
  void ExpectRefused(const std::vector<std::string>& arguments, const std::string& message) const {
    EXPECT_THAT(Make(Joined({"-o", path_}, arguments)), ExitsWith(2, HasSubstr(message)));
    EXPECT_FALSE(std::filesystem::exists(path_));
  }

  TempFolder folder_;
  const std::string path_ = folder_ / "templates.fits";
};

TEST_F(SyntheticTemplatesCliTest, MakesALibraryForAllArmsThatIsRead) {
  ASSERT_THAT(Make({"--synthetic", "-o", path_}),
              ExitsWith(0, HasSubstr("45 templates of 31825 samples, 10 km/s apart")));
  Process verify({"fitsverify", "-q", path_});
  EXPECT_EQ(verify.Wait(), 0) << verify.output();
  EXPECT_LT(std::filesystem::file_size(path_), 6'000'000u);
  const Source source = Source::FromFile(path_).value();
  EXPECT_EQ(FitsFile::Parse(source)->Get({"TEMPLATES"}).value()->String("RRSUBTYP"), "SYNTHETIC");
  const TemplateLibrary library = ReadTemplates(source).value();
  EXPECT_THAT(library.names, ElementsAre("TEFF", "LOGG", "FEH"));
  EXPECT_THAT(library.axes, ElementsAre(ElementsAre(4000, 4750, 5500, 6250, 7000), ElementsAre(1, 3, 5),
                                        ElementsAre(-2, -0.75, 0.5)));
  const double last = library.first_log_wave + library.step * static_cast<double>(library.samples() - 1);
  EXPECT_LT(std::exp(library.first_log_wave), 3500 / (1 + 1000 / kLightSpeed) - 12.9);
  EXPECT_GT(std::exp(last), 10000 * (1 + 1000 / kLightSpeed) + 12.9);
}

TEST_F(SyntheticTemplatesCliTest, WritesTheSameBytesAgain) {
  const std::vector<std::string> narrow = {"--synthetic", "--range", "5000,5200", "--step", "5", "-q", "-o"};
  ASSERT_THAT(Make(Joined(narrow, {path_})), ExitsWith(0, ""));
  ASSERT_THAT(Make(Joined(narrow, {folder_ / "again.fits", "--threads", "1"})), ExitsWith(0));
  EXPECT_EQ(ReadBytes(path_), ReadBytes(folder_ / "again.fits"));
}

TEST_F(SyntheticTemplatesCliTest, RefusesWhatBelongsToAFolderOfSpectra) {
  ExpectRefused({"--synthetic", folder_.path()}, "folder excludes --synthetic");
  ExpectRefused({"--synthetic", "--medium", "air"}, "--synthetic excludes --medium");
  ExpectRefused({"--synthetic", "--wave", "WAVE.fits"}, "--synthetic excludes --wave");
  ExpectRefused({"--synthetic", "--parameter", "TEFF=T"}, "--synthetic excludes --parameter");
  ExpectRefused({"--synthetic", "--range", "2000,4000"}, "the range is 2000 to 4000 Angstrom");
}

TEST_F(SyntheticTemplatesCliTest, NeedsAFolderAndItsRangeOtherwise) {
  ExpectRefused({"--range", "5760,7620"}, "name a folder of spectra, or give --synthetic");
  ExpectRefused({folder_.path()}, "--range is required with a folder of spectra");
}

}  // namespace
}  // namespace spexd::testing
