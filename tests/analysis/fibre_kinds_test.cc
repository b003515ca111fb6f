// The fibres that FIBERSTATUS excludes from products, and how products show them.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/analysis/usable_spectra.h"
#include "core/fits/hdu/source.h"
#include "core/fits/hdu/table_file.h"
#include "core/fits/readers.h"
#include "core/products/analyse.h"
#include "core/products/coadd/coadd_frames.h"
#include "tests/analysis/made_up_frame.h"
#include "tests/support/matchers.h"

namespace spexd::testing {
namespace {

constexpr int64_t kStuckPositioner = 1 << 1, kBrokenFibre = 1 << 2, kPoorPosition = 1 << 10,
                  kVariableThroughput = 1 << 14, kManyRejected = 1 << 21, kBadAmplifierB = 1 << 22,
                  kBadAmplifierR = 1 << 23;

// Returns a frame of camera r0, of an exposure of targets 100, 101, ... Fibres with numbers in `sky` are sky
// fibres.
Frame FrameWith(const std::vector<int64_t>& status, const std::vector<int>& sky, float flux = 0) {
  const int fibres = static_cast<int>(status.size());
  Frame frame = DarkFrame(fibres, 1);
  for (float& value : frame.spectra.flux.flat()) value = flux;
  const auto card = [](const std::string& text) { return absl::StrFormat("%-80s", text); };
  frame.origin.image_cards = {card("CAMERA  = 'r0'")};
  RawTable table = {{}, fibres, 15, ""};
  for (const char* text : {"TFIELDS = 3", "TTYPE1  = 'TARGETID'", "TFORM1  = 'K'", "TTYPE2  = 'OBJTYPE'",
                           "TFORM2  = '3A'", "TTYPE3  = 'FIBERSTATUS'", "TFORM3  = 'J'"}) {
    table.cards.push_back(card(text));
  }
  const auto append = [&table](int64_t value, int bytes) {
    for (int k = bytes - 1; k >= 0; --k) table.data += static_cast<char>(value >> (8 * k));
  };
  for (int row = 0; row < fibres; ++row) {
    append(100 + row, 8);
    table.data += std::find(sky.begin(), sky.end(), row) != sky.end() ? "SKY" : "TGT";
    append(status[static_cast<size_t>(row)], 4);
  }
  frame.origin.fibermap = table;
  return frame;
}

TEST(FibreKinds, CountFatalBitsAndNoInformativeOnes) {
  const FibreKinds kinds =
      FibreKindsOf(FrameWith({0, kStuckPositioner | kPoorPosition, kBrokenFibre, kManyRejected,
                              kBadAmplifierB, kBadAmplifierR, kVariableThroughput},
                             {}))
          .value();
  EXPECT_THAT(kinds.good_sky, IsEmpty());
  EXPECT_THAT(kinds.targets, ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(kinds.fatal, ElementsAre(false, false, true, true, false, true, false));
}

TEST(FibreKinds, AlsoLeaveSkyFibresOfVariableThroughputOutOfTheSky) {
  const FibreKinds kinds = FibreKindsOf(FrameWith({0, kStuckPositioner, kBrokenFibre, kVariableThroughput,
                                                   kBadAmplifierR, kBadAmplifierB, 0},
                                                  {0, 1, 2, 3, 4, 5}))
                               .value();
  EXPECT_THAT(kinds.good_sky, ElementsAre(0, 1, 5));
  EXPECT_THAT(kinds.targets, ElementsAre(6));
}

TEST(FibreKinds, TakeTheBandOfTheWavelengthsWhereNoCameraIsStated) {
  Frame frame = FrameWith({kBadAmplifierR, kBadAmplifierB}, {});
  frame.origin.image_cards.clear();
  EXPECT_THAT(FibreKindsOf(frame).value().fatal, ElementsAre(true, false));
}

TEST(DroppedFibres, HaveNoDataAndSaySoInTheMask) {
  const Frame frame = FrameWith({0, 0}, {}, 7);
  UsableSpectra spectra = MakeUsable(frame).value();
  DropFibres({false, true}, &spectra);
  EXPECT_THAT(spectra.ivar.Row(0), Each(1));
  EXPECT_THAT(spectra.mask.Row(0), Each(0));
  EXPECT_THAT(spectra.ivar.Row(1), Each(0));
  EXPECT_THAT(spectra.mask.Row(1), Each(kMaskBadFibre));
}

TEST(ACoaddOfFrames, LeavesOutExposuresOfFatalFibres) {
  CoaddFrameSums sums;
  ASSERT_TRUE(sums.Add(FrameWith({0, 0, kBrokenFibre}, {}, 100), "a").ok());
  ASSERT_TRUE(sums.Add(FrameWith({kBrokenFibre, 0, kBrokenFibre}, {}, 0), "b").ok());
  const CoaddedFrames coadd = sums.Result().value();
  EXPECT_THAT(coadd.target_ids, ElementsAre(100, 101, 102));
  EXPECT_THAT(coadd.exposures, ElementsAre(1, 2, 0));
  EXPECT_FLOAT_EQ(coadd.arms[0].frame.spectra.flux(0, 50), 100);
  EXPECT_FLOAT_EQ(coadd.arms[0].frame.spectra.flux(1, 50), 50);
  EXPECT_THAT(coadd.arms[0].frame.spectra.ivar.Row(2), Each(0));
}

TEST(ACoaddOfFrames, CountsNoLightTwice) {
  const auto exposure = [](int number, float flux, const std::string& camera = "r0") {
    Frame frame = FrameWith({0, 0}, {}, flux);
    frame.origin.image_cards = {absl::StrFormat("%-80s", absl::StrFormat("EXPID   = %20d", number)),
                                absl::StrFormat("%-80s", absl::StrFormat("CAMERA  = '%s'", camera))};
    return frame;
  };
  CoaddFrameSums sums;
  ASSERT_TRUE(sums.Add(exposure(1, 100), "a").ok());
  EXPECT_EQ(sums.Add(exposure(1, 101), "b").message(),
            "b: exposure 1 of camera r0 is in the coadd already, from a, with fibre 0: its light would count "
            "twice; name every exposure once")
      << "another extraction of the same image";
  EXPECT_TRUE(sums.Add(exposure(2, 100), "c").ok());
  EXPECT_TRUE(sums.Add(exposure(1, 100, "r1"), "d").ok());
  Frame others = exposure(1, 100);
  others.fibres.first = 25;
  EXPECT_TRUE(sums.Add(others, "e").ok()) << "other fibres of the same image";
  EXPECT_THAT(sums.Result().value().exposures, ElementsAre(2, 2)) << "frames of one EXPID are one exposure";

  CoaddFrameSums unnumbered;
  ASSERT_TRUE(unnumbered.Add(FrameWith({0, 0}, {}, 100), "a").ok());
  EXPECT_FALSE(unnumbered.Add(FrameWith({0, 0}, {}, 100), "copy of a").ok());
  EXPECT_TRUE(unnumbered.Add(FrameWith({0, 0}, {}, 101), "b").ok());
}

TEST(ACoaddOfFrames, HasNoTraceShiftsOfOneExposure) {
  Frame frame = FrameWith({0}, {}, 1);
  frame.origin.traces = TraceReport();
  CoaddFrameSums sums;
  ASSERT_TRUE(sums.Add(frame, "a").ok());
  EXPECT_FALSE(sums.Result().value().arms[0].frame.origin.traces.has_value());
}

TEST(ACoaddOfFrames, HasAFibermapThatTellsItsTargets) {
  CoaddFrameSums sums;
  ASSERT_TRUE(sums.Add(FrameWith({kPoorPosition | kStuckPositioner, kBrokenFibre}, {}, 1), "a").ok());
  ASSERT_TRUE(sums.Add(FrameWith({kPoorPosition, kBrokenFibre}, {}, 2), "b").ok());
  const std::string file = CoaddFile(sums.Result().value()).value();
  const Frame coadd = ReadFrame(Source::FromBytes("coadd.fits", file).value()).value();
  EXPECT_FLOAT_EQ(coadd.spectra.flux(0, 50), 1.5);
  EXPECT_TRUE(IsCoadd(coadd));
  EXPECT_THAT(IntegerColumn(*coadd.origin.fibermap, "COADD_FIBERSTATUS").value(),
              ElementsAre(kPoorPosition, kBrokenFibre));
  EXPECT_THAT(TextColumn(*coadd.origin.fibermap, "OBJTYPE").value(), Each("TGT"));
  EXPECT_THAT(FibreKindsOf(coadd).value().fatal, ElementsAre(false, true));
}

}  // namespace
}  // namespace spexd::testing
