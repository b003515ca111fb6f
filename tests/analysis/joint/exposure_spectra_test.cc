// Frames of the cameras of one exposure as the spectra of its targets, and redshifts compared with a file of
// spectra.
#include "core/products/joint/exposure_spectra.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/fits/hdu/fits_builder.h"
#include "core/fits/hdu/output_file.h"
#include "core/fits/hdu/source.h"
#include "core/products/joint/redrock_table.h"
#include "core/products/product_files.h"
#include "tests/analysis/joint/made_up_spectra.h"
#include "tests/support/matchers.h"
#include "tests/support/temp_folder.h"

namespace spexd::testing {
namespace {

std::string Card(const std::string& text) { return absl::StrFormat("%-80s", text); }

std::vector<std::string> CardsOf(const std::string& camera, int exposure) {
  return {Card("CAMERA  = '" + camera + "'"), Card("NIGHT   = 20260101"),
          Card(absl::StrFormat("EXPID   = %d", exposure))};
}

NamedFrame FrameOf(const std::string& camera, double first,
                   const std::vector<int64_t>& targets = {100, 101}) {
  NamedFrame named{"/night/sframe-" + camera + "-1.fits", {}};
  SpectraArm arm = ArmOf("", first, static_cast<int>(targets.size()), 50);
  named.frame.grid = arm.grid;
  named.frame.spectra = std::move(arm.spectra);
  named.frame.origin.image_cards = CardsOf(camera, 1);
  NumberTable fibermap(static_cast<int64_t>(targets.size()));
  fibermap.Add("TARGETID", targets);
  named.frame.origin.fibermap = TableOf(fibermap, "FIBERMAP");
  return named;
}

void ExpectRefused(std::vector<NamedFrame> frames, const std::string& message) {
  EXPECT_THAT(JoinFrames(std::move(frames)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
}

TEST(ExposureSpectra, JoinsTheCamerasInTheOrderOfTheirWavelengths) {
  const TargetSpectra spectra =
      JoinFrames({FrameOf("z3", 8000), FrameOf("b3", 4000), FrameOf("r3", 6000)}).value();
  ASSERT_THAT(spectra.arms, SizeIs(3));
  EXPECT_EQ(spectra.arms[0].name + spectra.arms[1].name + spectra.arms[2].name, "BRZ");
  EXPECT_EQ(spectra.arms[2].grid.first, 8000);
  EXPECT_EQ(spectra.arms[2].spectra.flux.shape(0), 2);
  EXPECT_EQ(spectra.name, "sframe-b3-1.fits");
  EXPECT_EQ(spectra.fibermap.rows, 2);
  EXPECT_THAT(spectra.cards, ElementsAre(StartsWith("NIGHT"), StartsWith("EXPID"))) << "of all cameras";
  EXPECT_FALSE(spectra.barycentric);
}

TEST(ExposureSpectra, NamesTheArmOfAFrameWithoutCardsByItsWavelengths) {
  NamedFrame frame = FrameOf("b0", 8500);
  frame.frame.origin.image_cards.clear();
  frame.frame.origin.heliocentric_factor = 1.0001;
  const TargetSpectra spectra = JoinFrames({frame}).value();
  EXPECT_EQ(spectra.arms[0].name, "Z");
  EXPECT_TRUE(spectra.barycentric);
}

TEST(ExposureSpectra, RefusesFramesOfSeveralExposures) {
  NamedFrame other = FrameOf("r0", 6000);
  other.frame.origin.image_cards = CardsOf("r0", 2);
  ExpectRefused(
      {FrameOf("b0", 4000), other},
      "/night/sframe-b0-1.fits and /night/sframe-r0-1.fits are not of one exposure: exposure 1 of night "
      "20260101, spectrograph 0; exposure 2 of night 20260101, spectrograph 0");
  ExpectRefused({FrameOf("b0", 4000), FrameOf("r1", 6000)},
                "spectrograph 0; exposure 1 of night 20260101, "
                "spectrograph 1");
  ExpectRefused({FrameOf("b0", 4000), FrameOf("r0", 6000, {100, 102})}, "row 2 has TARGETID 101; 102");
  ExpectRefused({FrameOf("b0", 4000), FrameOf("r0", 6000, {100})}, "2 rows; 1 rows");
  other = FrameOf("r0", 6000);
  other.frame.origin.heliocentric_factor = 1.0001;
  ExpectRefused({FrameOf("b0", 4000), other}, "HELIOCOR is none; 1.0001");
}

TEST(ExposureSpectra, RefusesACameraThatWasThereAndAFrameWithoutFibermap) {
  ExpectRefused({FrameOf("b0", 4000), FrameOf("b0", 4001)}, "camera b was there before");
  NamedFrame frame = FrameOf("b0", 4000);
  frame.frame.origin.fibermap.reset();
  ExpectRefused({frame}, "/night/sframe-b0-1.fits: there is no HDU FIBERMAP");
}

TEST(ExposureSpectra, TellsFramesOfOneExposureByTheirCards) {
  EXPECT_EQ(ExposureKey(CardsOf("b3", 7)), ExposureKey(CardsOf("z3", 7)));
  EXPECT_NE(ExposureKey(CardsOf("b3", 7)), ExposureKey(CardsOf("b4", 7)));
  EXPECT_NE(ExposureKey(CardsOf("b3", 7)), ExposureKey(CardsOf("b3", 8)));
  EXPECT_EQ(ExposureKey({Card("CAMERA  = 'b3'")}), "");
  EXPECT_EQ(ExposureKey({Card("EXPID   = 7")}), "");
}

TEST(ExposureSpectra, KnowsFramesWithoutSky) {
  const Frame frame = FrameOf("b0", 4000).frame;
  EXPECT_TRUE(HasSky(frame, "/sframe-night/frame-b0-1.fits"));
  EXPECT_FALSE(HasSky(frame, "/night/sframe-b0-1.fits.gz"));
  EXPECT_FALSE(HasSky(frame, "cframe-b0-1.fits"));
  Sky sky;
  sky.flux.Assign({2, 50});
  sky.ivar.Assign({2, 50});
  sky.mask.Assign({2, 50});
  EXPECT_FALSE(HasSky(SkySubtracted(frame, sky), "frame-b0-1.fits"));
  Frame coadd = frame;
  NumberTable fibermap(2);
  fibermap.Add("COADD_NUMEXP", std::vector<int64_t>{1, 2});
  coadd.origin.fibermap = TableOf(fibermap, "FIBERMAP");
  EXPECT_FALSE(HasSky(coadd, "coadd.fits"));
}

TEST(Redrock, IsFoundBesideTheSpectra) {
  const TempFolder folder;
  EXPECT_EQ(RedrockPathOf(folder / "coadd-main-1.fits"), "");
  ASSERT_THAT(WriteFileAtomically(folder / "zbest-main-1.fits", "x"), IsOk());
  EXPECT_EQ(RedrockPathOf(folder / "spectra-main-1.fits.gz"), folder / "zbest-main-1.fits");
  ASSERT_THAT(WriteFileAtomically(folder / "redrock-main-1.fits.gz", "x"), IsOk());
  EXPECT_EQ(RedrockPathOf(folder / "coadd-main-1.fits"), folder / "redrock-main-1.fits.gz");
  EXPECT_EQ(RedrockPathOf(folder / "frame-main-1.fits"), "");
}

// Returns a file of two targets. `subtype`: that of the first.
Source RedrockFile(const std::string& subtype) {
  NumberTable table(2);
  table.Add("TARGETID", std::vector<int64_t>{102, 100});
  table.Add("Z", std::vector<double>{0.5, 0.001});
  table.Add("SPECTYPE", std::vector<std::string>{"GALAXY", "STAR"});
  table.Add("SUBTYPE", std::vector<std::string>{subtype, "G"});
  FitsBuilder fits(0);
  fits.BeginImage("PRIMARY", FLOAT_IMG, {});
  table.Write("REDSHIFTS", &fits);
  return Source::FromBytes("redrock.fits", fits.Bytes().value()).value();
}

TEST(Redrock, BelongsToTheRowsOfItsTargets) {
  const RedrockTable redrock = ReadRedrock(RedrockFile(""), SpectraOf({100, 101, 100, 102})).value();
  EXPECT_THAT(redrock.spectype, ElementsAre("STAR", "", "STAR", "GALAXY"));
  EXPECT_THAT(redrock.subtype, ElementsAre("G", "", "G", ""));
  EXPECT_EQ(redrock.z[0], 0.001);
  EXPECT_TRUE(std::isnan(redrock.z[1]));
  EXPECT_THAT(MayBeStars(redrock), ElementsAre(true, false, true, false));
}

TEST(Redrock, HasShortTexts) {
  EXPECT_THAT(ReadRedrock(RedrockFile(std::string(256, 'x')), SpectraOf({100})).status(), IsOk());
  EXPECT_THAT(ReadRedrock(RedrockFile(std::string(257, 'x')), SpectraOf({100})).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("redrock.fits, HDU REDSHIFTS: column SUBTYPE has texts of 257 characters, "
                                 "the limit is 256")));
}

}  // namespace
}  // namespace spexd::testing
