// Reads PSF files of every type; errors name what is wrong in a file.
#include <numeric>
#include <string>
#include <variant>
#include <vector>

#include "core/fits/readers.h"
#include "core/model/reference_spot.h"
#include "tests/fits/psf/psf_samples.h"
#include "tests/support/matchers.h"

namespace spexd::testing {
namespace {

Source FileOf(const std::string& bytes) { return Source::FromBytes("psf.fits", bytes).value(); }

// Returns the file with every `from` replaced by a `to` of the same length.
std::string Changed(const std::string& type, const std::string& from, const std::string& to) {
  std::string bytes = PsfFile(type);
  EXPECT_EQ(from.size(), to.size());
  EXPECT_NE(bytes.find(from), std::string::npos) << type << " has no " << from;
  for (size_t at = bytes.find(from); at != std::string::npos; at = bytes.find(from, at + 1))
    bytes.replace(at, from.size(), to);
  return bytes;
}

double Light(const Spot& spot) { return std::accumulate(spot.values.begin(), spot.values.end(), 0.0); }

TEST(PsfFiles, OfEveryTypeAreReadWithTheirOutlines) {
  for (const NamedFile& file : PsfFiles()) {
    SCOPED_TRACE(file.type);
    const absl::StatusOr<Psf> psf = ReadPsf(FileOf(file.bytes));
    ASSERT_TRUE(psf.ok()) << psf.status();
    EXPECT_EQ(psf->fibres, 3);
    EXPECT_EQ(psf->columns, 30);
    EXPECT_EQ(psf->rows, 40);
    EXPECT_EQ(psf->wave_min, 6000);
    EXPECT_EQ(psf->wave_max, 6040);
    for (int fibre = 0; fibre < 3; ++fibre) {
      Spot spot;
      EvaluateSpot(*psf, fibre, 6020, &spot);
      EXPECT_NEAR(Light(spot), 1, 1e-12);
      EXPECT_NEAR(spot.first_column + 0.5 * psf->spot_columns(), 7.5 + 8 * fibre, 1.5);
      EXPECT_NEAR(spot.first_row + 0.5 * psf->spot_rows(), 20.5, 1.5);
    }
    const absl::StatusOr<Psf> outline = ReadPsfOutline(FileOf(file.bytes), 0);
    ASSERT_TRUE(outline.ok()) << outline.status();
    EXPECT_FALSE(IsComplete(*outline));
    EXPECT_EQ(PsfBytes(*outline), PsfBytes(*psf));
    EXPECT_EQ(outline->stamp(), psf->stamp());
  }
}

TEST(PsfFiles, OfTwoCoresHaveTheSecondOnesTermsAndTheCutoff) {
  const Psf psf = ReadPsf(FileOf(PsfFile("GAUSS-HERMITE2"))).value();
  const GaussHermiteSpots& spots = GaussHermite(psf);
  ASSERT_EQ(spots.cores.size(), 2u);
  EXPECT_EQ(spots.cores[0].terms.size(), 3u);  // GH-1-0 is 0 everywhere
  ASSERT_EQ(spots.cores[1].terms.size(), 1u);
  EXPECT_EQ(NameOf(spots.cores[1].terms[0], 1), "GH2-0-0");
  EXPECT_EQ(Evaluate(spots.cores[1].sigma_x, 0, 6020), 2.5);
  EXPECT_EQ(Evaluate(spots.cutoff, 2, 6020), 3);
  EXPECT_TRUE(spots.has_tail());
  EXPECT_EQ(psf.spot_columns(), 8);
  EXPECT_EQ(psf.spot_rows(), 10);
}

TEST(PsfFiles, OfSampledSpotsHaveTheStampsOfTheirSamples) {
  const Psf grid = ReadPsf(FileOf(PsfFile("SPOTGRID"))).value();
  EXPECT_EQ(grid.spot_columns(), 9);  // 40 samples at 5 a pixel, and one pixel for the shift
  EXPECT_EQ(grid.spot_rows(), 7);
  const Psf mono = ReadPsf(FileOf(PsfFile("MONOSPOT"))).value();
  EXPECT_EQ(mono.spot_columns(), 9);
  EXPECT_EQ(mono.spot_rows(), 7);
  const Psf pca = ReadPsf(FileOf(PsfFile("PCA-PIX"))).value();
  EXPECT_EQ(pca.spot_columns(), 9);
  EXPECT_EQ(std::get<SampledSpots>(pca.spots).fibres[2].group, 1);
  EXPECT_EQ(ReadPsf(FileOf(PsfFile("SAMPLED-SPOTS")))->fibre_min, 7);
}

// Returns the mean column of a spot's light.
double MeanColumn(const Psf& psf, int fibre, double wave) {
  Spot spot;
  EvaluateSpot(psf, fibre, wave, &spot);
  double sum = 0;
  for (size_t k = 0; k < spot.values.size(); ++k)
    sum += spot.values[k] * (spot.first_column + static_cast<int>(k) % psf.spot_columns());
  return sum;
}

TEST(PsfFiles, OfTheOwnFormatPlaceTheTraceOnTheSampleThatIsTheCentre) {
  const Psf right = ReadPsf(FileOf(PsfFile("SAMPLED-SPOTS"))).value();
  // XCENTER is 18.5, the middle of the images 19.5: the light is one sample, a fifth of a pixel, to the
  // right.
  EXPECT_NEAR(MeanColumn(right, 1, 6020), 15 + 0.2, 1e-3);
  const Psf middle = ReadPsf(FileOf(Changed("SAMPLED-SPOTS", "XCENTER ", "XMIDDLE "))).value();
  EXPECT_NEAR(MeanColumn(middle, 1, 6020), 15, 1e-3);
}

TEST(PsfFiles, NameWhatDoesNotFit) {
  const struct {
    const char *type, *from, *to, *text;
  } cases[] = {
      {"GAUSS-HERMITE2", "GHDEGX2 =                    0", "GHDEGX2 =                    9",
       "GHDEGX2 is 9, must be 0 to 7"},
      {"GAUSS-HERMITE2", "FIBERMAX=                    2", "FIBERMAX=                    1",
       "COEFF has TDIM5 (2,3), must be (3,2): the coefficients of each of 2 fibres"},
      {"GAUSS-HERMITE2", "GHNSIG  ", "GHNSIX  ", "no row with PARAM GHNSIG"},
      {"GAUSS-HERMITE2", "GHSIGX2 ", "GHSIGXX ", "no row with PARAM GHSIGX2"},
      {"SPOTGRID", "NSPEC   =                    3", "NSPEC   =                    4",
       "HDU XCOEFF: has traces of 3 fibres, NSPEC announces 4"},
      {"SPOTGRID", "PIXSIZE =                0.003", "PIXSIZE =                0.004",
       "CCDPIXSZ 0.015 is 3.75 times PIXSIZE 0.004, must be a whole number of times, 1 to 64"},
      {"SPOTGRID", "PIXSIZE =                0.003", "PIXSIZE =                0.005",
       "HDU SPOTS: has images of 40 samples along an axis, must be a multiple of 3"},
      {"SPOTGRID", "EXTNAME = 'SPOTWAVE'", "EXTNAME = 'SPOTWAVF'", "there is no HDU SPOTWAVE"},
      {"SPOTGRID", "'SPOTPOS '", "'FIBERPOS'", "there is no HDU SPOTPOS"},
      {"MONOSPOT", "SCALE   =                    4", "SCALE   =                    5",
       "must be a multiple of 5"},
      {"MONOSPOT", "SCALE   =                    4", "SCALE   =                   99",
       "SCALE is 99, must be 1 to 64"},
      {"PCA-PIX", "'XEXP    '", "'XPOWER  '", "no column XEXP"},
      {"SAMPLED-SPOTS", "OVERSAMP=                    5", "OVERSAMP=                    0",
       "OVERSAMP is 0, must be 1 to 64"},
      {"SPOTGRID", "6040.", "5040.",
       "HDU XCOEFF: the wavelengths WAVEMIN 6000 to WAVEMAX 5040 are no domain"},
      {"MONOSPOT", "NSPEC   =                    3", "NSPEC   =                  '3'",
       "NSPEC is not an integer"},
      {"SAMPLED-SPOTS", "XCENTER =                 18.5", "XCENTER =               '18.5'",
       "XCENTER is not a number"},
      {"SAMPLED-SPOTS", "XCENTER =                 18.5", "XCENTER =                 99.5",
       "XCENTER 99.5, YCENTER 14.5 is not in its images of 40 x 30 samples"},
  };
  for (const auto& c : cases) {
    const absl::Status status = ReadPsf(FileOf(Changed(c.type, c.from, c.to))).status();
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr("psf.fits"), HasSubstr(c.text))))
        << c.type;
  }
}

TEST(PsfFiles, MayHaveImagesInAnyUnit) {
  for (const char* type : {"SPOTGRID", "MONOSPOT", "PCA-PIX"}) {
    Spot usual, scaled;
    EvaluateSpot(ReadPsf(FileOf(PsfFile(type))).value(), 1, 6020, &usual);
    for (const double unit : {1e-60, 1e60}) {
      EvaluateSpot(ReadPsf(FileOf(PsfFile(type, unit))).value(), 1, 6020, &scaled);
      for (size_t k = 0; k < usual.values.size(); ++k)
        EXPECT_NEAR(scaled.values[k], usual.values[k], 1e-7) << type << " in units of " << unit;
    }
  }
}

TEST(PsfFiles, OfTheOwnFormatAreOfVersionOne) {
  const absl::Status status = ReadPsf(FileOf(Changed("SAMPLED-SPOTS", "PSFVER  =                    1",
                                                     "PSFVER  =                    2")))
                                  .status();
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("PSFTYPE SAMPLED-SPOTS, PSFVER 2 is not supported. spexd reads PSFVER 1"),
                    HasSubstr("newer spexd")));
}

}  // namespace
}  // namespace spexd::testing
