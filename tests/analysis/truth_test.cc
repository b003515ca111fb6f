// From sources whose truth is known to products, as users go: templates, frames, spectra, sky, velocities,
// redshifts. SPEXD_TRUTH_FRAMES=4 tries four frames of 200 fibres over the whole camera instead of a small
// one: 520 stars and 200 emitters.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/analysis/lines/emission_lines.h"
#include "core/analysis/usable_spectra.h"
#include "core/analysis/velocity_units.h"
#include "core/fits/hdu/table_file.h"
#include "core/fits/readers.h"
#include "core/products/analyse.h"
#include "tests/analysis/star_grid.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"
#include "tests/support/temp_folder.h"

namespace spexd::testing {
namespace {

// How much is tried, and the wavelengths of it.
struct Scale {
  int frames = 1;
  bool full = false;
  std::vector<std::string> scene = {"--fibres",     "50", "--rows",     "2400",
                                    "--sky-fibres", "8",  "--emitters", "14"};
  std::string range = "5990,7300";           // of the light
  std::string wavelength = "6020,7270,0.8";  // of the spectra
};

Scale ScaleOf(const char* frames) {
  Scale scale;
  if (frames == nullptr) return scale;
  scale.full = true;
  EXPECT_TRUE(absl::SimpleAtoi(frames, &scale.frames) && scale.frames > 0)
      << "SPEXD_TRUTH_FRAMES: " << frames;
  scale.scene = {"--fibres", "200", "--sky-fibres", "20", "--emitters", "50"};
  scale.range = "5530,7760";
  scale.wavelength = "5760,7620,0.8";
  return scale;
}

// What was measured of all frames.
struct Results {
  std::vector<double> pulls;  // of velocities with DCHI2 > 9
  int stars = 0, emitters = 0, sky_fibres = 0;
  int outliers = 0;  // stars without a warning far off
  int accepted = 0, wrong = 0, secure = 0,
      wrong_secure = 0;  // redshifts of emitters with ZWARN 0, and GAP > 25
  double highest_sky_gap = 0;
};

double RobustSigma(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double last = static_cast<double>(values.size() - 1);
  const auto at = [&](double part) { return values[static_cast<size_t>(std::lround(part * last))]; };
  return 0.5 * (at(0.8413) - at(0.1587));
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

class TruthTest : public ::testing::Test {
 protected:
  void MakeTemplates(const Scale& scale) {
    WriteStarGrid({}, stars_.path());
    Run({"templates", "make", stars_.path(), "--range", scale.range, "-o", Path("templates.fits")});
    Process verify({"fitsverify", "-q", Path("templates.fits")});
    EXPECT_EQ(verify.Wait(), 0) << verify.output();
  }
  std::string Run(const std::vector<std::string>& arguments) const {
    const RunResult run = Spex(arguments);
    EXPECT_EQ(run.code, 0) << run.output;
    return run.output;
  }
  std::string Path(const std::string& name) const { return folder_ / name; }
  RawTable Table(const char* file, const char* hdu) const {
    return ReadTableHdu(Source::FromFile(Path(file)).value(), hdu).value();
  }
  void Simulate(const Scale& scale, int seed, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"simulate",       "--stars",          Path("templates.fits"),
                                          "--seed",         absl::StrCat(seed), "-w",
                                          scale.wavelength, "--out-dir",        folder_.path()};
    arguments.insert(arguments.end(), scale.scene.begin(), scale.scene.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    Run(arguments);
  }
  void Extract(const Scale& scale, const std::vector<std::string>& products) const {
    std::vector<std::string> arguments =
        Joined({"-i", Path("preproc-r0.fits"), "-p", Path("psf-r0.fits"), "-w", scale.wavelength, "-o",
                Path("frame.fits"), "--device", "cpu"},
               products);
    Run(arguments);
  }

  void AddVelocities(Results* results) const;
  void AddRedshifts(Results* results) const;
  void AddSky(Results* results) const;

  TempFolder stars_, folder_;
};

void TruthTest::AddVelocities(Results* results) const {
  const RawTable truth = Table("sources-r0.fits", "TRUTH"), found = Table("rv.fits", "RVTAB");
  const auto kinds = TextColumn(truth, "OBJTYPE").value();
  const auto velocities = NumberColumn(truth, "VRAD").value();
  const auto rows = IntegerColumn(found, "ROW").value();
  const auto v = NumberColumn(found, "VRAD").value(), error = NumberColumn(found, "VRAD_ERR").value(),
             dchi2 = NumberColumn(found, "DCHI2").value();
  const auto warning = IntegerColumn(found, "RVS_WARN").value();
  for (size_t k = 0; k < rows.size(); ++k) {
    if (kinds[rows[k]] != "STAR") continue;
    ++results->stars;
    if (!(dchi2[k] > 9)) continue;
    const double off = v[k] - velocities[rows[k]];
    results->pulls.push_back(off / error[k]);
    results->outliers += warning[k] == 0 && std::abs(off) > std::max(50.0, 5 * error[k]);
  }
}

void TruthTest::AddRedshifts(Results* results) const {
  const RawTable truth = Table("sources-r0.fits", "TRUTH"), found = Table("z.fits", "ZLINES");
  const auto kinds = TextColumn(truth, "OBJTYPE").value();
  const auto redshifts = NumberColumn(truth, "Z").value();
  const auto rows = IntegerColumn(found, "ROW").value();
  const auto z = NumberColumn(found, "Z").value(), gap = NumberColumn(found, "GAP").value();
  const auto warning = IntegerColumn(found, "ZWARN").value();
  for (size_t k = 0; k < rows.size(); ++k) {
    if (kinds[rows[k]] != "GALAXY") continue;
    ++results->emitters;
    const bool wrong = std::abs(std::log((1 + z[k]) / (1 + redshifts[rows[k]]))) * kLightSpeed > 150;
    const bool accepted = warning[k] == 0, secure = accepted && gap[k] > kSecureGap;
    results->accepted += accepted;
    results->wrong += wrong && accepted;
    results->secure += secure;
    results->wrong_secure += wrong && secure;
  }
}

void TruthTest::AddSky(Results* results) const {
  const Frame frame = ReadFrame(Source::FromFile(Path("sframe.fits")).value()).value();
  const UsableSpectra spectra = MakeUsable(frame).value();
  const std::vector<int> sky = FibreKindsOf(frame).value().good_sky;
  const auto lines = FindLineRedshifts(spectra, sky, {.threads = 2});
  for (const LineRedshift& line : lines.value()) {
    ++results->sky_fibres;
    results->highest_sky_gap = std::max(results->highest_sky_gap, line.gap);
  }
}

TEST_F(TruthTest, ProductsOfExtractedFramesAreTheirSources) {
  const Scale scale = ScaleOf(std::getenv("SPEXD_TRUTH_FRAMES"));
  MakeTemplates(scale);
  Results results;
  for (int frame = 0; frame < scale.frames; ++frame) {
    Simulate(scale, 1 + frame);
    Extract(scale,
            {"--fiberflat", Path("fiberflat-r0.fits"), "--sframe", Path("sframe.fits"), "--velocity",
             Path("templates.fits"), "--velocity-out", Path("rv.fits"), "--lines-out", Path("z.fits")});
    AddVelocities(&results);
    AddRedshifts(&results);
    AddSky(&results);
    if (HasFailure()) return;
  }
  const double sigma = RobustSigma(results.pulls), mean = Mean(results.pulls);
  std::printf(
      "%d stars, %zu with DCHI2 > 9: pulls of robust sigma %.3f, mean %+.3f; without a warning %d outliers\n",
      results.stars, results.pulls.size(), sigma, mean, results.outliers);
  std::printf("%d emitters: %d with ZWARN 0, %d of them wrong; %d with GAP > 25, too, %d of them wrong\n",
              results.emitters, results.accepted, results.wrong, results.secure, results.wrong_secure);
  std::printf("%d sky fibres: highest GAP %.1f\n", results.sky_fibres, results.highest_sky_gap);
  // 20 stars tell a sigma to 0.2.
  EXPECT_NEAR(sigma, 1, scale.full ? 0.05 : 0.5);
  EXPECT_NEAR(mean, 0, scale.full ? 0.1 : 0.7);
  EXPECT_EQ(results.outliers, 0);
  EXPECT_GE(results.pulls.size(), static_cast<size_t>(results.stars / 2));
  EXPECT_GE(results.accepted, scale.full ? results.emitters / 4 : 1);
  EXPECT_EQ(results.wrong_secure, 0);
  EXPECT_LT(results.highest_sky_gap, kAcceptedGap);
}

TEST_F(TruthTest, TheBandLimitedTruthIsWhatANoiselessFrameShows) {
  const Scale scale;
  MakeTemplates(scale);
  Simulate(scale, 7, {"--no-noise", "--holes", "0", "--cosmic-rays", "0", "--dead-columns", "0"});
  Extract(scale, {});
  std::puts(
      Run({"compare", Path("frame.fits"), "--truth", Path("truth-r0.fits"), "--truth-sigma-range", "0,0.05"})
          .c_str());
}

TEST_F(TruthTest, ExposuresAreOfTheSameSourcesWithOtherNoiseAndThroughputs) {
  Run({"simulate", "--fibres", "10", "--rows", "200", "--emitters", "7", "--sky-fibres", "3", "--exposures",
       "2", "-w", "6600,6690,0.8", "--out-dir", folder_.path()});
  const char* const first = "sources-r0-00051060.fits";
  const char* const second = "sources-r0-00051061.fits";
  for (const char* name :
       {"psf-r0.fits", "fiberflat-r0.fits", first, second, "truth-r0-00051060.fits", "truth-r0-00051061.fits",
        "preproc-r0-00051060.fits", "preproc-r0-00051061.fits"}) {
    Process verify({"fitsverify", "-q", Path(name)});
    EXPECT_EQ(verify.Wait(), 0) << verify.output();
  }
  const RawTable a = Table(first, "TRUTH"), b = Table(second, "TRUTH");
  const auto kinds = TextColumn(a, "OBJTYPE").value();
  EXPECT_EQ(std::count(kinds.begin(), kinds.end(), "SKY"), 3);
  EXPECT_EQ(std::count(kinds.begin(), kinds.end(), "GALAXY"), 7);
  EXPECT_EQ(kinds, TextColumn(b, "OBJTYPE").value());
  EXPECT_EQ(IntegerColumn(a, "TARGETID").value(), IntegerColumn(b, "TARGETID").value());
  EXPECT_EQ(IntegerColumn(a, "TARGETID").value(),
            IntegerColumn(Table("preproc-r0-00051061.fits", "FIBERMAP"), "TARGETID").value());
  EXPECT_EQ(NumberColumn(a, "FLAT").value(), NumberColumn(b, "FLAT").value());
  const auto z = NumberColumn(a, "Z").value(), again = NumberColumn(b, "Z").value();
  for (size_t k = 0; k < kinds.size(); ++k) {
    EXPECT_EQ(std::isnan(z[k]), kinds[k] == "SKY") << "which has no redshift";
    if (kinds[k] == "SKY") continue;
    EXPECT_EQ(z[k], again[k]);
  }
  EXPECT_NE(NumberColumn(a, "THROUGHPUT").value(), NumberColumn(b, "THROUGHPUT").value());
  EXPECT_NE(ReadImageHdu(Source::FromFile(Path("preproc-r0-00051060.fits")).value(), "IMAGE").value(),
            ReadImageHdu(Source::FromFile(Path("preproc-r0-00051061.fits")).value(), "IMAGE").value());
}

TEST_F(TruthTest, FieldsThatCannotBeSimulatedAreNamed) {
  const auto refused = [&](std::vector<std::string> flags, const std::string& message) {
    EXPECT_THAT(
        Spex(Joined({"simulate", "--fibres", "10", "--rows", "200", "--out-dir", folder_.path()}, flags)),
        ExitsWith(2, HasSubstr(message)));
  };
  refused({"--emitters", "2"},
          "1 of 10 fibres are sky, 2 emitters: the others are stars, which need templates");
  refused({"--sky-fibres", "11"}, "number of sky fibres is 11, must be 1 to 10");
  refused({"--sky-fibres", "3", "--emitters", "8"}, "number of emitters is 8, must be 0 to 7");
  refused({"-w", "6600,6690,0.8"}, "--wavelength is of the fiberflat");
  refused({"--emitters", "9", "-w", "6000,6690,0.8"}, "6000 to 6689.6 Angstrom exceeds the PSF's domain");
  Scale scale;
  scale.range = "6640,6650";
  MakeTemplates(scale);
  refused({"--stars", Path("templates.fits")}, "templates: reach from");
  EXPECT_EQ(folder_.Entries().size(), 1u) << "the templates alone";
}

}  // namespace
}  // namespace spexd::testing
