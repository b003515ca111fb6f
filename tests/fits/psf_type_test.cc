// Files that are not a PSF that spexd reads: the message names what the file states, and what to do.
#include <functional>
#include <string>
#include <vector>

#include "core/fits/hdu/fits_builder.h"
#include "core/fits/readers.h"
#include "core/fits/writers.h"
#include "tests/fits/samples.h"
#include "tests/support/matchers.h"
#include "tests/support/temp_folder.h"

namespace spexd::testing {
namespace {

// Returns the reader's status for a file that `add` fills.
absl::Status StatusOf(const std::function<void(FitsBuilder&)>& add) {
  FitsBuilder fits(0);
  add(fits);
  const absl::StatusOr<std::string> bytes = fits.Bytes();
  if (!bytes.ok()) return absl::InternalError(std::string(bytes.status().message()));
  const Source source = Source::FromBytes("psf.fits", *bytes).value();
  const absl::Status outline = ReadPsfOutline(source).status(), whole = ReadPsf(source).status();
  EXPECT_EQ(outline, whole);
  EXPECT_LT(whole.message().size(), 300u) << whole;  // a status travels in gRPC's metadata
  return whole;
}

std::string RefusalOf(absl::StatusCode code, const std::function<void(FitsBuilder&)>& add) {
  const absl::Status status = StatusOf(add);
  EXPECT_EQ(status.code(), code) << status;
  return std::string(status.message());
}

void AddImages(FitsBuilder& fits, const std::vector<std::string>& names) {
  for (const std::string& name : names) fits.BeginImage(name, FLOAT_IMG, {3, 4});
}

// Adds traces as in specter's models: coefficients of X and Y in the first HDUs, the model's name in the
// first header.
void AddTraces(FitsBuilder& fits, const std::string& type) {
  fits.BeginImage("XCOEFF", DOUBLE_IMG, {3, 4});
  fits.Text("PSFTYPE", type, "");
  fits.Integer("NPIX_X", 40, "");
  fits.Integer("NPIX_Y", 24, "");
  fits.BeginImage("YCOEFF", DOUBLE_IMG, {3, 4});
}

// Adds a table of parameters with the given model and version in both headers.
void AddParameters(FitsBuilder& fits, const std::string& type, const std::string& version,
                   const std::vector<std::string>& parameters) {
  const auto state = [&] {
    if (!type.empty()) fits.Text("PSFTYPE", type, "");
    if (!version.empty()) fits.Text("PSFVER", version, "");
  };
  fits.BeginImage("PRIMARY", FLOAT_IMG, {1, 1});
  state();
  fits.BeginTable("PSF", static_cast<int64_t>(parameters.size()), {"PARAM", "WAVEMIN", "WAVEMAX", "COEFF"},
                  {"8A", "1D", "1D", "12D"});
  state();
  for (size_t k = 0; k < parameters.size(); ++k) {
    fits.ColumnText(1, static_cast<int64_t>(k) + 1, parameters[k]);
  }
}

TEST(PsfType, OfTracesAloneIsNamedWithWhatToDo) {
  EXPECT_THAT(
      RefusalOf(absl::StatusCode::kUnimplemented, [](FitsBuilder& fits) { AddTraces(fits, "bootcalib"); }),
      AllOf(HasSubstr("PSFTYPE bootcalib is not supported, because it has traces, but no spots"),
            HasSubstr("desi_compute_psf (specex)"), Not(HasSubstr("specter"))));
}

TEST(PsfType, ThatNobodyKnowsIsNamedWithWhatIsRead) {
  EXPECT_THAT(RefusalOf(absl::StatusCode::kUnimplemented,
                        [](FitsBuilder& fits) {
                          AddParameters(fits, "MONTE-CARLO", "", {"X", "Y"});
                        }),
              AllOf(HasSubstr("psf.fits: PSFTYPE MONTE-CARLO is not supported. spexd reads GAUSS-HERMITE, "
                              "GAUSS-HERMITE2, SPOTGRID, MONOSPOT, PCA-PIX, SAMPLED-SPOTS."),
                    HasSubstr("spexd.psf_from_spots")));
}

TEST(PsfVersion, ThatIsOlderIsNamedWithWhatToDo) {
  for (const char* version : {"1", "1.0"}) {
    EXPECT_EQ(
        RefusalOf(absl::StatusCode::kUnimplemented,
                  [version](FitsBuilder& fits) {
                    AddParameters(fits, "GAUSS-HERMITE", version, {"X", "Y", "GHSIGX", "GHSIGY", "GH-0-0"});
                  }),
        std::string("psf.fits: PSFTYPE GAUSS-HERMITE, PSFVER ") + version +
            " is not supported. spexd reads PSFVER 2 and 3. Fit the PSF again with desi_compute_psf "
            "(specex), which writes GAUSS-HERMITE, PSFVER 3");
  }
}

TEST(PsfVersion, ThatIsNewerIsNamedWithWhatToDo) {
  EXPECT_THAT(RefusalOf(absl::StatusCode::kUnimplemented,
                        [](FitsBuilder& fits) {
                          fits.BeginImage("XTRACE", DOUBLE_IMG, {3, 4});
                          fits.Text("PSFTYPE", "GAUSS-HERMITE", "");
                          fits.Integer("PSFVER", 4, "");
                        }),
              AllOf(HasSubstr("PSFTYPE GAUSS-HERMITE, PSFVER 4 is not supported. spexd reads PSFVER 2 and 3"),
                    HasSubstr("look for a newer spexd")));
}

TEST(PsfType, ThatIsMissingIsAskedForWhereThereIsATableOfParameters) {
  EXPECT_EQ(
      RefusalOf(absl::StatusCode::kInvalidArgument,
                [](FitsBuilder& fits) {
                  AddParameters(fits, "", "2", {"X", "Y", "GHSIGX", "GHSIGY", "GH-0-0"});
                }),
      "psf.fits: is not a PSF file: no HDU has the keyword PSFTYPE. If its model is GAUSS-HERMITE, write "
      "this type into its first header");
}

TEST(PsfType, ThatIsMissingInTracesAloneIsMissedWithTheSpots) {
  EXPECT_THAT(RefusalOf(absl::StatusCode::kInvalidArgument,
                        [](FitsBuilder& fits) {
                          AddImages(fits, {"XTRACE", "YTRACE"});
                        }),
              HasSubstr("It has traces, XTRACE and YTRACE, but no spots"));
}

TEST(PsfType, OfAnotherKindOfFileIsMissedWithWhatTheFileIs) {
  const TempFolder folder;
  ASSERT_TRUE(WritePreproc(SamplePreproc(), folder / "preproc.fits", true).ok());
  ASSERT_TRUE(WriteFrame(SampleFrame(), folder / "frame.fits").ok());
  ASSERT_TRUE(WriteTruth(SampleTruth(), folder / "truth.fits").ok());
  const struct {
    const char *name, *text;
  } cases[] = {
      {"preproc.fits", "the HDUs of a preprocessed frame, IMAGE and IVAR: were frame and PSF exchanged?"},
      {"frame.fits", "the HDUs of extracted spectra, FLUX and IVAR"},
      {"truth.fits", "A PSF of desi_compute_psf (specex) has it"},
  };
  for (const auto& c : cases) {
    const absl::Status status = ReadPsf(Load(folder / c.name)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(c.name), HasSubstr("is not a PSF file: no HDU has the keyword PSFTYPE"),
                      HasSubstr(c.text)));
  }
}

}  // namespace
}  // namespace spexd::testing
