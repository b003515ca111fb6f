// Fiberflats: the bins that they spoil, their grids, and the assignment of their rows.
#include "core/products/inputs/fiberflat.h"

#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/fits/hdu/fits_builder.h"
#include "core/fits/hdu/source.h"
#include "core/products/inputs/input_outline.h"
#include "tests/analysis/made_up_frame.h"
#include "tests/fits/counting_account.h"
#include "tests/support/matchers.h"

namespace spexd::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Returns a frame of fibres first, first + 1, ... with a flux of 3 and an ivar of 2.
Frame FrameOf(int first, int fibres) {
  Frame frame = DarkFrame(fibres, 0.5);
  for (float& flux : frame.spectra.flux.flat()) flux = 3;
  frame.fibres = {first, fibres};
  return frame;
}

// Returns a fiberflat on the grid of these frames with `value` in all bins; if `value` is 0, with 1 + k / 100
// for fibre k.
Fiberflat FlatOf(const std::vector<int64_t>& fibres, double value = 0) {
  const Frame frame = DarkFrame(1, 1);
  Fiberflat flat;
  flat.wave = frame.grid.Values();
  flat.fibres = fibres;
  flat.values.Assign({static_cast<int64_t>(fibres.size()), kFrameBins});
  flat.ivar.Assign(flat.values.shape(), std::numeric_limits<float>::infinity());
  for (size_t row = 0; row < fibres.size(); ++row) {
    const double of_fibre = value > 0 ? value : 1 + 0.01 * static_cast<double>(fibres[row]);
    for (double& each : flat.values.Row(static_cast<int64_t>(row))) each = of_fibre;
  }
  return flat;
}

std::vector<int64_t> Numbers(int64_t first, int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

// Returns the flux of each fibre in a bin, after division by the fiberflat.
std::vector<double> Divided(const Fiberflat& flat, const Frame& frame, int64_t bin = 7) {
  UsableSpectra spectra = MakeUsable(frame).value();
  EXPECT_THAT(ApplyFiberflat(flat, frame, &spectra), IsOk());
  std::vector<double> fluxes;
  for (int64_t i = 0; i < spectra.fibres(); ++i) fluxes.push_back(spectra.flux(i, bin));
  return fluxes;
}

std::string Refusal(const Fiberflat& flat, const Frame& frame) {
  UsableSpectra spectra = MakeUsable(frame).value();
  return std::string(ApplyFiberflat(flat, frame, &spectra).message());
}

TEST(Fiberflat, DividesFluxAndAddsItsVariance) {
  const Frame frame = FrameOf(0, 1);
  Fiberflat flat = FlatOf({0}, 0.5);
  flat.ivar(0, 8) = 100;
  UsableSpectra spectra = MakeUsable(frame).value();
  ASSERT_TRUE(ApplyFiberflat(flat, frame, &spectra).ok());
  EXPECT_TRUE(spectra.changed);
  EXPECT_DOUBLE_EQ(spectra.flux(0, 7), 6);
  EXPECT_DOUBLE_EQ(spectra.ivar(0, 7), 0.5);
  // Variances F^2 / (ivar C^4) of the fiberflat and 1 / (ivar C^2) of the spectrum.
  EXPECT_DOUBLE_EQ(spectra.ivar(0, 8), 1 / (9 / (100 * 0.0625) + 1 / (2 * 0.25)));
}

TEST(Fiberflat, TakesTheDataOfBinsOfWhichItTellsNothing) {
  const Frame frame = FrameOf(0, 1);
  Fiberflat flat = FlatOf({0}, 0.5);
  flat.ivar(0, 1) = 0;
  flat.ivar(0, 2) = kNan;
  flat.values(0, 3) = 0;
  flat.values(0, 4) = -1;
  flat.values(0, 5) = kNan;
  flat.values(0, 6) = HUGE_VAL;
  UsableSpectra spectra = MakeUsable(frame).value();
  ASSERT_TRUE(ApplyFiberflat(flat, frame, &spectra).ok());
  for (int64_t bin = 0; bin < kFrameBins; ++bin) {
    const bool bad = bin >= 1 && bin <= 6;
    EXPECT_EQ(spectra.mask(0, bin), bad ? kMaskBadFiberflat : 0) << bin;
    EXPECT_DOUBLE_EQ(spectra.ivar(0, bin), bad ? 0 : 0.5) << bin;
    EXPECT_DOUBLE_EQ(spectra.flux(0, bin), bad ? 0 : 6) << bin;
  }
}

TEST(Fiberflat, IsTakenWhereTheDetectorSawABarycentricWavelength) {
  Fiberflat flat = FlatOf({0});
  for (int64_t j = 0; j < kFrameBins; ++j) flat.values(0, j) = 1 + 0.001 * static_cast<double>(j);
  flat.ivar(0, 200) = 0;
  flat.values(0, 200) = 1e6;
  for (const double factor : {1 + 1e-4, 1 - 1e-4}) {
    Frame frame = FrameOf(0, 1);
    frame.origin.heliocentric_factor = factor;
    UsableSpectra spectra = MakeUsable(frame).value();
    ASSERT_TRUE(ApplyFiberflat(flat, frame, &spectra).ok());
    for (const int64_t bin : {10, 199, 201, 380}) {
      const double wave = kFirstWave + kWaveStep * static_cast<double>(bin);
      const double position = (wave / factor - kFirstWave) / kWaveStep;
      EXPECT_NEAR(spectra.flux(0, bin), 3 / (1 + 0.001 * position), 1e-9) << bin;
    }
    EXPECT_EQ(spectra.mask(0, 200), kMaskBadFiberflat);
    EXPECT_EQ(spectra.mask(0, 201), 0);
  }
}

TEST(Fiberflat, MustHaveTheGridOfTheFrame) {
  const Frame frame = FrameOf(0, 1);
  Fiberflat flat = FlatOf({0}, 0.5);
  for (double& wave : flat.wave) wave += 0.05;  // less than one part in 100,000
  EXPECT_THAT(Divided(flat, frame), ElementsAre(6));
  for (double& wave : flat.wave) wave += 40;
  flat.name = "flat.fits";
  EXPECT_THAT(Refusal(flat, frame),
              AllOf(HasSubstr("fiberflat flat.fits: its WAVELENGTH is 6040"),
                    HasSubstr("in 400 bins, that of the frame 6000 to"), HasSubstr("-w")));
  Fiberflat shorter = FlatOf({0}, 0.5);
  shorter.wave.clear();
  EXPECT_THAT(Divided(shorter, frame), ElementsAre(6));
  shorter.values.Assign({1, 7}, 1);
  EXPECT_THAT(Refusal(shorter, frame), HasSubstr("has 7 wavelengths, must have the 400 of the frame"));
}

TEST(Fiberflat, GivesEachFibreItsRow) {
  const Frame frame = FrameOf(9, 3);
  EXPECT_THAT(Divided(FlatOf(Numbers(0, 30)), frame), ElementsAre(3 / 1.09, 3 / 1.10, 3 / 1.11));
  EXPECT_THAT(Divided(FlatOf({11, 9, 10}), frame), ElementsAre(3 / 1.09, 3 / 1.10, 3 / 1.11));
  EXPECT_THAT(Refusal(FlatOf(Numbers(0, 11)), frame),
              AllOf(HasSubstr("no row for FIBER 11 of the frame"), HasSubstr("its rows are FIBER 0 to 10")));
  EXPECT_THAT(Refusal(FlatOf({9}), frame), HasSubstr("no row for FIBER 10, 11 of the frame"));
  EXPECT_THAT(Refusal(FlatOf(Numbers(9, 1)), FrameOf(0, 15)), HasSubstr("7, 8, 10, ... (14 in all)"));
}

TEST(Fiberflat, MayCountTheFibresOfASpectrograph) {
  const Frame third = FrameOf(1509, 2);
  EXPECT_THAT(Divided(FlatOf(Numbers(0, 30)), third), ElementsAre(3 / 1.09, 3 / 1.10));
  EXPECT_THAT(Divided(FlatOf(Numbers(1500, 30), 1.5), third), ElementsAre(2, 2));
  // Numbers of another spectrograph are not indices, nor are those of two spectrographs.
  EXPECT_THAT(Refusal(FlatOf(Numbers(1000, 30)), third), HasSubstr("no row for FIBER 1509, 1510"));
  EXPECT_THAT(Refusal(FlatOf(Numbers(0, 500)), FrameOf(1499, 2)), HasSubstr("no row for FIBER 1499, 1500"));
  Frame of_camera = third;
  of_camera.origin.image_cards = {absl::StrFormat("%-80s", "CAMERA  = 'r3'")};
  Fiberflat flat = FlatOf(Numbers(0, 30));
  flat.camera = "r0";
  EXPECT_THAT(Refusal(flat, of_camera), HasSubstr("no row for FIBER 1509, 1510"));
  flat.camera = "r3";
  EXPECT_THAT(Divided(flat, of_camera), ElementsAre(3 / 1.09, 3 / 1.10));
}

TEST(Fiberflat, OfNumbersAloneHasTheRowsOfTheFrame) {
  const Frame frame = FrameOf(9, 2);
  const Fiberflat flat = {.values = Array<double, 2>({2, kFrameBins}, 1.5)};
  EXPECT_THAT(Divided(flat, frame), ElementsAre(2, 2));
  EXPECT_THAT(Refusal({.values = Array<double, 2>({1, kFrameBins}, 1.5)}, frame),
              HasSubstr("has 1 rows, must have one for each of the 2 fibres"));
}

// Returns a file with these HDUs of a fiberflat of 2 fibres and 3 bins. The HDU named `other` has 4 bins.
std::string FlatFile(const std::vector<std::string>& hdus, const std::string& other = "",
                     const std::vector<int>& fibres = {7, 5}) {
  FitsBuilder fits(1 << 16);
  fits.BeginImage("FIBERFLAT", FLOAT_IMG, {2, 3});
  fits.Text("CAMERA", "r3", "");
  fits.Pixels(absl::MakeConstSpan(std::vector<float>{1, 0, kNan, 1, 2, 3}));
  for (const std::string& hdu : hdus) {
    const int64_t bins = hdu == other ? 4 : 3;
    if (hdu == "IVAR") {
      fits.BeginImage("IVAR", FLOAT_IMG, {2, bins});
      fits.Pixels(absl::MakeConstSpan(std::vector<float>(2 * bins, 4)));
    } else if (hdu == "MASK") {
      fits.BeginImage("MASK", ULONG_IMG, {2, bins});
      std::vector<uint32_t> mask(2 * bins, 0);
      mask[static_cast<size_t>(bins) + 1] = 1u << 31;
      fits.Pixels(absl::MakeConstSpan(mask));
    } else if (hdu == "WAVELENGTH") {
      fits.BeginImage("WAVELENGTH", DOUBLE_IMG, {bins});
      std::vector<double> wave(static_cast<size_t>(bins));
      std::iota(wave.begin(), wave.end(), 6000.0);
      fits.Pixels(absl::MakeConstSpan(wave));
    } else {
      fits.BeginTable("FIBERMAP", static_cast<int64_t>(fibres.size()), {"FIBER"}, {"1J"});
      fits.ColumnValues(1, 1, absl::MakeConstSpan(std::vector<int64_t>(fibres.begin(), fibres.end())));
    }
  }
  return fits.Bytes().value();
}

absl::StatusOr<Fiberflat> Read(const std::string& file, std::shared_ptr<MemoryAccount> memory = nullptr) {
  return ReadFiberflat(Source::FromBytes("flat.fits", file, {.memory = std::move(memory)}).value());
}

TEST(ReadFiberflat, TakesAllThatIsThere) {
  const Fiberflat alone = Read(FlatFile({})).value();
  EXPECT_THAT(alone.fibres, ElementsAre(0, 1));
  EXPECT_TRUE(alone.wave.empty());
  EXPECT_EQ(alone.ivar(0, 0), std::numeric_limits<float>::infinity());
  EXPECT_EQ(alone.ivar(0, 1), 0);
  EXPECT_EQ(alone.ivar(0, 2), 0);
  const Fiberflat whole = Read(FlatFile({"IVAR", "MASK", "WAVELENGTH", "FIBERMAP"})).value();
  EXPECT_THAT(whole.fibres, ElementsAre(7, 5));
  EXPECT_THAT(whole.wave, ElementsAre(6000, 6001, 6002));
  EXPECT_THAT(whole.ivar.flat(), ElementsAre(4, 0, 0, 4, 0, 4));
  EXPECT_EQ(whole.camera, "r3");
}

TEST(ReadFiberflat, RefusesPartsThatDoNotFit) {
  const auto message = [](const auto&... arguments) {
    return std::string(Read(FlatFile(arguments...)).status().message());
  };
  const std::vector<std::string> all = {"IVAR", "MASK", "WAVELENGTH", "FIBERMAP"};
  EXPECT_THAT(message(all, "IVAR"), HasSubstr("flat.fits, HDU IVAR: is 2 x 4, HDU FIBERFLAT 2 x 3"));
  EXPECT_THAT(message(all, "MASK"), HasSubstr("HDU MASK: is 2 x 4"));
  EXPECT_THAT(message(all, "WAVELENGTH"), HasSubstr("is 4, must have the 3 wavelengths"));
  EXPECT_THAT(message(all, "", std::vector<int>{1, 2, 3}),
              HasSubstr("has 3 rows, must have one for each of the 2"));
  EXPECT_THAT(message(all, "", std::vector<int>{5, 5}), HasSubstr("rows 0 and 1 both have FIBER 5"));
}

TEST(ReadFiberflat, TakesTheMemoryThatItsOutlineAnnounces) {
  const std::vector<std::vector<std::string>> files = {
      {}, {"IVAR"}, {"MASK"}, {"IVAR", "MASK", "WAVELENGTH", "FIBERMAP"}};
  for (const std::vector<std::string>& hdus : files) {
    const std::string file = FlatFile(hdus);
    const int64_t announced =
        ReadFiberflatOutline(Source::FromBytes("flat.fits", file).value())->decode_bytes;
    const auto enough = std::make_shared<CountingAccount>(announced);
    EXPECT_TRUE(Read(file, enough).ok()) << hdus.size();
    EXPECT_TRUE(absl::IsResourceExhausted(
        Read(file, std::make_shared<CountingAccount>(enough->peak() - 1)).status()));
  }
}

}  // namespace
}  // namespace spexd::testing
