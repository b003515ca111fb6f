// spex analyse and spex coadd as users run them, on the frame of the golden products.
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/analysis/velocity_units.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/table_file.h"
#include "core/fits/readers.h"
#include "core/fits/writers.h"
#include "core/frame/barycentric.h"
#include "core/products/analyse.h"
#include "tests/analysis/command_line/star_library.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"
#include "tests/support/scenes/goldens.h"

namespace spexd::testing {
namespace {

class AnalyseCliTest : public ::testing::Test {
 protected:
  std::string Path(const char* name) const { return folder_ / name; }
  std::vector<double> Column(const char* file, const char* hdu, const char* column) const {
    return NumberColumn(ReadTableHdu(Source::FromFile(Path(file)).value(), hdu).value(), column).value();
  }
  void ExpectRefused(const std::vector<std::string>& arguments, const std::string& message) const {
    EXPECT_THAT(Spex(arguments), ExitsWith(2, HasSubstr(message)));
  }

  // Writes a frame as one of another exposure; returns the path of its file.
  std::string AsExposure(int number, const std::string& from) const {
    Frame frame = ReadFrame(Source::FromFile(from).value()).value();
    std::vector<std::string>& cards = frame.origin.image_cards;
    std::erase_if(cards, [](const std::string& card) { return CardKeyword(card) == "EXPID"; });
    cards.push_back(absl::StrFormat("%-80s", absl::StrFormat("EXPID   = %20d", number)));
    const std::string path = folder_ / absl::StrFormat("exposure-%d.fits", number);
    EXPECT_TRUE(WriteFrame(frame, path).ok());
    return path;
  }

  TempFolder folder_;
};

TEST_F(AnalyseCliTest, WritesAllProductsAsFitsFiles) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const std::string from = folder + "/analysis/";
  const RunResult made =
      Spex({"analyse", from + "frame.fits", "--fiberflat", from + "fiberflat.fits", "--sky", Path("sky.fits"),
            "--sframe", Path("sframe.fits"), "--velocity", from + "templates.fits", "--velocity-out",
            Path("rv.fits"), "--lines-out", Path("z.fits")});
  ASSERT_THAT(made, ExitsWith(0, HasSubstr("rv.fits: velocities of 30 targets, 8 without a warning")));
  ASSERT_THAT(Spex({"coadd", AsExposure(1, Path("sframe.fits")), AsExposure(2, Path("sframe.fits")), "-o",
                    Path("coadd.fits")}),
              ExitsWith(0));
  for (const char* name : {"sky.fits", "sframe.fits", "rv.fits", "z.fits", "coadd.fits"}) {
    Process verify({"fitsverify", "-q", Path(name)});
    EXPECT_EQ(verify.Wait(), 0) << verify.output();
  }
  EXPECT_EQ(Column("rv.fits", "RVTAB", "VRAD").size(), 30u);
  EXPECT_EQ(Column("rv.fits", "RVTAB", "TEFF_ERR").size(), 30u);
  EXPECT_EQ(Column("z.fits", "ZLINES", "GAP").size(), 30u);
  for (const double exposures : Column("coadd.fits", "FIBERMAP", "COADD_NUMEXP")) EXPECT_EQ(exposures, 2);
  // Larger than doubles can represent.
  EXPECT_EQ(
      IntegerColumn(ReadTableHdu(Source::FromFile(Path("rv.fits")).value(), "RVTAB").value(), "TARGETID")
          .value()[0],
      39627000000100001);
}

TEST_F(AnalyseCliTest, ACoaddHasTheRedshiftsOfItsFrame) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const std::string from = folder + "/analysis/", coadd = Path("coadd.fits");
  ASSERT_EQ(
      Spex({"analyse", from + "frame.fits", "--sframe", Path("sframe.fits"), "--lines-out", Path("z.fits")})
          .code,
      0);
  ASSERT_EQ(Spex({"coadd", Path("sframe.fits"), "-o", coadd}).code, 0);
  ASSERT_THAT(Spex({"analyse", coadd, "--velocity", from + "templates.fits", "--velocity-out",
                    Path("rv.fits"), "--lines-out", Path("again.fits")}),
              ExitsWith(0));
  const std::vector<double> once = Column("z.fits", "ZLINES", "DCHI2"),
                            again = Column("again.fits", "ZLINES", "DCHI2"),
                            z = Column("again.fits", "ZLINES", "Z");
  ASSERT_EQ(once.size(), again.size());
  size_t compared = 0;
  for (size_t k = 0; k < once.size(); ++k) {
    const double tolerance = 1e-4 * once[k] + 0.01;
    EXPECT_GT(again[k], once[k] - tolerance) << "more redshifts are tried";
    if (z[k] > LineOptions().max_redshift) continue;
    EXPECT_NEAR(once[k], again[k], tolerance);
    ++compared;
  }
  EXPECT_GT(compared, once.size() / 4);
  EXPECT_EQ(Column("rv.fits", "RVTAB", "TARGET_RA").size(), once.size());
  ExpectRefused({"analyse", coadd, "--sky", Path("sky.fits")},
                "coadd.fits: has spectra of targets, which have no sky in them");
}

TEST_F(AnalyseCliTest, AddsFramesOfDifferentVelocities) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const std::string out = Path("coadd.fits"), frame = AsExposure(1, folder + "/analysis/frame.fits"),
                    other = AsExposure(2, frame);
  ASSERT_THAT(Spex({"coadd", frame, other, "--velocities", "0,-17.5", "-o", out}),
              ExitsWith(0, HasSubstr("coadd.fits: 30 targets of 2 frames")));
  Process verify({"fitsverify", "-q", out});
  EXPECT_EQ(verify.Wait(), 0) << verify.output();
  for (const double exposures : Column("coadd.fits", "FIBERMAP", "COADD_NUMEXP")) EXPECT_EQ(exposures, 2);
  // Any column of numbers may serve as velocities: here the numbers of fibres, all below the limit.
  EXPECT_EQ(Spex({"coadd", frame, other, "--velocity-column", "FIBER", "-o", out}).code, 0);
  std::filesystem::remove(out);
  ExpectRefused({"coadd", frame, other, "--velocities", "0", "-o", out}, "there are 1 for 2 frames");
  ExpectRefused({"coadd", frame, other, "--velocities=-400,0", "-o", out},
                "exposure-1.fits: velocity: -400 km/s, must be -300 to 300");
  ExpectRefused({"coadd", frame, other, frame, "--velocities", "0,0,0", "-o", out},
                "exposure-1.fits: exposure 1 of camera");
  ExpectRefused({"coadd", frame, "--velocity-column", "VHELIO", "-o", out}, "VHELIO");
  ExpectRefused({"coadd", frame, "--velocities", "0", "--barycentric", "-o", out}, "--velocities");
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(AnalyseCliTest, BarycentricCoaddsTakeTheVelocityOfEachFramesPointingAndTime) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  Frame frame = ReadFrame(Source::FromFile(folder + "/analysis/frame.fits").value()).value();
  std::vector<std::string> velocities;
  std::vector<std::string> frames = {Path("a.fits"), Path("b.fits")};
  for (size_t k = 0; k < frames.size(); ++k) {
    const Pointing pointing = {120, 20, k == 0 ? 58900.25 : 59050.25};
    frame.origin.image_cards = {absl::StrFormat("%-80s", absl::StrFormat("EXPID   = %20d", k)),
                                absl::StrFormat("%-80s", "TARGTRA =                120.0"),
                                absl::StrFormat("%-80s", "TARGTDEC=                 20.0"),
                                absl::StrFormat("%-80s", absl::StrFormat("MJD-OBS = %20.8f", pointing.mjd)),
                                absl::StrFormat("%-80s", "EXPTIME =                  0.0")};
    ASSERT_TRUE(WriteFrame(frame, frames[k]).ok());
    // Light of wavelength w is seen at w / factor.
    const double factor = BarycentricFactor(pointing).value();
    velocities.push_back(absl::StrFormat("%.12g", kLightSpeed * (1 / factor - 1) / (0.5 * (1 + 1 / factor))));
  }
  const std::string out = Path("coadd.fits"), other = Path("other.fits");
  ASSERT_THAT(Spex({"coadd", frames[0], frames[1], "--barycentric", "-o", out}), ExitsWith(0));
  ASSERT_THAT(
      Spex({"coadd", frames[0], frames[1], "--velocities=" + absl::StrJoin(velocities, ","), "-o", other}),
      ExitsWith(0));
  const auto flux = [](const std::string& path) {
    return ReadImageHduDouble(Source::FromFile(path).value(), "R_FLUX").value();
  };
  EXPECT_GT(std::abs(std::stod(velocities[0]) - std::stod(velocities[1])), 10) << "seasons apart";
  const Array<double, 2> one = flux(out), two = flux(other);
  for (int64_t k = 0; k < one.size(); ++k)
    EXPECT_NEAR(one.flat()[k], two.flat()[k], 1e-4 * std::abs(two.flat()[k]) + 1e-3);

  frame.origin.heliocentric_factor = 1.0001;
  ASSERT_TRUE(WriteFrame(frame, frames[1]).ok());
  const RunResult refused = Spex({"coadd", frames[0], frames[1], "--barycentric", "-o", out});
  EXPECT_THAT(refused.output,
              HasSubstr("b.fits: HELIOCOR is 1.0001: its wavelengths are barycentric already"));
}

TEST_F(AnalyseCliTest, AFrameWithoutSkyAnyMoreGivesTheSameRedshifts) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const std::string from = folder + "/analysis/";
  ASSERT_EQ(
      Spex({"analyse", from + "frame.fits", "--sframe", Path("sframe.fits"), "--lines-out", Path("z.fits")})
          .code,
      0);
  ASSERT_EQ(
      Spex({"analyse", Path("sframe.fits"), "--sky-subtracted", "--lines-out", Path("again.fits")}).code, 0);
  const std::vector<double> once = Column("z.fits", "ZLINES", "DCHI2"),
                            again = Column("again.fits", "ZLINES", "DCHI2");
  for (size_t k = 0; k < once.size(); ++k)
    EXPECT_NEAR(once[k], again[k], 1e-4 * once[k] + 0.01) << "float32 between them";
}

TEST_F(AnalyseCliTest, AnExtractionMakesTheProductsOfItsFrame) {
  ASSERT_EQ(Spex({"simulate", "--fibres", "30", "--rows", "160", "--out-dir", folder_.path()}).code, 0);
  const RunResult extracted = Spex({"-i", Path("preproc-r0.fits"), "-p", Path("psf-r0.fits"), "-o",
                                    Path("frame.fits"), "--device", "cpu", "--sky", Path("sky.fits"),
                                    "--sframe", Path("sframe.fits"), "--lines-out", Path("z.fits")});
  ASSERT_EQ(extracted.code, 0) << extracted.output;
  ASSERT_EQ(Spex({"analyse", Path("frame.fits"), "--sky", Path("again.fits")}).code, 0);
  EXPECT_EQ(ReadBytes(Path("sky.fits")), ReadBytes(Path("again.fits")));
  ExpectRefused({"-i", Path("preproc-r0.fits"), "-p", Path("psf-r0.fits"), "-o", Path("frame.fits"), "--sky",
                 Path("frame.fits")},
                "must have a file of its own");
  ExpectRefused({"-i", Path("preproc-r0.fits"), "-p", Path("psf-r0.fits"), "--output-dir", Path("out"),
                 "--sky", Path("x.fits")},
                "name the products: --products");
}

TEST_F(AnalyseCliTest, AServerMakesTheSameFilesAsThisProcessWould) {
  ASSERT_EQ(Spex({"simulate", "--fibres", "30", "--rows", "160", "--out-dir", folder_.path()}).code, 0);
  WriteStarLibrary({}, Path("templates.fits"));
  const auto extract = [&](const std::string& prefix, std::vector<std::string> where) {
    std::vector<std::string> arguments = {"-i", Path("preproc-r0.fits"),
                                          "-p", Path("psf-r0.fits"),
                                          "-o", Path((prefix + "frame.fits").c_str())};
    for (const auto& [flag, name] : {std::pair("--sky", "sky.fits"),
                                     {"--sframe", "sframe.fits"},
                                     {"--velocity-out", "rv.fits"},
                                     {"--lines-out", "z.fits"}}) {
      arguments.insert(arguments.end(), {flag, Path((prefix + name).c_str())});
    }
    arguments.insert(arguments.end(), {"--velocity", Path("templates.fits")});
    arguments.insert(arguments.end(), where.begin(), where.end());
    return Spex(arguments);
  };
  const RunResult here = extract("here-", {"--device", "cpu"});
  ASSERT_EQ(here.code, 0) << here.output;
  const TestServer server({"--device", "cpu", "--allow-root", folder_.path()});
  for (const bool upload : {false, true}) {
    std::vector<std::string> where = {"--server", server.address()};
    if (upload) where.push_back("--upload");
    const RunResult there = extract("there-", where);
    ASSERT_EQ(there.code, 0) << there.output;
    EXPECT_EQ(there.output.find("makes no products"), std::string::npos) << there.output;
    EXPECT_THAT(there.output, HasSubstr("rv.fits: velocities of"));
    for (const char* name : {"frame.fits", "sky.fits", "sframe.fits", "rv.fits", "z.fits"}) {
      EXPECT_EQ(ReadBytes(Path((std::string("here-") + name).c_str())),
                ReadBytes(Path((std::string("there-") + name).c_str())))
          << name;
    }
  }
}

TEST_F(AnalyseCliTest, AServerKeepsTemplatesAndFiberflatsThatJobsNameByTheirHashes) {
  ASSERT_EQ(Spex({"simulate", "--fibres", "30", "--rows", "160", "--out-dir", folder_.path()}).code, 0);
  WriteStarLibrary({}, Path("templates.fits"));
  const TestServer server({"--device", "cpu"});
  const auto psf = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "psf");
    arguments.insert(arguments.end(), {"--server", server.address()});
    return Spex(arguments);
  };
  const RunResult loaded = psf({"load", Path("templates.fits"), "--kind", "templates", "--upload", "--pin"});
  ASSERT_THAT(loaded, ExitsWith(0, HasSubstr("4 templates of ")));
  const std::string name = loaded.output.substr(loaded.output.find("sha256:"), 7 + 64);
  const RunResult made = Spex({"--server", server.address(), "--upload", "-i", Path("preproc-r0.fits"), "-p",
                               Path("psf-r0.fits"), "-o", Path("frame.fits"), "--velocity", name,
                               "--velocity-out", Path("rv.fits")});
  ASSERT_EQ(made.code, 0) << made.output;
  ASSERT_EQ(Spex({"analyse", Path("frame.fits"), "--velocity", Path("templates.fits"), "--velocity-out",
                  Path("here.fits")})
                .code,
            0);
  EXPECT_EQ(ReadBytes(Path("rv.fits")), ReadBytes(Path("here.fits")));
  const RunResult all = psf({"list"}), templates = psf({"list", "--kind", "templates"});
  EXPECT_EQ(all.output.find("1 PSFs, 1 libraries of templates, "), 0u) << all.output;
  EXPECT_THAT(templates.output, HasSubstr(name));
  EXPECT_EQ(templates.output.find("CCD"), std::string::npos) << templates.output;
  EXPECT_EQ(psf({"unload", name.substr(0, 7 + 12)}).code, 0);
  EXPECT_EQ(psf({"unload", name}).code, 2) << "it has gone";
  ASSERT_EQ(psf({"load", Path("templates.fits"), "--kind", "templates", "--upload"}).code, 0);
  EXPECT_EQ(psf({"unload", name}).code, 0);
  EXPECT_THAT(psf({"load", Path("templates.fits"), "--kind", "fiberflat", "--upload"}),
              ExitsWith(2, HasSubstr("no HDU FIBERFLAT")));
  EXPECT_EQ(psf({"load", Path("templates.fits"), "--kind", "lamp"}).code, 2);
}

TEST_F(AnalyseCliTest, WhatCannotBeMadeIsNamedAndNothingIsWritten) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const std::string from = folder + "/analysis/", frame = from + "frame.fits";
  ExpectRefused({"analyse", frame}, "no product is asked for");
  ExpectRefused({"analyse", frame, "--velocity-out", Path("rv.fits")},
                "--velocity TEMPLATES and --velocity-out FILE");
  ExpectRefused({"analyse", frame, "--sky-subtracted", "--sky", Path("sky.fits")}, "no sky left");
  ExpectRefused({"analyse", frame, "--sky", Path("a.fits"), "--sframe", Path("a.fits")},
                "must have a file of its own");
  ExpectRefused({"analyse", frame, "--sky", frame}, "must have a file of its own");
  ExpectRefused({"analyse", frame, "--fiberflat", from + "truth.fits", "--sky", Path("sky.fits")},
                "no HDU FIBERFLAT");
  ExpectRefused({"analyse", frame, "--velocity", from + "truth.fits", "--velocity-out", Path("rv.fits")},
                "no HDU TEMPLATES");
  ExpectRefused({"analyse", from + "coadd-input.fits", "--sky", Path("sky.fits")}, "coadd-input.fits");
  ExpectRefused({"coadd", from + "templates.fits", "-o", Path("c.fits")}, "templates.fits");
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(AnalyseCliTest, AFrameWhoseFibermapHasMoreRowsThanSpectraIsRefused) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const std::string frame = Path("frame.fits");
  const std::string script =
      "import sys\nfrom astropy.io import fits\nhdus = fits.open(sys.argv[1])\n"
      "table = hdus['FIBERMAP'].columns\n"
      "more = fits.BinTableHDU.from_columns(table, nrows=1200, name='FIBERMAP')\n"
      "hdus[hdus.index_of('FIBERMAP')] = more\nhdus.writeto(sys.argv[2])\n";
  Process python({"/usr/bin/python3", "-c", script, folder + "/analysis/frame.fits", frame});
  ASSERT_EQ(python.Wait(), 0) << python.output();
  const std::string message = "HDU FIBERMAP: has 1200 rows, must have one for each of the 40 spectra of FLUX";
  ExpectRefused({"analyse", frame, "--sky", Path("sky.fits")}, message);
  ExpectRefused({"coadd", frame, frame, "-o", Path("c.fits")}, message);
  ExpectRefused({"pca", frame, frame, "-o", Path("p.fits")}, message);
  Frame read = ReadFrame(Source::FromFile(folder + "/analysis/frame.fits").value()).value();
  read.origin.fibermap = read.origin.fibermap->Sliced(0, 7);
  EXPECT_EQ(FibreKindsOf(read).status().message(),
            "frame: FIBERMAP has 7 rows, must have one for each of the 40 spectra");
}

}  // namespace
}  // namespace spexd::testing
