// spex coadd of the frames of several cameras, as users run it.
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/fits/hdu/table_file.h"
#include "core/fits/readers.h"
#include "core/fits/writers.h"
#include "tests/analysis/coadd/camera_frames.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

class CoaddCliTest : public ::testing::Test {
 protected:
  // Writes a frame; returns the path of its file.
  std::string Written(const Frame& frame, const std::string& name) const {
    const std::string path = folder_ / name;
    EXPECT_THAT(WriteFrame(frame, path), IsOk());
    return path;
  }
  // Writes targets 10 and 11 and a sky fibre in cameras b, r and z of two exposures; z lacks target 11.
  // Returns the paths.
  std::vector<std::string> Field() const {
    std::vector<std::string> paths;
    for (const int exposure : {1, 2}) {
      for (const char camera : {'b', 'r', 'z'}) {
        std::vector<FibreOfCamera> fibres = {{10, 1}, {99, 7, 0, "SKY"}, {11, 2}};
        if (camera == 'z') fibres.pop_back();
        paths.push_back(Written(FrameOfCamera(camera, exposure, fibres),
                                absl::StrFormat("sframe-%c0-%d.fits", camera, exposure)));
      }
    }
    return paths;
  }
  std::string Output() const { return folder_ / "coadd.fits"; }
  RunResult Coadd(const std::vector<std::string>& arguments) const {
    return Spex(Joined({"coadd", "-o", Output()}, arguments));
  }
  Array<double, 2> Image(const char* hdu) const {
    return ReadImageHduDouble(Source::FromFile(Output()).value(), hdu).value();
  }
  std::vector<double> Column(const char* hdu, const char* column) const {
    return NumberColumn(ReadTableHdu(Source::FromFile(Output()).value(), hdu).value(), column).value();
  }
  void ExpectRefused(const std::vector<std::string>& arguments, const std::string& message) const {
    std::filesystem::remove(Output());
    EXPECT_THAT(Coadd(arguments), ExitsWith(2, HasSubstr(message)));
    EXPECT_FALSE(std::filesystem::exists(Output()));
  }

  TempFolder folder_;
};

TEST_F(CoaddCliTest, WritesAllCamerasToOneFile) {
  ASSERT_THAT(Coadd(Field()), ExitsWith(0, HasSubstr("coadd.fits: 2 targets of 6 frames, arms B, R, Z")));
  Process verify({"fitsverify", "-q", Output()});
  EXPECT_EQ(verify.Wait(), 0) << verify.output();
  EXPECT_THAT(Column("FIBERMAP", "TARGETID"), ElementsAre(10, 11));
  EXPECT_THAT(Column("FIBERMAP", "COADD_NUMEXP"), ElementsAre(2, 2));
  EXPECT_THAT(Column("EXP_FIBERMAP", "EXPID"), ElementsAre(1, 2, 1, 2));
  EXPECT_THAT(Column("SCORES", "MEDIAN_COADD_FLUX_B"), ElementsAre(1, 2));
  EXPECT_THAT(Column("SCORES", "MEDIAN_COADD_FLUX_Z"), ElementsAre(1, 0));
  EXPECT_THAT(Image("R_IVAR").flat(), Each(8));
  EXPECT_THAT(Image("Z_FLUX").Row(1), Each(0));
  EXPECT_THAT(Image("Z_MASK").Row(1), Each(kMaskNoData));
  EXPECT_EQ(Image("Z_WAVELENGTH").size(), GridOfCamera('z').count);
}

TEST_F(CoaddCliTest, WritesTheFileOfOneCameraAsAFrameCanBeRead) {
  const std::vector<std::string> field = Field();
  ASSERT_THAT(Coadd({field[1], field[4]}), ExitsWith(0, HasSubstr("coadd.fits: 2 targets of 2 frames\n")));
  const Frame frame = ReadFrame(Source::FromFile(Output()).value()).value();
  EXPECT_EQ(frame.grid.count, GridOfCamera('r').count);
  EXPECT_DOUBLE_EQ(frame.grid.first, GridOfCamera('r').first);
  EXPECT_THAT(frame.spectra.flux.Row(1), Each(2));
}

TEST_F(CoaddCliTest, TakesAVelocityForEachFrameInTheirOrder) {
  const std::vector<std::string> field = Field();
  const std::string frames[] = {field[0], field[1], field[3], field[4]};  // b, r, b, r
  const auto shifted = [&](const std::string& velocities, const std::vector<std::string>& of) {
    EXPECT_THAT(Coadd(Joined({"--velocities=" + velocities}, of)), ExitsWith(0));
  };
  shifted("0,0,-200,100", {frames[0], frames[1], frames[2], frames[3]});
  const Array<double, 2> blue = Image("B_IVAR"), red = Image("R_IVAR");
  shifted("0,-200", {frames[0], frames[2]});
  EXPECT_EQ(Image("B_IVAR"), blue);
  shifted("0,100", {frames[1], frames[3]});
  EXPECT_EQ(Image("R_IVAR"), red);
  ExpectRefused(Joined({"--velocities=0,1,2"}, {frames[0], frames[1], frames[2], frames[3]}),
                "there are 3 for 4 frames");
}

TEST_F(CoaddCliTest, NamesTheFrameThatDoesNotFit) {
  const std::vector<std::string> field = Field();
  ExpectRefused(Joined(field, {field[4]}),
                "sframe-r0-2.fits: exposure 2 of camera r0 is in the coadd already");
  Frame other = FrameOfCamera('z', 3, {{10, 1}});
  other.grid.step = 0.9;
  ExpectRefused(Joined(field, {Written(other, "other.fits")}),
                "other.fits: its grid is 8500 to 8553.1 Angstrom");
}

}  // namespace
}  // namespace spexd::testing
