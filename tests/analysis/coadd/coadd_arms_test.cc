// Coadds of frames of several cameras.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/source.h"
#include "core/fits/hdu/table_file.h"
#include "core/fits/readers.h"
#include "core/products/coadd/coadd_frames.h"
#include "tests/analysis/coadd/camera_frames.h"
#include "tests/support/matchers.h"

namespace spexd::testing {
namespace {

constexpr int64_t kStuck = 1 << 1, kBroken = 1 << 2, kPoor = 1 << 10, kBadBlue = 1 << 22;

std::vector<std::string> FrameNames(const std::vector<Frame>& frames) {
  std::vector<std::string> names;
  for (size_t k = 0; k < frames.size(); ++k) names.push_back("frame " + std::to_string(k));
  return names;
}

CoaddedFrames Coadded(const std::vector<Frame>& frames) {
  CoaddFrameSums sums;
  const std::vector<std::string> names = FrameNames(frames);
  for (size_t k = 0; k < frames.size(); ++k) EXPECT_THAT(sums.Add(frames[k], names[k]), IsOk());
  return sums.Result().value();
}

CoaddedFrames CoaddedWithShifts(const std::vector<Frame>& frames, std::vector<double> velocities) {
  ShiftSource shifts;
  shifts.velocities = std::move(velocities);
  return CoaddShiftedFrames(frames, FrameNames(frames), shifts, 2).value();
}

std::string ArmsOf(const CoaddedFrames& coadd) {
  std::string names;
  for (const CoaddedArm& arm : coadd.arms) names += arm.name;
  return names;
}

Source CoaddSource(const CoaddedFrames& coadd) {
  return Source::FromBytes("coadd.fits", CoaddFile(coadd).value()).value();
}

std::vector<int64_t> IntegersIn(const CoaddedFrames& coadd, const char* hdu, const char* column) {
  return IntegerColumn(ReadTableHdu(CoaddSource(coadd), hdu).value(), column).value();
}
std::vector<double> NumbersIn(const CoaddedFrames& coadd, const char* hdu, const char* column) {
  return NumberColumn(ReadTableHdu(CoaddSource(coadd), hdu).value(), column).value();
}

TEST(ACoaddOfCameras, HasAnArmForEachLetterByWavelength) {
  const CoaddedFrames coadd = Coadded({FrameOfCamera('z', 1, {{10, 3}}), FrameOfCamera('b', 1, {{10, 1}}),
                                       FrameOfCamera('r', 1, {{10, 2}}), FrameOfCamera('b', 2, {{10, 5}})});
  ASSERT_EQ(ArmsOf(coadd), "BRZ");
  const float fluxes[] = {3, 2, 3}, ivars[] = {8, 4, 4};
  for (size_t k = 0; k < 3; ++k) {
    const CoaddedArm& arm = coadd.arms[k];
    EXPECT_EQ(arm.frame.grid, GridOfCamera("brz"[k]));
    EXPECT_THAT(arm.frame.spectra.flux.Row(0), Each(fluxes[k])) << arm.name;
    EXPECT_THAT(arm.frame.spectra.ivar.Row(0), Each(ivars[k])) << arm.name;
    EXPECT_THAT(arm.frame.spectra.mask.Row(0), Each(0)) << arm.name;
  }
  const Source file = CoaddSource(coadd);
  for (const auto& [hdu, flux] : {std::pair("B_FLUX", 3.0), {"R_FLUX", 2.0}, {"Z_FLUX", 3.0}})
    EXPECT_THAT(ReadImageHduDouble(file, hdu).value().flat(), Each(flux)) << hdu;
  EXPECT_DOUBLE_EQ(ReadImageHduDouble(file, "Z_WAVELENGTH").value()(0, 59), GridOfCamera('z').last());
}

TEST(ACoaddOfCameras, HasInEachArmWhatACoaddOfItsFramesAloneHas) {
  const std::vector<Frame> frames = {
      FrameOfCamera('r', 1, {{10, 1}, {11, 2}}), FrameOfCamera('b', 1, {{10, 3}, {11, 4}}),
      FrameOfCamera('r', 2, {{10, 5}, {11, 6}}), FrameOfCamera('b', 2, {{10, 7}, {11, 8}})};
  const std::vector<Frame> red = {frames[0], frames[2]}, blue = {frames[1], frames[3]};
  const CoaddedFrames all = Coadded(frames), shifted = CoaddedWithShifts(frames, {0, 10, 20, -30});
  ASSERT_EQ(ArmsOf(all), "BR");
  ASSERT_EQ(ArmsOf(shifted), "BR");
  EXPECT_EQ(all.arms[0].frame.spectra, Coadded(blue).arms[0].frame.spectra);
  EXPECT_EQ(all.arms[1].frame.spectra, Coadded(red).arms[0].frame.spectra);
  EXPECT_EQ(shifted.arms[0].frame.spectra, CoaddedWithShifts(blue, {10, -30}).arms[0].frame.spectra);
  EXPECT_EQ(shifted.arms[1].frame.spectra, CoaddedWithShifts(red, {0, 20}).arms[0].frame.spectra);
  EXPECT_EQ(shifted.target_ids, all.target_ids);
  EXPECT_EQ(shifted.exposures, all.exposures);
}

TEST(ACoaddOfCameras, HasNoDataWhereATargetHasNoFrameInAnArm) {
  const std::vector<Frame> frames = {FrameOfCamera('b', 1, {{11, 1}, {10, 2}}),
                                     FrameOfCamera('r', 1, {{12, 3}, {10, 4}, {99, 5, 0, "SKY"}, {11, 6}})};
  for (const CoaddedFrames& coadd : {Coadded(frames), CoaddedWithShifts(frames, {0, 0})}) {
    EXPECT_THAT(coadd.target_ids, ElementsAre(11, 10, 12)) << "the order in which frames have them first";
    EXPECT_THAT(coadd.exposures, ElementsAre(1, 1, 1));
    ASSERT_EQ(ArmsOf(coadd), "BR");
    const Spectra& blue = coadd.arms[0].frame.spectra;
    EXPECT_THAT(blue.flux.Row(2), Each(0));
    EXPECT_THAT(blue.ivar.Row(2), Each(0));
    EXPECT_THAT(blue.mask.Row(2), Each(kMaskNoData));
    for (int k = 0; k < kResolutionDiagonals; ++k) EXPECT_THAT(blue.resolution.Row(2, k), Each(0));
    const Spectra& red = coadd.arms[1].frame.spectra;
    for (const auto& [row, flux] : {std::pair(0, 6.0f), {1, 4.0f}, {2, 3.0f}}) {
      EXPECT_NEAR(red.flux(row, 25), flux, 1e-4);
      EXPECT_EQ(red.mask(row, 25), 0u);
    }
    EXPECT_THAT(IntegersIn(coadd, "FIBERMAP", "TARGETID"), ElementsAre(11, 10, 12));
    EXPECT_EQ(NumbersIn(coadd, "SCORES", "MEDIAN_COADD_SNR_B")[2], 0);
  }
}

TEST(ACoaddOfCameras, CountsTheCamerasOfAnExposureOnce) {
  std::vector<Frame> frames;
  for (const int exposure : {1, 2}) {
    // Target 11 has no good spectrum in exposure 2, target 12 none in b.
    const int64_t broken = exposure == 2 ? kBroken : 0;
    for (const char camera : {'b', 'r', 'z'})
      frames.push_back(
          FrameOfCamera(camera, exposure, {{10, 1}, {11, 1, broken}, {12, 1, kBadBlue}, {13, 1, kBroken}}));
  }
  const CoaddedFrames coadd = Coadded(frames);
  EXPECT_THAT(coadd.exposures, ElementsAre(2, 1, 2, 0));
  EXPECT_THAT(IntegersIn(coadd, "FIBERMAP", "COADD_NUMEXP"), ElementsAre(2, 1, 2, 0));
  EXPECT_THAT(coadd.arms[0].frame.spectra.ivar.Row(2), Each(0));
  EXPECT_THAT(coadd.arms[1].frame.spectra.ivar.Row(2), Each(8));
}

TEST(ACoaddOfCameras, HasTheStatusBitsThatAllExposuresOfAllArmsHave) {
  const CoaddedFrames coadd = Coadded({FrameOfCamera('b', 1, {{10, 1, kPoor | kStuck}, {11, 1, kStuck}}),
                                       FrameOfCamera('r', 1, {{10, 1, kPoor}, {11, 1, kStuck}}),
                                       FrameOfCamera('z', 2, {{10, 1, kPoor | kBroken}})});
  EXPECT_THAT(IntegersIn(coadd, "FIBERMAP", "COADD_FIBERSTATUS"), ElementsAre(kPoor, kStuck));
  EXPECT_THAT(TextColumn(ReadTableHdu(CoaddSource(coadd), "FIBERMAP").value(), "OBJTYPE").value(),
              Each("TGT"));
  EXPECT_THAT(NumbersIn(coadd, "FIBERMAP", "TARGET_RA"), ElementsAre(1.0, ::testing::DoubleEq(1.1)));
  EXPECT_THAT(NumbersIn(coadd, "FIBERMAP", "TARGET_DEC"), Each(-30));
}

TEST(ACoaddOfCameras, NamesTheExposuresOfEachTarget) {
  const CoaddedFrames coadd =
      Coadded({FrameOfCamera('b', 7, {{10, 1, kPoor}, {11, 1}}),
               FrameOfCamera('r', 7, {{10, 1, kStuck}, {11, 1}}), FrameOfCamera('r', 8, {{12, 1}, {10, 1}})});
  EXPECT_THAT(IntegersIn(coadd, "EXP_FIBERMAP", "TARGETID"), ElementsAre(10, 10, 11, 12));
  EXPECT_THAT(IntegersIn(coadd, "EXP_FIBERMAP", "EXPID"), ElementsAre(7, 8, 7, 8));
  EXPECT_THAT(IntegersIn(coadd, "EXP_FIBERMAP", "NIGHT"), Each(20290101));
  EXPECT_THAT(IntegersIn(coadd, "EXP_FIBERMAP", "FIBER"), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(IntegersIn(coadd, "EXP_FIBERMAP", "FIBERSTATUS"), ElementsAre(kPoor | kStuck, 0, 0, 0));
}

TEST(ACoaddOfCameras, ScoresTheMediansOfGoodBins) {
  Frame blue = FrameOfCamera('b', 1, {{10, 3}, {11, 5}}), red = FrameOfCamera('r', 1, {{10, 2}, {11, 4}});
  // Half of the blue bins are brighter; the brightest are masked or have no weight.
  for (int64_t j = 0; j < 20; ++j) blue.spectra.flux(0, j) = 7;
  for (int64_t j = 0; j < 10; ++j) blue.spectra.flux(1, j) = 1e6f;
  for (int64_t j = 0; j < 5; ++j) blue.spectra.mask(1, j) = kMaskAllBadPix;
  for (int64_t j = 5; j < 10; ++j) blue.spectra.ivar(1, j) = 0;
  const CoaddedFrames coadd = Coadded({blue, red});
  EXPECT_THAT(IntegersIn(coadd, "SCORES", "TARGETID"), ElementsAre(10, 11));
  EXPECT_THAT(NumbersIn(coadd, "SCORES", "MEDIAN_COADD_FLUX_B"), ElementsAre(5, 5));
  EXPECT_THAT(NumbersIn(coadd, "SCORES", "MEDIAN_COADD_SNR_B"), ElementsAre(10, 10));
  EXPECT_THAT(NumbersIn(coadd, "SCORES", "MEDIAN_COADD_FLUX_R"), ElementsAre(2, 4));
  EXPECT_THAT(NumbersIn(coadd, "SCORES", "MEDIAN_COADD_SNR_R"), ElementsAre(4, 8));
}

TEST(ACoaddOfCameras, TakesTheBandOfTheWavelengthsWhereNoCameraIsStated) {
  const CoaddedFrames coadd =
      Coadded({WithoutCard(FrameOfCamera('z', 1, {{10, 3}}), "CAMERA"),
               WithoutCard(FrameOfCamera('b', 1, {{10, 1}}), "CAMERA"), FrameOfCamera('b', 2, {{10, 1}})});
  EXPECT_EQ(ArmsOf(coadd), "BZ");
  EXPECT_THAT(coadd.exposures, ElementsAre(2));
}

TEST(ACoaddOfCameras, CountsFramesWithoutExposureNumbersEachForItself) {
  const CoaddedFrames coadd =
      Coadded({FrameOfCamera('r', std::nullopt, {{10, 3}}), FrameOfCamera('b', std::nullopt, {{10, 1}}),
               FrameOfCamera('b', 1, {{10, 1}})});
  EXPECT_THAT(coadd.exposures, ElementsAre(3));
  EXPECT_FALSE(coadd.exposure_table.has_value()) << "they have no EXPID to be named by";
  EXPECT_FALSE(ReadTableHdu(CoaddSource(coadd), "EXP_FIBERMAP").ok());
}

TEST(ACoaddOfCameras, LeavesTheCameraOutOfTheHeaderOfSeveral) {
  const auto camera = [](const CoaddedFrames& coadd) {
    const Source file = CoaddSource(coadd);
    return std::string(file.bytes()).find("CAMERA  =") != std::string::npos;
  };
  const Frame blue = FrameOfCamera('b', 1, {{10, 1}}), red = FrameOfCamera('r', 1, {{10, 1}});
  EXPECT_TRUE(camera(Coadded({blue})));
  EXPECT_FALSE(camera(Coadded({blue, red})));
}

TEST(ACoaddOfCameras, RefusesAFrameOnAnotherGridOfItsArm) {
  CoaddFrameSums sums;
  ASSERT_THAT(sums.Add(FrameOfCamera('b', 1, {{10, 1}}), "a"), IsOk());
  ASSERT_THAT(sums.Add(FrameOfCamera('r', 1, {{10, 1}}), "b"), IsOk());
  Frame other = FrameOfCamera('r', 2, {{11, 1}});
  other.grid.first += 1;
  EXPECT_THAT(sums.Add(other, "c"), StatusIs(absl::StatusCode::kInvalidArgument,
                                             AllOf(StartsWith("c: its grid is 6001 to "),
                                                   HasSubstr("that of the frames before it 6000 to "))));
  EXPECT_THAT(
      sums.Add(FrameOfCamera('r', 1, {{11, 1}}), "d"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               StartsWith("d: exposure 1 of camera r0 is in the coadd already, from b, with fibre 0")));
  Frame nameless = FrameOfCamera('z', 1, {{11, 1}});
  nameless.origin.fibermap.reset();
  EXPECT_THAT(sums.Add(nameless, "e"), StatusIs(absl::StatusCode::kInvalidArgument, StartsWith("e: ")));
  const CoaddedFrames coadd = sums.Result().value();
  EXPECT_EQ(ArmsOf(coadd), "BR") << "what is refused counts nothing";
  EXPECT_THAT(coadd.target_ids, ElementsAre(10));
}

TEST(ACoaddOfCameras, RefusesAShiftThatDoesNotFitItsArm) {
  std::vector<Frame> frames = {FrameOfCamera('b', 1, {{10, 1}}), FrameOfCamera('r', 1, {{10, 1}}),
                               FrameOfCamera('r', 2, {{10, 1}})};
  ShiftSource shifts;
  shifts.velocities = {0, 10};
  const auto message = [&] {
    return std::string(CoaddShiftedFrames(frames, FrameNames(frames), shifts, 1).status().message());
  };
  EXPECT_THAT(message(), HasSubstr("there are 2 for 3 frames"));
  shifts.velocities = {0, 10, 20};
  frames[2].grid.first += 1000;
  EXPECT_THAT(message(), AllOf(StartsWith("frame 2: wavelengths: "), HasSubstr("no bin in common")));
}

TEST(TheFileOfACoadd, IsNotWrittenOfArmsThatDoNotBelongTogether) {
  const CoaddedFrames coadd = Coadded({FrameOfCamera('b', 1, {{10, 1}}), FrameOfCamera('r', 1, {{10, 1}})});
  const auto message = [](const CoaddedFrames& wrong) {
    return std::string(CoaddFile(wrong).status().message());
  };
  CoaddedFrames wrong = coadd;
  wrong.arms[1].name = 'B';
  EXPECT_EQ(message(wrong), "coadd: has two arms B, must have one");
  wrong.arms[1].name = 'X';
  EXPECT_EQ(message(wrong), "coadd: arm 'X', must be B, R or Z");
  wrong = coadd;
  wrong.target_ids.push_back(11);
  EXPECT_EQ(message(wrong), "coadd: arm B has 1 rows, must have one for each of the 2 targets");
  EXPECT_EQ(message({}), "coadd: has no arms");
}

}  // namespace
}  // namespace spexd::testing
