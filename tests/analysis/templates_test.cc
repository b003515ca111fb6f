// Libraries of templates made from folders of spectra.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/analysis/velocity_units.h"
#include "core/fits/hdu/fits_builder.h"
#include "core/products/inputs/input_outline.h"
#include "core/products/make_templates.h"
#include "core/products/template_file.h"
#include "core/simulate/random.h"
#include "tests/analysis/star_grid.h"
#include "tests/fits/counting_account.h"
#include "tests/support/matchers.h"
#include "tests/support/temp_folder.h"

namespace spexd::testing {
namespace {

constexpr double kFirst = 6000, kLast = 6100;

class TemplatesTest : public ::testing::Test {
 protected:
  static StarGrid Narrow() {
    StarGrid grid;
    grid.first = 5900;
    grid.last = 6200;
    return grid;
  }
  TemplateRequest Request() const {
    TemplateRequest request;
    request.folder = folder_.path();
    request.first = kFirst;
    request.last = kLast;
    request.threads = 2;
    return request;
  }
  std::string Refusal(const TemplateRequest& request) const {
    const auto library = MakeTemplates(request);
    EXPECT_EQ(library.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(library.status().message());
  }
  std::string RefusalOf(const StarGrid& grid) const {
    WriteStarGrid(grid, folder_.path());
    return Refusal(Request());
  }

  TempFolder folder_;
};

// Returns the amplitude of a wave with `cycles` per sample that remains in a library made of spectra of it.
double Left(const std::string& folder, const TemplateRequest& request, double cycles) {
  StarGrid grid;
  grid.first = 5900;
  grid.last = 6200;
  grid.teff = {5000, 6000};
  grid.logg = {4};
  const auto wave = [&](double, double, double, std::vector<double>* flux) {
    for (size_t k = 0; k < flux->size(); ++k) {
      const double at = std::log(grid.first + grid.step * static_cast<double>(k)) / (10 / kLightSpeed);
      (*flux)[k] = 1 + 0.1 * std::cos(2 * 3.141592653589793 * cycles * at);
    }
  };
  WriteStarGrid(grid, folder, wave);
  const TemplateLibrary library = MakeTemplates(request).value();
  double least = library.flux(0, 0), most = least;
  for (const double value : library.flux.Row(0)) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  return 5 * (most - least) / (0.5 * (most + least));
}

TEST_F(TemplatesTest, AreBandLimitedToTheirOwnSamples) {
  EXPECT_NEAR(Left(folder_.path(), Request(), 0.2071), 1, 0.03);
  EXPECT_LT(Left(folder_.path(), Request(), 0.6), 0.01);
}

TEST_F(TemplatesTest, HaveTheSpectraOnAGridThatReachesBeyondTheFrames) {
  StarGrid grid = Narrow();
  grid.step = 0.02;
  WriteStarGrid(grid, folder_.path());
  const TemplateLibrary library = MakeTemplates(Request()).value();
  EXPECT_THAT(library.names, ElementsAre("TEFF", "LOGG", "FEH"));
  EXPECT_THAT(library.axes,
              ElementsAre(ElementsAre(4500, 5500, 6500), ElementsAre(2, 4.5), ElementsAre(-1.5, 0)));
  EXPECT_NEAR(std::exp(library.first_log_wave), kFirst / (1 + 1000 / kLightSpeed) - 13, 1e-6);
  EXPECT_GT(std::exp(library.first_log_wave + library.step * static_cast<double>(library.samples() - 1)),
            kLast * (1 + 1000 / kLightSpeed) + 13);
  EXPECT_TRUE(BinnedTemplates::Make(library, {kFirst, kFirst + 0.8, kLast}, 1000, {}, {}).ok());
}

TEST_F(TemplatesTest, AFileOfWavelengthsInAirGivesTheSameLibraryAsHeadersInVacuum) {
  WriteStarGrid(Narrow(), folder_.path());
  const TemplateLibrary by_headers = MakeTemplates(Request()).value();
  const TempFolder other;
  StarGrid in_air = Narrow();
  in_air.separate_waves = true;
  in_air.type = "AWAV";
  WriteStarGrid(in_air, other.path());
  TemplateRequest request = Request();
  request.folder = other.path();
  const TemplateLibrary by_file = MakeTemplates(request).value();
  ASSERT_EQ(by_headers.flux.shape(), by_file.flux.shape());
  for (int64_t k = 0; k < by_file.flux.size(); ++k) {
    ASSERT_NEAR(by_headers.flux.flat()[k], by_file.flux.flat()[k], 2e-4);
  }
}

TEST_F(TemplatesTest, AreReadAsTheyWereWritten) {
  StarGrid grid = Narrow();
  grid.feh = {0};  // is not a parameter then
  WriteStarGrid(grid, folder_.path());
  const TemplateLibrary made = MakeTemplates(Request()).value();
  EXPECT_THAT(made.names, ElementsAre("TEFF", "LOGG"));
  const std::string path = folder_ / "templates.fits";
  ASSERT_TRUE(WriteTemplates(made, path).ok());
  const TemplateLibrary read = ReadTemplates(Source::FromFile(path).value()).value();
  EXPECT_EQ(made.names, read.names);
  EXPECT_EQ(made.axes, read.axes);
  EXPECT_NEAR(made.first_log_wave, read.first_log_wave, 1e-12);
  EXPECT_NEAR(made.step, read.step, 1e-15);
  for (int64_t k = 0; k < made.flux.size(); ++k) {
    ASSERT_NEAR(made.flux.flat()[k], read.flux.flat()[k], 1e-6);
  }
}

TEST_F(TemplatesTest, AreReadWithTheMemoryThatTheirOutlineAnnounces) {
  WriteStarGrid(Narrow(), folder_.path());
  const std::string path = folder_ / "templates.fits";
  ASSERT_TRUE(WriteTemplates(MakeTemplates(Request()).value(), path).ok());
  const std::string bytes = ReadBytes(path);
  const auto read = [&bytes](int64_t limit) {
    const auto account = std::make_shared<CountingAccount>(limit);
    return ReadTemplates(Source::FromBytes("templates.fits", bytes, {.memory = account}).value()).status();
  };
  const int64_t announced = ReadTemplatesOutline(Source::FromFile(path).value())->decode_bytes;
  EXPECT_TRUE(read(announced).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(read(announced / 2)));
}

// Such a row takes a byte on disk and a hundred in memory.
TEST_F(TemplatesTest, HaveOneRowOfParametersEach) {
  FitsBuilder fits(1 << 16);
  fits.BeginImage("PRIMARY", FLOAT_IMG, {});
  fits.BeginImage("TEMPLATES", FLOAT_IMG, {2, 100});
  fits.Pixels(absl::MakeConstSpan(std::vector<float>(200, 1)));
  fits.BeginTable("PARAMS", 3, {"TEFF"}, {"1B"});
  const std::string bytes = fits.Bytes().value();
  for (const absl::Status& refused :
       {ReadTemplates(Source::FromBytes("t.fits", bytes).value()).status(),
        ReadTemplatesOutline(Source::FromBytes("t.fits", bytes).value()).status()}) {
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("t.fits, HDU PARAMS: has 3 rows, must have one for each of the 2 of TEMPLATES"));
  }
}

// Writes two stars with lines of `sigma` samples at random positions between samples, without any filter.
void WriteSampledAtPoints(double sigma, const std::string& path) {
  constexpr int kSamples = 4000;
  Random random(20261124, 1);
  std::printf("  seed 20261124, lines of %g samples\n", sigma);
  Array<float, 2> flux({2, kSamples}, 1.0f);
  for (double centre = 20; centre < kSamples; centre += random.Uniform(10, 40)) {
    const double depth = random.Uniform(0.05, 0.6);
    for (int64_t row = 0; row < 2; ++row) {
      for (int64_t k = 0; k < kSamples; ++k) {
        const double x = (static_cast<double>(k) - centre) / sigma;
        flux(row, k) *= static_cast<float>(1 - depth / static_cast<double>(row + 1) * std::exp(-0.5 * x * x));
      }
    }
  }
  const TemplateLibrary library =
      MakeTemplateLibrary(std::log(5900), 10 / kLightSpeed, {"TEFF"}, {{4500}, {5500}}, flux).value();
  ASSERT_TRUE(WriteTemplates(library, path).ok());
}

TEST_F(TemplatesTest, ALibraryOfSpectraSharperThanItsSamplesIsNotRead) {
  const std::string path = folder_ / "templates.fits";
  for (const double sigma : {0.1, 0.3}) {
    WriteSampledAtPoints(sigma, path);
    const auto sharp = ReadTemplates(Source::FromFile(path).value());
    EXPECT_EQ(sharp.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(
        std::string(sharp.status().message()),
        AllOf(HasSubstr("the spectrum of TEFF 4500 is not band-limited to its samples every 10 km/s: 1"),
              HasSubstr("lies above 0.47"), HasSubstr("must be at most 5 %")));
  }
  // All of the lines' power is then at low frequencies, or smaller than rounding.
  for (const double sigma : {1.0, 3.0, 30.0}) {
    WriteSampledAtPoints(sigma, path);
    EXPECT_TRUE(ReadTemplates(Source::FromFile(path).value()).ok()) << sigma;
  }
}

TEST_F(TemplatesTest, WhatIsMadeOfSpectraAsSharpAsTheirSamplesIsRead) {
  Random random(20261125, 1);
  std::printf("  seed 20261125\n");
  WriteStarGrid(Narrow(), folder_.path(), [&](double, double, double, std::vector<double>* flux) {
    for (double& value : *flux) value *= 1 + 0.5 * random.Uniform(-1, 1);  // white noise
  });
  const std::string path = folder_ / "templates.fits";
  ASSERT_TRUE(WriteTemplates(MakeTemplates(Request()).value(), path).ok());
  const auto read = ReadTemplates(Source::FromFile(path).value());
  EXPECT_TRUE(read.ok()) << read.status();
}

TEST_F(TemplatesTest, TextsOfALibraryThatCannotBeUsedAreRefusedAndQuotedInPrintableCharacters) {
  const struct {
    std::string good, bad, error;
  } kCases[] = {
      {"AIRORVAC= 'vac     '", "AIRORVAC= 'air     '", "AIRORVAC is air, must be vac"},
      {"AIRORVAC= 'vac     '", "AIRORVAC= '\t2J     '", "AIRORVAC is ?2j, must be vac"},
      {"PARNAM1 = 'TEFF    '", "PARNAM1 = '\t2J     '",
       "PARNAM1 is \"?2J\", must be a short name in printable ASCII"},
      {"PARNAM1 = 'TEFF    '", "PARNAM1 = 'TEFX    '", "there is no column TEFX"},
  };
  WriteStarGrid(Narrow(), folder_.path());
  const std::string path = folder_ / "templates.fits";
  ASSERT_TRUE(WriteTemplates(MakeTemplates(Request()).value(), path).ok());
  const std::string bytes = ReadBytes(path);
  for (const auto& [good, bad, error] : kCases) {
    const size_t at = bytes.find(good);
    ASSERT_NE(at, std::string::npos) << good;
    WriteBytes(path, std::string(bytes).replace(at, good.size(), bad));
    EXPECT_THAT(std::string(ReadTemplates(Source::FromFile(path).value()).status().message()),
                HasSubstr(error));
  }
}

TEST_F(TemplatesTest, WhatIsWrongWithSpectraIsNamed) {
  const std::vector<std::string> paths = WriteStarGrid(Narrow(), folder_.path());
  TemplateRequest request = Request();
  request.last = 6400;
  EXPECT_THAT(Refusal(request),
              HasSubstr("reaches from 5900.0 to 6200.0 Angstrom in vacuum; the library needs"));
  request = Request();
  request.step = 1;
  EXPECT_THAT(Refusal(request), HasSubstr("samples are up to 2.5"));
  request.step = 11;
  EXPECT_THAT(Refusal(request), HasSubstr("step is 11 km/s, must be 0.1 to 10"));
  request = Request();
  request.layout.parameters = {{"TEFF", "TEFF"}};
  EXPECT_THAT(Refusal(request), HasSubstr("TEFF"));
  std::filesystem::remove(paths[4]);  // 5500, 2, -1.5
  EXPECT_THAT(Refusal(Request()),
              HasSubstr("has 12 nodes, there are 11 spectra: none of TEFF 5500, LOGG 2, FEH -1.5"));
  std::filesystem::copy_file(paths[3], paths[4]);
  EXPECT_THAT(Refusal(Request()), AllOf(HasSubstr(paths[4]), HasSubstr("has the parameters of " + paths[3])));
}

TEST_F(TemplatesTest, MixedGridsAreNamed) {
  WriteStarGrid(Narrow(), folder_.path());
  StarGrid shifted = Narrow();
  shifted.first += 0.01;
  shifted.last += 0.01;
  shifted.teff = {7000};
  EXPECT_THAT(RefusalOf(shifted), AllOf(HasSubstr("lte07000-2.00"), HasSubstr("spectra on mixed grids")));
}

TEST_F(TemplatesTest, ValuesThatAreNotFiniteAreNamed) {
  WriteStarGrid(Narrow(), folder_.path(), [](double teff, double, double, std::vector<double>* flux) {
    if (teff == 6500) (*flux)[99] = std::numeric_limits<double>::quiet_NaN();
  });
  EXPECT_THAT(Refusal(Request()), AllOf(HasSubstr("lte06500-2.00"), HasSubstr("sample 100 is nan")));
}

TEST_F(TemplatesTest, WavelengthsMustBeSaidToBeThoseInAirOrInVacuum) {
  StarGrid grid = Narrow();
  grid.type = "";
  EXPECT_THAT(RefusalOf(grid), HasSubstr("air or in vacuum"));
  TemplateRequest request = Request();
  request.layout.medium = Medium::kVacuum;
  EXPECT_TRUE(MakeTemplates(request).ok());
}

TEST(VacuumWavelength, IsThatOfMorton) {
  EXPECT_NEAR(VacuumWavelength(6562.801), 6564.614, 0.002);
  EXPECT_NEAR(VacuumWavelength(5006.843), 5008.240, 0.002);
  EXPECT_EQ(VacuumWavelength(1500), 1500);
}

}  // namespace
}  // namespace spexd::testing
