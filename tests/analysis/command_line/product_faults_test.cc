// spex when a product cannot be computed: it gives the reason and still writes the spectra, and the products
// that do not need what is missing.
#include <filesystem>
#include <string>
#include <vector>

#include "core/fits/hdu/fits_builder.h"
#include "tests/analysis/command_line/star_library.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"
#include "tests/support/temp_folder.h"

namespace spexd::testing {
namespace {

class ProductFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(Spex({"simulate", "--fibres", "30", "--rows", "160", "--out-dir", folder_.path()}).code, 0);
  }
  RunResult Extract(const std::string& frame, const std::vector<std::string>& more) const {
    std::vector<std::string> arguments =
        Joined({"-i", folder_ / "preproc-r0.fits", "-p", folder_ / "psf-r0.fits", "-o", folder_ / frame,
                "--device", "cpu"},
               more);
    return Spex(arguments);
  }
  std::vector<std::string> AllProducts(const std::string& templates) const {
    return {"--velocity",  folder_ / templates, "--velocity-out", folder_ / "rv.fits",
            "--lines-out", folder_ / "z.fits",  "--sky",          folder_ / "sky.fits"};
  }
  // Extracts with products, and without. `others`: whether sky and redshifts are made.
  void ExpectError(const std::string& message, const std::vector<std::string>& products, bool others,
                   const std::vector<std::string>& fibres = {}) const {
    for (const char* name : {"plain.fits", "frame.fits", "sky.fits", "z.fits", "rv.fits"})
      std::filesystem::remove(folder_ / name);
    ASSERT_EQ(Extract("plain.fits", fibres).code, 0);
    EXPECT_THAT(Extract("frame.fits", Joined(fibres, products)), ExitsWith(2, HasSubstr(message)));
    EXPECT_EQ(ReadBytes(folder_ / "frame.fits"), ReadBytes(folder_ / "plain.fits"));
    EXPECT_EQ(std::filesystem::exists(folder_ / "sky.fits"), others);
    EXPECT_EQ(std::filesystem::exists(folder_ / "z.fits"), others);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "rv.fits"));
  }

  TempFolder folder_;
};

TEST_F(ProductFaults, TemplatesThatCannotBeUsedAreAnErrorOfTheVelocitiesAlone) {
  const struct {
    StarLibrary library;
    const char* message;
  } faults[] = {
      {{.hole = true}, "the grid of parameters has 4 nodes, there are 3 spectra: none of TEFF 5500, LOGG 4"},
      {{.first = 6600, .last = 6700}, "at velocities up to 1000 km/s need more"},
      {{.phase_per_sample = 3}, "is not band-limited to its samples every 10 km/s"},
      {{.nan = true}, "templates: row 1 has values that are not finite"},
  };
  for (const auto& fault : faults) {
    WriteStarLibrary(fault.library, folder_ / "templates.fits");
    ExpectError(fault.message, AllProducts("templates.fits"), /*others=*/true);
  }
  ExpectError("none.fits: No such file", AllProducts("none.fits"), /*others=*/true);
}

TEST_F(ProductFaults, WithoutSkyFibresOrWithAFiberflatOfAnotherShapeOnlyTheSpectraAreWritten) {
  WriteStarLibrary({}, folder_ / "templates.fits");
  // Fibres 3, 13 and 23 are sky fibres.
  ExpectError("sky: no sky fibre has data", AllProducts("templates.fits"), /*others=*/false,
              {"-s", "4", "-n", "5"});
  FitsBuilder fits(1 << 16);
  const std::vector<float> ones(30 * 7, 1);
  fits.BeginImage("FIBERFLAT", FLOAT_IMG, {30, 7});
  fits.Pixels(absl::MakeConstSpan(ones));
  ASSERT_TRUE(fits.Write(folder_ / "fiberflat.fits").ok());
  ExpectError("has 7 wavelengths, must have the 93 of the frame",
              Joined(AllProducts("templates.fits"), {"--fiberflat", folder_ / "fiberflat.fits"}),
              /*others=*/false);
}

}  // namespace
}  // namespace spexd::testing
