// Files of targets' spectra in several arms: what is read and what is refused.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/fits/hdu/fits_builder.h"
#include "core/fits/hdu/table_file.h"
#include "core/fits/readers.h"
#include "tests/fits/counting_account.h"
#include "tests/fits/samples.h"
#include "tests/support/matchers.h"
#include "tests/support/temp_folder.h"

namespace spexd::testing {
namespace {

constexpr int64_t kBins = 6;

struct ArmOfFile {
  std::string name = "B";
  double first = 5000;
  int64_t rows = 2, diagonals = 11;
  bool mask = true;
  std::vector<std::string> without = {};  // HDUs to leave out
  double crooked = 0;                     // added to the last wavelength
};

struct SpectraFile {
  std::vector<ArmOfFile> arms = {{.name = "R", .first = 6000, .diagonals = 9}, {}};
  int64_t fibermap_rows = 2, scores_rows = 2;  // 0: no table
  std::vector<std::string> cards = {Card("SURVEY  = 'main    '")};
};

void AddTable(const std::string& name, int64_t rows, FitsBuilder* fits) {
  if (rows == 0) return;
  fits->BeginTable(name, rows, {"TARGETID"}, {"1K"});
  std::vector<int64_t> targets;
  for (int64_t row = 0; row < rows; ++row) targets.push_back(100 + row);
  fits->ColumnValues(1, 1, absl::MakeConstSpan(targets));
}

void AddArm(const ArmOfFile& arm, FitsBuilder* fits) {
  const auto has = [&arm](const std::string& hdu) {
    return std::find(arm.without.begin(), arm.without.end(), hdu) == arm.without.end();
  };
  const auto image = [&](const std::string& hdu, const std::vector<int64_t>& shape, float value) {
    if (!has(hdu)) return;
    int64_t size = 1;
    for (const int64_t axis : shape) size *= axis;
    std::vector<float> pixels(static_cast<size_t>(size), value);
    pixels[0] = std::numeric_limits<float>::quiet_NaN();
    fits->BeginImage(arm.name + "_" + hdu, FLOAT_IMG, shape);
    fits->Pixels(absl::MakeConstSpan(pixels));
  };
  std::vector<double> wave;
  for (int64_t bin = 0; bin < kBins; ++bin) wave.push_back(arm.first + 0.8 * static_cast<double>(bin));
  wave.back() += arm.crooked;
  if (has("WAVELENGTH")) {
    fits->BeginImage(arm.name + "_WAVELENGTH", DOUBLE_IMG, {kBins});
    fits->Pixels(absl::MakeConstSpan(wave));
  }
  image("FLUX", {arm.rows, kBins}, 3);
  image("IVAR", {arm.rows, kBins}, 4);
  if (arm.mask) {
    fits->BeginImage(arm.name + "_MASK", LONG_IMG, {arm.rows, kBins});
    const std::vector<int32_t> mask(static_cast<size_t>(arm.rows * kBins), 8);
    fits->Pixels(absl::MakeConstSpan(mask));
  }
  image("RESOLUTION", {arm.rows, arm.diagonals, kBins}, 0.1F);
}

std::string BytesOf(const SpectraFile& file) {
  FitsBuilder fits(0);
  fits.BeginImage("PRIMARY", FLOAT_IMG, {});
  fits.Cards(file.cards);
  AddTable("FIBERMAP", file.fibermap_rows, &fits);
  for (const ArmOfFile& arm : file.arms) AddArm(arm, &fits);
  AddTable("SCORES", file.scores_rows, &fits);
  AddTable("EXP_FIBERMAP", 5, &fits);
  return fits.Bytes().value();
}

Source SourceOf(const SpectraFile& file) {
  return Source::FromBytes("/night/coadd-main-1.fits", BytesOf(file)).value();
}

void ExpectRefused(const SpectraFile& file, const std::string& message) {
  EXPECT_THAT(ReadTargetSpectra(SourceOf(file)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
}

TEST(SpectraReader, ReadsAllArmsInTheOrderOfTheirWavelengths) {
  const TargetSpectra spectra = ReadTargetSpectra(SourceOf({}), {.threads = 2}).value();
  EXPECT_EQ(spectra.name, "coadd-main-1.fits");
  ASSERT_THAT(spectra.arms, SizeIs(2));
  const SpectraArm &b = spectra.arms[0], &r = spectra.arms[1];
  EXPECT_EQ(b.name, "B");
  EXPECT_EQ(r.name, "R");
  EXPECT_EQ(b.grid.first, 5000);
  EXPECT_EQ(b.grid.count, kBins);
  EXPECT_DOUBLE_EQ(b.grid.last(), 5004);
  EXPECT_EQ(b.spectra.flux.shape(), (Array<float, 2>::Shape{2, kBins}));
  EXPECT_TRUE(std::isnan(b.spectra.flux(0, 0)));
  EXPECT_EQ(b.spectra.flux(1, 5), 3);
  EXPECT_EQ(b.spectra.ivar(1, 5), 4);
  EXPECT_EQ(b.spectra.mask(1, 5), 8u);
  EXPECT_EQ(r.spectra.resolution.shape(1), 9);
  EXPECT_TRUE(b.spectra.chi2pix.empty());
  EXPECT_EQ(spectra.fibermap.rows, 2);
  ASSERT_TRUE(spectra.scores.has_value() && spectra.exposures.has_value());
  EXPECT_EQ(spectra.exposures->rows, 5);
  EXPECT_THAT(spectra.cards, Contains(StartsWith("SURVEY")));
  EXPECT_FALSE(spectra.barycentric);
}

TEST(SpectraReader, TakesFilesWithoutMaskScoresAndExposures) {
  const TargetSpectra spectra =
      ReadTargetSpectra(SourceOf({.arms = {{.name = "BRZ", .mask = false}}, .scores_rows = 0})).value();
  EXPECT_EQ(spectra.arms[0].name, "BRZ");
  EXPECT_EQ(spectra.arms[0].spectra.mask(1, 5), 0u);
  EXPECT_FALSE(spectra.scores.has_value());
}

TEST(SpectraReader, KnowsBarycentricWavelengthsByTheirCard) {
  SpectraFile file;
  file.cards.push_back(Card("HELIOCOR= 1.0001"));
  EXPECT_TRUE(ReadTargetSpectra(SourceOf(file)).value().barycentric);
}

TEST(SpectraReader, NamesWhatIsMissing) {
  for (const char* hdu : {"WAVELENGTH", "IVAR", "RESOLUTION"}) {
    ExpectRefused({.arms = {{.without = {hdu}}}},
                  absl::StrCat("/night/coadd-main-1.fits: there is no HDU B_", hdu));
  }
  ExpectRefused({.fibermap_rows = 0}, "there is no HDU FIBERMAP");
  ExpectRefused({.arms = {}}, "/night/coadd-main-1.fits: neither a frame (HDU FLUX) nor spectra (B_FLUX ..)");
}

TEST(SpectraReader, RefusesTablesAndArmsOfOtherRows) {
  ExpectRefused({.fibermap_rows = 3},
                "HDU FIBERMAP: has 3 rows, must have one for each of the 2 spectra of R_FLUX");
  ExpectRefused({.scores_rows = 1},
                "HDU SCORES: has 1 rows, must have one for each of the 2 spectra of R_FLUX");
  ExpectRefused({.arms = {{}, {.name = "R", .first = 6000, .rows = 3}}}, "R_FLUX has 3 rows, B_FLUX has 2");
}

TEST(SpectraReader, RefusesWavelengthsThatAreNotUniformAndAnEvenNumberOfDiagonals) {
  ExpectRefused({.arms = {{.crooked = 0.1}}}, "HDU B_WAVELENGTH: wavelength");
  ExpectRefused({.arms = {{.diagonals = 10}}},
                "HDU B_RESOLUTION: has shape 2 x 10 x 6, must be 2 fibres x an odd");
}

TEST(SpectraReader, RefusesAnArmThatIsThereTwice) {
  ExpectRefused({.arms = {{}, {.first = 6000}}}, "HDU B_FLUX is there twice");
}

TEST(SpectraReader, TakesItsMemoryFromTheAccount) {
  const std::string bytes = BytesOf({.arms = {{.rows = 2, .mask = false}}});
  const auto read = [&bytes](const std::shared_ptr<CountingAccount>& account) {
    const absl::StatusOr<Source> source = Source::FromBytes("a.fits", bytes, {.memory = account});
    return source.ok() ? ReadTargetSpectra(*source).status() : source.status();
  };
  const auto open = std::make_shared<CountingAccount>();
  ASSERT_THAT(read(open), IsOk());
  constexpr int64_t kPixels = 2 * kBins * (3 + 11) * 4;  // flux, ivar, a mask of zeros, resolution
  EXPECT_GT(open->peak(), kPixels);
  EXPECT_THAT(read(std::make_shared<CountingAccount>(open->peak() - 1)),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(SpectraReader, TellsFramesFromFilesOfSpectra) {
  const TempFolder folder;
  ASSERT_THAT(WriteFrame(SampleFrame(), folder / "frame.fits"), IsOk());
  EXPECT_EQ(KindOfSpectra(Load(folder / "frame.fits")).value(), SpectraKind::kFrame);
  EXPECT_EQ(KindOfSpectra(SourceOf({})).value(), SpectraKind::kTargets);
  ASSERT_THAT(WriteTruth(SampleTruth(), folder / "truth.fits"), IsOk());
  FitsBuilder fits(0);
  fits.BeginImage("PRIMARY", FLOAT_IMG, {});
  EXPECT_THAT(KindOfSpectra(Source::FromBytes("a.fits", fits.Bytes().value()).value()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a.fits: neither a frame")));
}

}  // namespace
}  // namespace spexd::testing
