// From simulated sources with known truth to products, with the programs as users run them: templates,
// frames, spectra, sky, velocities, redshifts. SPEXD_TRUTH_FRAMES=4 tests four frames of 200 fibres over the
// whole camera instead of a small one: 520 stars and 200 emitters.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "core/analysis/lines/emission_lines.h"
#include "core/analysis/usable_spectra.h"
#include "core/fits/hdu/table_file.h"
#include "core/fits/readers.h"
#include "core/products/analyse.h"
#include "tests/analysis/star_grid.h"
#include "tests/analysis/truth/scores.h"
#include "tests/analysis/truth/simulated_field.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"
#include "tests/support/temp_folder.h"

namespace spexd::testing {
namespace {

// The amount of test data, and its wavelengths.
struct Scale {
  int frames = 1;
  bool full = false;
  std::vector<std::string> scene = {"--fibres",     "50", "--rows",     "2400",
                                    "--sky-fibres", "8",  "--emitters", "14"};
  std::string range = "5990,7300";  // of the light
  FieldCamera camera = {"r", "6020,7270,0.8"};
};

Scale ScaleOf(const char* frames) {
  Scale scale;
  if (frames == nullptr) return scale;
  scale.full = true;
  EXPECT_TRUE(absl::SimpleAtoi(frames, &scale.frames) && scale.frames > 0)
      << "SPEXD_TRUTH_FRAMES: " << frames;
  scale.scene = {"--fibres", "200", "--sky-fibres", "20", "--emitters", "50"};
  scale.range = "5530,7760";
  scale.camera = {};
  return scale;
}

class TruthTest : public ::testing::Test {
 protected:
  void MakeTemplates(const std::string& range) const {
    WriteStarGrid({}, stars_.path());
    field_.Run({"templates", "make", stars_.path(), "--range", range, "-o", field_.Path("templates.fits")});
    Process verify({"fitsverify", "-q", field_.Path("templates.fits")});
    EXPECT_EQ(verify.Wait(), 0) << verify.output();
  }
  // Returns emission lines that are found in sky fibres.
  std::vector<LineRedshift> LinesOfSky() const;

  TempFolder stars_;
  SimulatedField field_;
};

std::vector<LineRedshift> TruthTest::LinesOfSky() const {
  const Frame frame = ReadFrame(Source::FromFile(field_.Path("sframe.fits")).value()).value();
  const UsableSpectra spectra = MakeUsable(frame).value();
  const std::vector<int> sky = FibreKindsOf(frame).value().good_sky;
  return FindLineRedshifts(spectra, sky, {.threads = 2}).value();
}

TEST_F(TruthTest, ProductsOfExtractedFramesAreTheirSources) {
  const Scale scale = ScaleOf(std::getenv("SPEXD_TRUTH_FRAMES"));
  MakeTemplates(scale.range);
  VelocityScore velocities;
  RedshiftScore redshifts;
  std::vector<double> sky_gaps;
  for (int frame = 0; frame < scale.frames; ++frame) {
    field_.Simulate(scale.camera, 1 + frame, scale.scene);
    field_.Extract(scale.camera,
                   {"--fiberflat", field_.Path("fiberflat-r0.fits"), "--sframe", field_.Path("sframe.fits"),
                    "--velocity", field_.Path("templates.fits"), "--velocity-out", field_.Path("rv.fits"),
                    "--lines-out", field_.Path("z.fits")});
    velocities.Add(field_.Truth(scale.camera), field_.Table("rv.fits", "RVTAB"));
    redshifts.Add(field_.Truth(scale.camera), field_.Table("z.fits", "ZLINES"));
    for (const LineRedshift& line : LinesOfSky()) sky_gaps.push_back(line.gap);
    if (HasFailure()) return;
  }
  const double sigma = RobustSigma(velocities.pulls), mean = Mean(velocities.pulls);
  const double highest_sky_gap = *std::max_element(sky_gaps.begin(), sky_gaps.end());
  std::printf(
      "%d stars, %d with DCHI2 > 9: pulls of robust sigma %.3f, mean %+.3f; without a warning %d outliers\n",
      velocities.stars, velocities.safe(), sigma, mean, velocities.astray);
  std::printf("%d emitters: %d with ZWARN 0, %d of them wrong; %d with GAP > 25, too, %d of them wrong\n",
              redshifts.emitters, redshifts.accepted, redshifts.wrong, redshifts.secure,
              redshifts.wrong_secure);
  std::printf("%zu sky fibres: highest GAP %.1f\n", sky_gaps.size(), highest_sky_gap);
  // 20 stars determine a sigma to 0.2.
  EXPECT_NEAR(sigma, 1, scale.full ? 0.05 : 0.5);
  EXPECT_NEAR(mean, 0, scale.full ? 0.1 : 0.7);
  EXPECT_EQ(velocities.astray, 0);
  EXPECT_GE(velocities.safe(), velocities.stars / 2);
  EXPECT_GE(redshifts.accepted, scale.full ? redshifts.emitters / 4 : 1);
  EXPECT_EQ(redshifts.wrong_secure, 0);
  EXPECT_LT(highest_sky_gap, kAcceptedGap);
}

TEST_F(TruthTest, TheBandLimitedTruthIsWhatANoiselessFrameShows) {
  const Scale scale;
  MakeTemplates(scale.range);
  field_.Simulate(
      scale.camera, 7,
      Joined(scale.scene, {"--no-noise", "--holes", "0", "--cosmic-rays", "0", "--dead-columns", "0"}));
  field_.Extract(scale.camera, {});
  std::puts(field_
                .Run({"compare", field_.Path("frame-r0.fits"), "--truth", field_.Path("truth-r0.fits"),
                      "--truth-sigma-range", "0,0.05"})
                .c_str());
}

TEST_F(TruthTest, ExposuresAreOfTheSameSourcesWithOtherNoiseAndThroughputs) {
  field_.Run({"simulate", "--fibres", "10", "--rows", "200", "--emitters", "7", "--sky-fibres", "3",
              "--exposures", "2", "-w", "6600,6690,0.8", "--out-dir", field_.folder()});
  const char* const first = "sources-r0-00051060.fits";
  const char* const second = "sources-r0-00051061.fits";
  for (const char* name :
       {"psf-r0.fits", "fiberflat-r0.fits", first, second, "truth-r0-00051060.fits", "truth-r0-00051061.fits",
        "preproc-r0-00051060.fits", "preproc-r0-00051061.fits"}) {
    Process verify({"fitsverify", "-q", field_.Path(name)});
    EXPECT_EQ(verify.Wait(), 0) << verify.output();
  }
  const RawTable a = field_.Table(first, "TRUTH"), b = field_.Table(second, "TRUTH");
  const auto kinds = TextColumn(a, "OBJTYPE").value();
  EXPECT_EQ(std::count(kinds.begin(), kinds.end(), "SKY"), 3);
  EXPECT_EQ(std::count(kinds.begin(), kinds.end(), "GALAXY"), 7);
  EXPECT_EQ(kinds, TextColumn(b, "OBJTYPE").value());
  EXPECT_EQ(IntegerColumn(a, "TARGETID").value(), IntegerColumn(b, "TARGETID").value());
  EXPECT_EQ(IntegerColumn(a, "TARGETID").value(),
            IntegerColumn(field_.Table("preproc-r0-00051061.fits", "FIBERMAP"), "TARGETID").value());
  EXPECT_EQ(NumberColumn(a, "FLAT").value(), NumberColumn(b, "FLAT").value());
  const auto z = NumberColumn(a, "Z").value(), again = NumberColumn(b, "Z").value();
  for (size_t k = 0; k < kinds.size(); ++k) {
    EXPECT_EQ(std::isnan(z[k]), kinds[k] == "SKY") << "which has no redshift";
    if (kinds[k] == "SKY") continue;
    EXPECT_EQ(z[k], again[k]);
  }
  EXPECT_NE(NumberColumn(a, "THROUGHPUT").value(), NumberColumn(b, "THROUGHPUT").value());
  EXPECT_NE(ReadImageHdu(Source::FromFile(field_.Path("preproc-r0-00051060.fits")).value(), "IMAGE").value(),
            ReadImageHdu(Source::FromFile(field_.Path("preproc-r0-00051061.fits")).value(), "IMAGE").value());
}

TEST_F(TruthTest, FieldsThatCannotBeSimulatedAreNamed) {
  const auto refused = [&](std::vector<std::string> flags, const std::string& message) {
    EXPECT_THAT(
        Spex(Joined({"simulate", "--fibres", "10", "--rows", "200", "--out-dir", field_.folder()}, flags)),
        ExitsWith(2, HasSubstr(message)));
  };
  refused({"--emitters", "2"},
          "1 of 10 fibres are sky, 2 emitters: the others are stars, which need templates");
  refused({"--sky-fibres", "11"}, "number of sky fibres is 11, must be 1 to 10");
  refused({"--sky-fibres", "3", "--emitters", "8"}, "number of emitters is 8, must be 0 to 7");
  refused({"-w", "6600,6690,0.8"}, "--wavelength is of the fiberflat");
  refused({"--emitters", "9", "-w", "6000,6690,0.8"}, "6000 to 6689.6 Angstrom exceeds the PSF's domain");
  MakeTemplates("6640,6650");
  refused({"--stars", field_.Path("templates.fits")}, "templates: reach from");
  EXPECT_EQ(field_.Entries().size(), 1u) << "the templates alone";
}

}  // namespace
}  // namespace spexd::testing
