// The inputs of a joint analysis: what their headers say, and how they become spectra of targets.
#include "core/products/joint/joint_input.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/fits/writers.h"
#include "tests/analysis/joint/made_up_spectra.h"
#include "tests/analysis/made_up_frame.h"
#include "tests/fits/counting_account.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"
#include "tests/support/temp_folder.h"

namespace spexd::testing {
namespace {

constexpr char kName[] = "/night/coadd-main-1.fits";

Source SourceOf(const std::string& bytes) { return Source::FromBytes(kName, bytes).value(); }

absl::Status OutlineError(const std::string& bytes) { return ReadSpectraOutline(SourceOf(bytes)).status(); }

void ExpectRefused(const absl::Status& status, const std::string& message) {
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
}

// Returns arms of 100, 120 and 100 bins with three rows, and all tables.
TargetSpectra ThreeArms() {
  TargetSpectra spectra = SpectraOf({100, 101, 102});
  spectra.arms[1] = ArmOf("R", 6000, 3, 120);
  spectra.arms[2].spectra.resolution.Assign({3, 9, 100}, 0.1F);
  NumberTable scores(3), exposures(5);
  scores.Add("MEDIAN_COADD_SNR_B", std::vector<float>{1, 2, 3});
  exposures.Add("TARGETID", std::vector<int64_t>{100, 100, 101, 102, 102});
  spectra.scores = TableOf(scores, "SCORES");
  spectra.exposures = TableOf(exposures, "EXP_FIBERMAP");
  return spectra;
}

// Returns a file with a frame of two fibres.
std::string FrameFile(bool with_fibermap = true) {
  Frame frame = DarkFrame(2, 1);
  if (with_fibermap) {
    NumberTable fibermap(2);
    fibermap.Add("TARGETID", std::vector<int64_t>{100, 101});
    frame.origin.fibermap = TableOf(fibermap, "FIBERMAP");
  }
  const TempFolder folder;
  EXPECT_THAT(WriteFrame(frame, folder / "frame.fits"), IsOk());
  return ReadBytes(folder / "frame.fits");
}

// Expects that the memory which reading takes from an account is within the outline's estimate, and more than
// a third of it.
void ExpectItsMemory(const std::string& bytes, const SpectraOutline& outline, int threads) {
  const auto account = std::make_shared<CountingAccount>();
  const Source source = Source::FromBytes(kName, bytes, {.memory = account}).value();
  const int64_t before = account->taken();
  ASSERT_THAT(ReadSpectraInput(source, {.threads = threads}).status(), IsOk());
  EXPECT_LE(account->peak() - before, outline.decode_bytes);
  EXPECT_GT(3 * (account->peak() - before), outline.decode_bytes);
}

TEST(SpectraOutlines, HaveTheShapesOfAllArms) {
  const TargetSpectra spectra = ThreeArms();
  const std::string file = FileOf(spectra);
  const SpectraOutline outline = ReadSpectraOutline(SourceOf(file)).value();
  EXPECT_EQ(outline.kind, SpectraKind::kTargets);
  EXPECT_EQ(outline.rows, 3);
  ASSERT_THAT(outline.arms, SizeIs(3));
  EXPECT_EQ(outline.arms[0].bins, 100);
  EXPECT_EQ(outline.arms[1].bins, 120);
  EXPECT_EQ(outline.arms[1].diagonals, 11);
  EXPECT_FALSE(outline.arms[1].combined);
  EXPECT_EQ(outline.arms[2].diagonals, 9);
  const size_t data =
      spectra.fibermap.data.size() + spectra.scores->data.size() + spectra.exposures->data.size();
  EXPECT_GE(outline.table_bytes, static_cast<int64_t>(data));
  EXPECT_LT(outline.table_bytes, 20000);
  ExpectItsMemory(file, outline, 1);
  const std::string without = FileOf(spectra, {"B_MASK", "R_MASK"});
  ExpectItsMemory(without, ReadSpectraOutline(SourceOf(without)).value(), 4);
}

TEST(SpectraOutlines, AreOfOneArmWhereCamerasWereCombined) {
  TargetSpectra spectra = SpectraOf({100, 101});
  spectra.arms = {ArmOf("BRZ", 3600, 2, 300)};
  const SpectraOutline outline = ReadSpectraOutline(SourceOf(FileOf(spectra))).value();
  ASSERT_THAT(outline.arms, SizeIs(1));
  EXPECT_EQ(outline.arms[0].bins, 300);
  EXPECT_TRUE(outline.arms[0].combined);
  EXPECT_EQ(outline.rows, 2);
}

TEST(SpectraOutlines, AreOfFramesToo) {
  const std::string file = FrameFile();
  const SpectraOutline outline = ReadSpectraOutline(SourceOf(file)).value();
  EXPECT_EQ(outline.kind, SpectraKind::kFrame);
  EXPECT_EQ(outline.rows, 2);
  ASSERT_THAT(outline.arms, SizeIs(1));
  EXPECT_EQ(outline.arms[0].bins, kFrameBins);
  EXPECT_EQ(outline.arms[0].diagonals, kResolutionDiagonals);
  EXPECT_GT(outline.table_bytes, 16);
  ExpectItsMemory(file, outline, 2);
  EXPECT_THAT(OutlineError(FrameFile(false)), IsOk()) << "reading tells what a fibermap is needed for";
}

TEST(SpectraOutlines, NameWhatIsMissingOrOfAnotherShape) {
  TargetSpectra spectra = ThreeArms();
  for (const std::string hdu : {"B_WAVELENGTH", "R_IVAR", "Z_RESOLUTION", "FIBERMAP"})
    ExpectRefused(OutlineError(FileOf(spectra, {hdu})), hdu);
  ExpectRefused(OutlineError(FileOf(spectra, {"B_FLUX", "R_FLUX", "Z_FLUX"})), "neither a frame");
  ExpectRefused(OutlineError("no FITS file\n"), "coadd-main-1.fits: is not a FITS file");
  spectra.arms[0].spectra.ivar.Assign({3, 99});
  ExpectRefused(OutlineError(FileOf(spectra)), "HDU B_IVAR: has shape 3 x 99, must be 3 fibres x 100");
  spectra = ThreeArms();
  spectra.arms[0].spectra.mask.Assign({2, 100});
  ExpectRefused(OutlineError(FileOf(spectra)), "HDU B_MASK: has shape 2 x 100");
  spectra = ThreeArms();
  spectra.arms[1].spectra.resolution.Assign({3, 10, 120});
  ExpectRefused(OutlineError(FileOf(spectra)),
                "HDU R_RESOLUTION: has shape 3 x 10 x 120, must be 3 fibres x "
                "an odd number");
  spectra = ThreeArms();
  spectra.arms[2].grid.count = 90;
  ExpectRefused(OutlineError(FileOf(spectra)), "HDU Z_WAVELENGTH: has shape 90, must be the 100 wavelengths");
  spectra = ThreeArms();
  spectra.arms[2] = ArmOf("Z", 8500, 2, 100);
  ExpectRefused(OutlineError(FileOf(spectra)), "HDU Z_FLUX: has 2 rows");
  spectra = ThreeArms();
  spectra.arms[2].name = "B";
  ExpectRefused(OutlineError(FileOf(spectra)), "HDU B_FLUX is there twice");
  spectra = ThreeArms();
  spectra.fibermap = SpectraOf({100}).fibermap;
  ExpectRefused(OutlineError(FileOf(spectra)), "HDU FIBERMAP: has 1 rows, must have one for each of the 3");
}

SpectraInput FrameInput(const std::string& name) {
  return {name, ReadSpectraInput(SourceOf(FrameFile())).value().spectra};
}

TEST(JoinInputs, TakesOneFileOfSpectraOrFrames) {
  const TargetSpectra read = JoinInputs({ReadSpectraInput(SourceOf(FileOf(ThreeArms()))).value()}).value();
  EXPECT_EQ(read.name, "coadd-main-1.fits");
  EXPECT_THAT(read.arms, SizeIs(3));
  const TargetSpectra joined = JoinInputs({FrameInput("sframe-r0-1.fits")}).value();
  EXPECT_THAT(joined.arms, SizeIs(1));
  EXPECT_EQ(joined.name, "sframe-r0-1.fits");
}

TEST(JoinInputs, RefusesSeveralFilesOfSpectraAndFramesBesideOne) {
  const SpectraInput spectra = {"coadd-1.fits", ThreeArms()}, more = {"coadd-2.fits", ThreeArms()};
  ExpectRefused(JoinInputs({spectra, more}).status(),
                "coadd-1.fits: has spectra of targets, which are analysed one file at a time; leave out "
                "coadd-2.fits");
  ExpectRefused(JoinInputs({FrameInput("frame.fits"), spectra}).status(), "leave out frame.fits");
  ExpectRefused(JoinInputs({}).status(), "frames: there are none");
}

TEST(SubtractOwnSky, LeavesSpectraWithoutASkyAsTheyAre) {
  SpectraInput frame = FrameInput("sframe-r0-1.fits"), spectra = {"coadd-1.fits", ThreeArms()};
  const Array<float, 2> before = std::get<Frame>(frame.spectra).spectra.flux;
  EXPECT_THAT(SubtractOwnSky(nullptr, false, {}, &frame), IsOk());
  EXPECT_EQ(std::get<Frame>(frame.spectra).spectra.flux, before);
  EXPECT_THAT(SubtractOwnSky(nullptr, false, {}, &spectra), IsOk());
  const Fiberflat fiberflat;
  ExpectRefused(SubtractOwnSky(&fiberflat, false, {}, &frame), "sframe-r0-1.fits: has no sky in it");
  ExpectRefused(SubtractOwnSky(&fiberflat, false, {}, &spectra),
                "coadd-1.fits: has spectra of targets, which are flat-fielded; leave out the fiberflat");
  frame.name = "frame-r0-1.fits";
  ExpectRefused(SubtractOwnSky(&fiberflat, true, {}, &frame), "frame-r0-1.fits: has no sky in it");
  ExpectRefused(SubtractOwnSky(nullptr, false, {}, &frame), "frame-r0-1.fits: ");  // without OBJTYPE
}

TEST(KeepArms, LeavesThoseOfTheLetters) {
  TargetSpectra spectra = ThreeArms();
  EXPECT_THAT(KeepArms({}, &spectra), IsOk());
  EXPECT_THAT(spectra.arms, SizeIs(3));
  EXPECT_THAT(KeepArms({"z", "B"}, &spectra), IsOk());
  ASSERT_THAT(spectra.arms, SizeIs(2));
  EXPECT_EQ(spectra.arms[0].name + spectra.arms[1].name, "BZ");
  ExpectRefused(KeepArms({"r"}, &spectra), "arms: there is no such arm; there are B, Z");
  spectra = ThreeArms();
  spectra.arms = {ArmOf("BR", 4000, 3, 100)};
  ExpectRefused(KeepArms({"b"}, &spectra), "arms: the arm BR is of several cameras combined");
  EXPECT_THAT(KeepArms({"b", "r"}, &spectra), IsOk());
}

}  // namespace
}  // namespace spexd::testing
