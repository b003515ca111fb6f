// spex analyse of files of spectra and of the frames of an exposure's cameras, as users run it.
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/analysis/velocity/velocity.h"
#include "core/fits/hdu/fits_builder.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/hdu/table.h"
#include "core/fits/hdu/table_file.h"
#include "core/fits/readers.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"
#include "tests/support/scenes/goldens.h"

namespace spexd::testing {
namespace {

constexpr char kCoadd[] = "coadd-main-dark-1.fits", kCombined[] = "coaddbr-main-dark-1.fits.gz",
               kExposures[] = "spectra-main-dark-1.fits.gz";
// Warnings that do not depend on where a fit ends.
constexpr int kSureWarnings =
    kVelocityNoStar | kVelocityAtEdge | kVelocityUncertain | kVelocityNoData | kVelocityAmbiguous;

RawTable ReadTable(const std::string& path, const std::string& hdu) {
  return ReadTableHdu(Source::FromFile(path).value(), hdu).value();
}

std::vector<double> ColumnValues(const RawTable& table, const char* column) {
  return NumberColumn(table, column).value();
}

std::vector<bool> Logicals(const std::string& path, const std::string& hdu, const char* column) {
  const Source source = Source::FromFile(path).value();
  const FitsFile file = FitsFile::Parse(source).value();
  const TableView view = TableView::Make(*file.Get({hdu}).value()).value();
  const Column& found = *view.Get(column).value();
  std::vector<bool> values;
  for (int64_t row = 0; row < view.rows(); ++row) values.push_back(view.Cell(row, found)[0] == 'T');
  return values;
}

// Uses the tolerances of the reference's own README.
void ExpectVelocities(const std::string& path, const std::string& reference, const std::string& unit) {
  SCOPED_TRACE(path);
  const RawTable table = ReadTable(path, "RVTAB"), expected = ReadTable(reference, unit);
  EXPECT_EQ(IntegerColumn(table, "TARGETID").value(), IntegerColumn(expected, "TARGETID").value());
  const std::vector<double> v = ColumnValues(table, "VRAD"), bins = ColumnValues(table, "NPIX_TOT"),
                            warnings = ColumnValues(table, "RVS_WARN"),
                            expected_v = ColumnValues(expected, "V"), error = ColumnValues(expected, "VERR"),
                            dchi2 = ColumnValues(expected, "DCHI2"), flags = ColumnValues(expected, "FLAG");
  const std::vector<bool> stable = Logicals(reference, unit, "STABLE");
  EXPECT_EQ(bins, ColumnValues(expected, "NBIN"));
  ASSERT_EQ(v.size(), expected_v.size());
  for (size_t row = 0; row < v.size(); ++row) {
    SCOPED_TRACE(row);
    EXPECT_EQ(static_cast<int>(warnings[row]) & kSureWarnings, static_cast<int>(flags[row]) & kSureWarnings);
    if (stable[row] && dchi2[row] > kSafeDchi2) {
      EXPECT_NEAR(v[row], expected_v[row], 0.02 * error[row]);
    }
  }
}

void ExpectRedshifts(const std::string& path, const std::string& reference, const std::string& unit) {
  SCOPED_TRACE(path);
  const RawTable table = ReadTable(path, "ZLINES"), expected = ReadTable(reference, "Z_" + unit);
  const std::vector<double> z = ColumnValues(table, "Z"), gap = ColumnValues(table, "GAP"),
                            expected_z = ColumnValues(expected, "Z"),
                            expected_gap = ColumnValues(expected, "GAP");
  ASSERT_EQ(z.size(), expected_z.size());
  for (size_t row = 0; row < z.size(); ++row) {
    SCOPED_TRACE(row);
    EXPECT_NEAR(gap[row], expected_gap[row], 1e-6 + 1e-6 * expected_gap[row]);
    if (expected_gap[row] > 1) {
      EXPECT_NEAR(z[row], expected_z[row], 1e-7);
    }
  }
}

class JointCliTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_ / name; }
  std::string Out(const std::string& name) const { return Path("out/" + name); }
  void ExpectRefused(const std::vector<std::string>& arguments, const std::string& message) const {
    EXPECT_THAT(Spex(Joined({"analyse"}, arguments)), ExitsWith(2, HasSubstr(message)));
    EXPECT_FALSE(std::filesystem::exists(Path("out"))) << message;
  }

  TempFolder folder_;
};

class JointCliGolden : public JointCliTest {
 protected:
  // Computes velocities and redshifts of these reference files, into the folder out.
  RunResult Analyse(const std::string& arms, const std::vector<std::string>& files,
                    const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"analyse"};
    for (const std::string& file : files) arguments.push_back(arms + file);
    return Spex(Joined(
        Joined(arguments, {"--velocity", arms + "templates.fits", "--output-dir", Path("out")}), more));
  }
};

TEST_F(JointCliGolden, ACoaddIsAnalysedInAllItsArms) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const std::string arms = folder + "/arms/";
  EXPECT_THAT(Analyse(arms, {kCoadd}, {"--lines"}),
              ExitsWith(0, AllOf(HasSubstr("rvtab_coadd-main-dark-1.fits: velocities of 6 targets, "),
                                 HasSubstr("zlines_coadd-main-dark-1.fits: redshifts of 6 targets, "))));
  ExpectVelocities(Out("rvtab_coadd-main-dark-1.fits"), arms + "expected.fits", "COADD");
  ExpectRedshifts(Out("zlines_coadd-main-dark-1.fits"), arms + "expected.fits", "COADD");
  for (const char* const product : {"rvtab", "rvmod", "zlines"}) {
    Process verify({"fitsverify", "-q", Out(absl::StrCat(product, "_coadd-main-dark-1.fits"))});
    EXPECT_EQ(verify.Wait(), 0) << verify.output();
  }
}

TEST_F(JointCliGolden, CombinedCamerasAreCutAgain) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const std::string arms = folder + "/arms/";
  EXPECT_THAT(Analyse(arms, {kCombined}, {"--lines"}), ExitsWith(0));
  ExpectVelocities(Out("rvtab_coaddbr-main-dark-1.fits"), arms + "expected.fits", "COADDBR");
  ExpectRedshifts(Out("zlines_coaddbr-main-dark-1.fits"), arms + "expected.fits", "COADDBR");
}

TEST_F(JointCliGolden, ExposuresAreAnalysedEachAloneOrThoseOfATargetTogether) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const std::string arms = folder + "/arms/";
  EXPECT_THAT(Analyse(arms, {kExposures}, {"--lines"}), ExitsWith(0, HasSubstr("velocities of 6 targets")));
  ExpectVelocities(Out("rvtab_spectra-main-dark-1.fits"), arms + "expected.fits", "EXPOSURES");
  ExpectRedshifts(Out("zlines_spectra-main-dark-1.fits"), arms + "expected.fits", "EXPOSURES");
  EXPECT_THAT(Analyse(arms, {kExposures}, {"--lines", "--per-target"}),
              ExitsWith(0, HasSubstr("velocities of 3 targets")));
  ExpectVelocities(Out("rvtab_spectra-main-dark-1.fits"), arms + "expected.fits", "TARGETS");
  ExpectRedshifts(Out("zlines_spectra-main-dark-1.fits"), arms + "expected.fits", "TARGETS");
}

TEST_F(JointCliGolden, FramesOfOneExposureAreAnalysedTogetherInAnyOrder) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const std::string arms = folder + "/arms/", b = "sframe-b0-00001000.fits", r = "sframe-r0-00001000.fits",
                    z = "sframe-z0-00001000.fits";
  const std::string velocities = Out("rvtab_sframe-b0-00001000.fits");
  ASSERT_THAT(Analyse(arms, {z, b, r}, {"--lines"}), ExitsWith(0));
  ExpectVelocities(velocities, arms + "expected.fits", "FRAMES");
  ExpectRedshifts(Out("zlines_sframe-b0-00001000.fits"), arms + "expected.fits", "FRAMES");
  const std::string first = ReadBytes(velocities);
  ASSERT_THAT(Analyse(arms, {r, z, b}, {"--threads", "1"}), ExitsWith(0));
  EXPECT_TRUE(first == ReadBytes(velocities));
}

TEST_F(JointCliGolden, ABadFileFailsAloneAndTheStatusFileTellsOfAll) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const std::string arms = folder + "/arms/", bad = Path("bad.fits"), status = Path("status.txt");
  WriteBytes(bad, "no FITS file\n");
  const std::vector<std::string> more = {"--targetid", "39627000000101002,39627000000101501",
                                         "--process_status_file", status};
  const RunResult made = Analyse(arms, {kCoadd, kExposures}, Joined({bad, "--skipexisting"}, more));
  EXPECT_THAT(made,
              ExitsWith(1, AllOf(HasSubstr("spex: " + bad),
                                 HasSubstr("rvtab_coadd-main-dark-1.fits: velocities of 1 targets"),
                                 HasSubstr("rvtab_spectra-main-dark-1.fits: velocities of 2 targets"))));
  EXPECT_THAT(ReadBytes(status),
              AllOf(HasSubstr(bad + " FAILURE 0 "), HasSubstr(arms + kCoadd + " SUCCESS 1 "),
                    HasSubstr(arms + kExposures + " SUCCESS 2 ")));
  // The second time, existing files stay.
  EXPECT_THAT(Analyse(arms, {kCoadd}, Joined({"--skipexisting", "--quiet"}, more)), ExitsWith(0, ""));
  EXPECT_EQ(ReadBytes(status), arms + kCoadd + " EXISTING -1 0.00\n");
  EXPECT_THAT(Spex({"analyse", bad, "--lines", "--output-dir", Path("out")}), ExitsWith(1, HasSubstr(bad)));
}

TEST_F(JointCliGolden, FlagsOfRvsDesiFitSelectRowsAndArmsInBothSpellings) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const std::string arms = folder + "/arms/", list = Path("list.txt"), targets = Path("targets.txt");
  WriteBytes(list, arms + kCoadd + "\n\n");
  WriteBytes(targets, "39627000000101000\n39627000000101004\n");
  const RunResult made = Spex({"analyse",
                               "--input_file_from",
                               list,
                               "--velocity",
                               arms + "templates.fits",
                               "--output_dir",
                               Path("out"),
                               "--output_tab_prefix",
                               "tab",
                               "--fitarm",
                               "b,r",
                               "--targetid_file_from",
                               targets,
                               "--npoly",
                               "6",
                               "--resolution_matrix",
                               "--no_subdirs",
                               "--nthreads",
                               "2",
                               "--exclude",
                               "none"});
  ASSERT_THAT(made, ExitsWith(0, HasSubstr("tab_coadd-main-dark-1.fits: velocities of 2 targets")));
  const RawTable table = ReadTable(Out("tab_coadd-main-dark-1.fits"), "RVTAB");
  EXPECT_TRUE(HasColumn(table, "CHISQ_B") && HasColumn(table, "CHISQ_R"));
  EXPECT_FALSE(HasColumn(table, "CHISQ_Z"));
  // Files without any row are made all the same.
  EXPECT_THAT(Analyse(arms, {kCoadd}, {"--targetid", "5", "--lines"}),
              ExitsWith(0, AllOf(HasSubstr("rvtab_coadd-main-dark-1.fits: no row is selected"),
                                 HasSubstr("zlines_coadd-main-dark-1.fits: no row is selected"))));
  EXPECT_EQ(ReadTable(Out("rvtab_coadd-main-dark-1.fits"), "RVTAB").rows, 0);
  EXPECT_THAT(Analyse(arms, {kCombined}, {"--fitarm", "b"}),
              ExitsWith(1, HasSubstr("the arm BR is of several")));
  EXPECT_THAT(Analyse(arms, {kCoadd}, {"--zbest-select"}), ExitsWith(1, HasSubstr("no file redrock-*")));
}

TEST_F(JointCliGolden, ExcludedWavelengthsHaveNoWeight) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const std::string arms = folder + "/arms/";
  const auto bins = [&](const std::vector<std::string>& exclude) {
    EXPECT_THAT(Analyse(arms, {kCoadd}, Joined({"--targetid", "39627000000101000"}, exclude)), ExitsWith(0));
    return ColumnValues(ReadTable(Out("rvtab_coadd-main-dark-1.fits"), "RVTAB"), "NPIX_TOT").at(0);
  };
  const double all = bins({}), some = bins({"--exclude", "5300,5400", "--exclude", "6000,6100"});
  EXPECT_LT(some, all - 200);
}

TEST_F(JointCliGolden, OneFileMayNameItsProducts) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const std::string arms = folder + "/arms/", coadd = arms + kCoadd;
  const std::vector<std::string> velocity = {"--velocity", arms + "templates.fits"},
                                 names = {"--velocity-out", Path("rv.fits"), "--lines-out", Path("z.fits")};
  ASSERT_THAT(Spex(Joined(Joined({"analyse", coadd}, velocity), names)),
              ExitsWith(0, HasSubstr("rv.fits: velocities of 6 targets")));
  ExpectVelocities(Path("rv.fits"), arms + "expected.fits", "COADD");
  ExpectRedshifts(Path("z.fits"), arms + "expected.fits", "COADD");
  ASSERT_THAT(Spex(Joined({"analyse", coadd, "--model-out", Path("models.fits")}, velocity)),
              ExitsWith(0, HasSubstr("models.fits: models of 6 targets")));
  EXPECT_EQ(ReadImageHduDouble(Source::FromFile(Path("models.fits")).value(), "B_MODEL").value().shape(0), 6);
  ExpectRefused(Joined(Joined({coadd, arms + kExposures}, velocity), names),
                "2 files make 2 sets of products; give --output-dir");
  ExpectRefused({coadd, "--sky", Path("sky.fits")}, "have no sky in them");
  ExpectRefused({coadd, coadd, "--lines", "--output-dir", Path("out")}, "must have a file of its own");
  ExpectRefused({coadd, "--lines", "--output-dir", Path("out"), "--process-status-file", coadd},
                "must be a file of its own");
}

TEST_F(JointCliTest, FramesWithTheSkyLoseTheirOwnFirst) {
  for (const std::string camera : {"b", "r"}) {
    ASSERT_EQ(Spex({"simulate", "--camera", camera, "--fibres", "30", "--rows", "160", "--seed", "5",
                    "--out-dir", folder_.path()})
                  .code,
              0);
    const std::string name = camera + "0.fits", frame = Path("frame-" + name);
    ASSERT_EQ(Spex({"-q", "-i", Path("preproc-" + name), "-p", Path("psf-" + name), "-o", frame, "--device",
                    "cpu", "--sframe", Path("sframe-" + name)})
                  .code,
              0);
  }
  const auto redshifts = [&](const std::string& kind, const std::vector<std::string>& more) {
    EXPECT_THAT(Spex(Joined({"analyse", Path(kind + "-r0.fits"), Path(kind + "-b0.fits"), "--lines",
                             "--output-dir", Path("out")},
                            more)),
                ExitsWith(0, HasSubstr("zlines_" + kind + "-b0.fits: redshifts of 27 targets")));
    return ColumnValues(ReadTable(Out("zlines_" + kind + "-b0.fits"), "ZLINES"), "DCHI2");
  };
  const std::vector<double> with_sky = redshifts("frame", {});
  EXPECT_EQ(with_sky, redshifts("sframe", {}));
  EXPECT_NE(with_sky, redshifts("frame", {"--sky-subtracted"}));

  // Each camera has its fiberflat. A fiberflat without a camera applies to all cameras, but must then be the
  // only one.
  const auto flat = [&](const std::string& name, const std::string& camera) {
    const Frame frame = ReadFrame(Source::FromFile(Path("frame-b0.fits")).value()).value();
    const auto bins = static_cast<size_t>(frame.grid.count);
    FitsBuilder fits(1 << 20);
    const std::vector<float> ones(30 * bins, 1);
    fits.BeginImage("FIBERFLAT", FLOAT_IMG, {30, frame.grid.count});
    if (!camera.empty()) fits.Text("CAMERA", camera, "");
    fits.Pixels(absl::MakeConstSpan(ones));
    EXPECT_TRUE(fits.Write(Path(name)).ok());
    return Path(name);
  };
  const std::string of_b = flat("flat-b0.fits", "b0"), again = flat("flat-again.fits", "B0"),
                    of_all = flat("flat.fits", "");
  std::filesystem::remove_all(Path("out"));
  const std::vector<std::string> frames = {Path("frame-b0.fits"), "--sky-subtracted", "--lines",
                                           "--output-dir",        Path("out"),        "--fiberflat"};
  const auto analyse = [&](const std::vector<std::string>& more) { return Spex(Joined({"analyse"}, more)); };
  EXPECT_THAT(analyse(Joined(frames, {of_b, "--fiberflat", again})),
              ExitsWith(2, HasSubstr("flat-again.fits: is of camera")));
  EXPECT_THAT(analyse(Joined(frames, {of_b, "--fiberflat", of_all})),
              ExitsWith(2, HasSubstr("flat.fits: HDU FIBERFLAT has no CAMERA")));
  EXPECT_THAT(analyse(Joined(frames, {of_b})), ExitsWith(1, HasSubstr("has no sky in it")));
  EXPECT_THAT(analyse({Path("frame-b0.fits"), "--lines", "--output-dir", Path("out"), "--fiberflat", of_b}),
              ExitsWith(0));
  EXPECT_THAT(analyse({Path("frame-r0.fits"), "--lines", "--output-dir", Path("out"), "--fiberflat", of_b}),
              ExitsWith(1, HasSubstr("of which no --fiberflat is")));
}

TEST_F(JointCliTest, FlagsThatCannotBeMetAreNamedBeforeAnyFileIsRead) {
  const std::vector<std::string> lines = {"none.fits", "--lines", "--output-dir", Path("out")};
  const auto with = [&](const std::vector<std::string>& more) { return Joined(lines, more); };
  ExpectRefused(with({"--config", "rvs.yaml"}), "--config of rvs_desi_fit: --velocity names");
  ExpectRefused(with({"--overwrite"}), "--skipexisting leaves");
  ExpectRefused(with({"--no-resolution_matrix"}), "the resolution is always used");
  ExpectRefused(with({"--queue_file"}), "--input-file-from");
  ExpectRefused(with({"--fitarm", "b,g"}), "--fitarm: g,");
  ExpectRefused(with({"--exclude", "4450,4300"}), "must be FIRST,LAST");
  ExpectRefused(with({"--exclude", "none", "--exclude", "4300,4450"}), "none goes with no other");
  ExpectRefused(with({"--npoly", "0"}), "--npoly");
  ExpectRefused(with({"--targetid", "star"}), "--targetid");
  ExpectRefused(with({"--targetid", "1", "--targetid-file-from", "ids.txt"}), "give one of them");
  ExpectRefused(with({"--velocity-out", Path("rv.fits")}), "--output-dir names all files");
  ExpectRefused(with({"--sky", Path("sky.fits")}), "are made of a single frame");
  ExpectRefused(with({"--input-file-from", "list.txt"}), "none.fits is given too");
  ExpectRefused({"none.fits", "--output-dir", Path("out")}, "no product is asked for");
  ExpectRefused({"none.fits", "--lines"}, "name the file with --lines-out");
  ExpectRefused({"none.fits", "--per-target", "--velocity", "t.fits"},
                "--velocity TEMPLATES and --velocity-out FILE");
  ExpectRefused({"--lines", "--output-dir", Path("out")}, "no file is given");
}

}  // namespace
}  // namespace spexd::testing
