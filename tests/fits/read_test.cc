#include <cmath>

#include "absl/strings/str_format.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/readers.h"
#include "core/fits/writers.h"
#include "tests/fits/samples.h"
#include "tests/support/matchers.h"
#include "tests/support/scenes/goldens.h"
#include "tests/support/temp_folder.h"

namespace spexd::testing {
namespace {

// Returns a file whose primary is an image with these big-endian bytes.
Source ImageFile(int bitpix, const std::string& pixels, int columns, int rows,
                 const std::vector<std::string>& more = {}) {
  std::vector<std::string> cards{"SIMPLE  =                    T", absl::StrFormat("BITPIX  = %20d", bitpix),
                                 "NAXIS   =                    2", absl::StrFormat("NAXIS1  = %20d", columns),
                                 absl::StrFormat("NAXIS2  = %20d", rows)};
  cards.insert(cards.end(), more.begin(), more.end());
  return Source::FromBytes("image.fits", HduBytes(cards, pixels)).value();
}

void ExpectRefused(const absl::Status& status, const std::string& text) {
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
}

void ExpectRefused(const Source& source, const std::string& text) {
  ExpectRefused(ReadImageHdu(source, "").status(), text);
}

TEST(ImageReader, ReadsEveryElementType) {
  using Bytes = std::string;
  const auto first = [](const Source& source) { return ReadImageHduDouble(source, "").value()(0, 0); };
  EXPECT_EQ(first(ImageFile(8, Bytes("\xfe", 1), 1, 1)), 254);
  EXPECT_EQ(first(ImageFile(16, Bytes("\xff\xfe", 2), 1, 1)), -2);
  EXPECT_EQ(first(ImageFile(32, Bytes("\x80\0\0\1", 4), 1, 1)), -2147483647);
  EXPECT_EQ(first(ImageFile(64, Bytes("\0\0\0\1\0\0\0\2", 8), 1, 1)), 4294967298.0);
  EXPECT_EQ(first(ImageFile(-32, Bytes("\x3f\xc0\0\0", 4), 1, 1)), 1.5);
  EXPECT_EQ(first(ImageFile(-64, Bytes("\xbf\xf8\0\0\0\0\0\0", 8), 1, 1)), -1.5);
}

TEST(Readers, AreCancelledOnceAStopIsRequested) {
  const TempFolder folder;
  ASSERT_TRUE(WritePreproc(SamplePreproc(), folder / "plain.fits", /*rice=*/false).ok());
  ASSERT_TRUE(WritePreproc(SamplePreproc(), folder / "rice.fits", /*rice=*/true).ok());
  ASSERT_TRUE(WritePsf(SamplePsf(), folder / "psf.fits").ok());
  const Source plain = Load(folder / "plain.fits"), rice = Load(folder / "rice.fits"),
               psf = Load(folder / "psf.fits");
  std::stop_source stop;
  stop.request_stop();
  const Workers workers = {2, stop.get_token()};
  for (const absl::Status& status :
       {ReadPreprocImage(plain, workers).status(), ReadPreprocImage(rice, workers).status(),
        ReadPreprocHeader(rice, workers).status(), ReadPreprocCoded(rice, workers.stop).status(),
        ReadImageHduDouble(plain, "IVAR", workers).status(), ReadPsf(psf, workers.stop).status(),
        ReadPsfOutline(psf, kMaxOutlineTableBytes, workers.stop).status()}) {
    EXPECT_TRUE(absl::IsCancelled(status)) << status;
  }
}

TEST(ImageReader, AppliesScalingAndBlanks) {
  const std::string shorts("\0\1\xff\xff\x7f\xff", 6);
  const Array<float, 2> image =
      ReadImageHdu(ImageFile(16, shorts, 3, 1, {"BSCALE  = 0.5", "BZERO   = 1D1", "BLANK   = -1"}), "")
          .value();
  EXPECT_EQ(image(0, 0), 10.5f);
  EXPECT_TRUE(std::isnan(image(0, 1)));
  EXPECT_EQ(image(0, 2), 16393.5f);
  const std::string words("\x80\0\0\1", 4);
  EXPECT_EQ(ReadImageHduDouble(ImageFile(32, words, 1, 1, {"BZERO   = 2147483648"}), "").value()(0, 0), 1);
}

// Reads a frame of three pixels whose MASK has this type.
Image MaskedBy(int bitpix, const std::string& zero, const std::string& pixels) {
  const std::vector<std::string> shape = {"NAXIS   = 2", "NAXIS1  = 3", "NAXIS2  = 1"};
  const auto hdu = [&](const std::string& name, int type, std::vector<std::string> cards,
                       const std::string& data) {
    std::vector<std::string> all = {name == "IMAGE" ? "SIMPLE  = T" : "XTENSION= 'IMAGE   '",
                                    absl::StrFormat("BITPIX  = %d", type)};
    all.insert(all.end(), shape.begin(), shape.end());
    if (name != "IMAGE") all.insert(all.end(), {"PCOUNT  = 0", "GCOUNT  = 1"});
    all.push_back("EXTNAME = '" + name + "'");
    all.insert(all.end(), cards.begin(), cards.end());
    return HduBytes(all, data);
  };
  const std::string ones = std::string("\x3f\x80\0\0\x3f\x80\0\0\x3f\x80\0\0", 12);
  std::vector<std::string> cards;
  if (!zero.empty()) cards.push_back("BZERO   = " + zero);
  const std::string file =
      hdu("IMAGE", -32, {}, ones) + hdu("IVAR", -32, {}, ones) + hdu("MASK", bitpix, cards, pixels);
  return ReadPreprocImage(Source::FromBytes("preproc.fits", file).value()).value();
}

TEST(PreprocReader, TakesTheBitsOfAMaskFromIntegersOfAnyType) {
  const struct {
    int bitpix;
    const char* zero;
    std::string pixels;
  } types[] = {
      {8, "", std::string("\0\x10\0", 3)},
      {8, "-128", std::string("\x80\x90\x80", 3)},
      {16, "", std::string("\0\0\0\x10\0\0", 6)},
      {16, "32768", std::string("\x80\0\x80\x10\x80\0", 6)},
      {32, "", std::string("\0\0\0\0\0\0\0\x10\0\0\0\0", 12)},
      {32, "2147483648", std::string("\x80\0\0\0\x80\0\0\x10\x80\0\0\0", 12)},
      {64, "", std::string("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\0", 24)},
      {64, "9223372036854775808",
       std::string("\x80\0\0\0\0\0\0\0\x80\0\0\0\0\0\0\x10\x80\0\0\0\0\0\0\0", 24)},
  };
  for (const auto& type : types) {
    const Image image = MaskedBy(type.bitpix, type.zero, type.pixels);
    EXPECT_EQ(image.ivar(0, 0), 1) << type.bitpix << " " << type.zero;
    EXPECT_EQ(image.ivar(0, 1), 0) << type.bitpix << " " << type.zero;
    EXPECT_EQ(image.ivar(0, 2), 1) << type.bitpix << " " << type.zero;
  }
}

TEST(ImageReader, GivesA1dImageAsOneRowAndNamesOtherShapes) {
  const std::string line = HduBytes({"SIMPLE  = T", "BITPIX  = 8", "NAXIS   = 1", "NAXIS1  = 5"}, "abcde");
  const Source source = Source::FromBytes("x", line).value();
  EXPECT_EQ(ReadImageHdu(source, "").value().shape(), (Array<float, 2>::Shape{1, 5}));
  EXPECT_EQ(ReadCubeHduDouble(source, "").value().shape(), (Array<double, 3>::Shape{1, 1, 5}));
  const std::string cube = HduBytes(
      {"SIMPLE  = T", "BITPIX  = 8", "NAXIS   = 3", "NAXIS1  = 1", "NAXIS2  = 1", "NAXIS3  = 2"}, "ab");
  ExpectRefused(Source::FromBytes("x", cube).value(), "has 3 axes");
}

TEST(ImageReader, RefusesWhatIsNotFits) {
  ExpectRefused(Source::FromBytes("a.txt", "hello").value(), "a.txt: is not a FITS file");
  ExpectRefused(Source::FromBytes("a.txt", "").value(), "a.txt: is empty");
  ExpectRefused(Source::FromBytes("a.txt", std::string(10000, '\0')).value(), "is not a FITS file");
}

TEST(ImageReader, RefusesHeadersThatCannotBe) {
  const std::string pixel(4, '\0');
  ExpectRefused(ImageFile(-32, pixel, 100000, 100000),
                "truncated: 40000000000 bytes of data announced, 2880 there");
  ExpectRefused(ImageFile(12, pixel, 1, 1), "BITPIX is 12");
  ExpectRefused(ImageFile(-32, pixel, -1, 1), "NAXIS1 is -1");
  ExpectRefused(ImageFile(-32, pixel, 0, 1), "has no pixels");
  ExpectRefused(
      Source::FromBytes("x", HduBytes({"SIMPLE  = T", "BITPIX  = 8", "NAXIS   = 3", "NAXIS1  = 1000000000000",
                                       "NAXIS2  = 1000000000000", "NAXIS3  = 1000000000000"}))
          .value(),
      "beyond any file");
  ExpectRefused(Source::FromBytes("x", HduBytes({"SIMPLE  = T", "BITPIX  = 8"})).value(), "NAXIS is missing");
  ExpectRefused(Source::FromBytes("x", HduBytes({"SIMPLE  = T", "BITPIX  = 8", "NAXIS   = 'x'"})).value(),
                "NAXIS is not an integer");
  ExpectRefused(Source::FromBytes("x", "SIMPLE  = T" + std::string(5000, ' ')).value(), "no END card");
  ExpectRefused(
      Source::FromBytes("x", HduBytes({"SIMPLE  = T", "BITPIX  = 8", "NAXIS   = 0"}) + "junk").value(),
      "does not begin with an XTENSION card");
}

// Returns an IMAGE extension of zeros.
std::string Extension(const std::string& name, int bitpix, int columns, int rows) {
  return HduBytes({"XTENSION= 'IMAGE   '", absl::StrFormat("BITPIX  = %d", bitpix), "NAXIS   = 2",
                   absl::StrFormat("NAXIS1  = %d", columns), absl::StrFormat("NAXIS2  = %d", rows),
                   "PCOUNT  = 0", "GCOUNT  = 1", "EXTNAME = '" + name + "'"},
                  std::string(static_cast<size_t>(std::abs(bitpix) / 8 * columns * rows), '\0'));
}
const char kEmptyPrimary[] = "NAXIS   = 0";

absl::Status PreprocStatus(const std::string& extensions) {
  const std::string bytes = HduBytes({"SIMPLE  = T", "BITPIX  = 8", kEmptyPrimary}) + extensions;
  return ReadPreproc(Source::FromBytes("p.fits", bytes).value()).status();
}

TEST(PreprocReader, AppliesTheMaskRule) {
  const TempFolder folder;
  const PreprocFile file = SamplePreproc();
  ASSERT_THAT(WritePreproc(file, (folder / "p.fits"), false), IsOk());
  const absl::StatusOr<Preproc> preproc = ReadPreproc(Load(folder / "p.fits"));
  ASSERT_TRUE(preproc.ok()) << preproc.status();
  const Image& image = preproc->image;
  ASSERT_EQ(image.pixels.shape(), file.pixels.shape());
  for (int r = 0; r < image.rows(); ++r) {
    for (int c = 0; c < image.columns(); ++c) {
      const bool bad = (r == 2 && (c == 3 || c == 5)) || (r == 5 && c >= 5 && c <= 10);
      EXPECT_EQ(image.pixels(r, c), bad ? 0 : file.pixels(r, c)) << r << ", " << c;
      EXPECT_EQ(image.ivar(r, c), bad ? 0 : file.ivar(r, c)) << r << ", " << c;
    }
  }
  EXPECT_EQ(FindString(preproc->image_cards, "CAMERA"), "r0");
  EXPECT_EQ(FindNumber(preproc->image_cards, "MJD-OBS"), 58899.35);
  EXPECT_EQ(FindNumber(preproc->image_cards, "NAXIS1"), std::nullopt);
  ASSERT_TRUE(preproc->fibermap.has_value());
  EXPECT_EQ(preproc->fibermap->rows, 3);
}

TEST(PreprocReader, GivesTheSameForAnyNumberOfThreads) {
  const TempFolder folder;
  const PreprocFile file = SamplePreproc(300, 50);
  ASSERT_TRUE(WritePreproc(file, (folder / "p.fits.gz"), true).ok());
  const Source source = Load(folder / "p.fits.gz");
  const absl::StatusOr<Preproc> one = ReadPreproc(source), many = ReadPreproc(source, {5});
  ASSERT_TRUE(one.ok()) << one.status();
  ASSERT_TRUE(many.ok()) << many.status();
  EXPECT_EQ(one->image.pixels, many->image.pixels);
  EXPECT_EQ(one->image.ivar, many->image.ivar);
  for (int r = 0; r < 300; r += 7) {
    for (int c = 0; c < 50; ++c) {
      if (one->image.ivar(r, c) > 0) {
        EXPECT_NEAR(one->image.pixels(r, c), file.pixels(r, c), 1.0);
      }
    }
  }
}

TEST(PreprocReader, NamesAMissingHduAndThoseThere) {
  ExpectRefused(PreprocStatus(Extension("FLUX", -32, 4, 4)),
                "p.fits: there is no HDU IMAGE; the file has PRIMARY, FLUX");
  ExpectRefused(PreprocStatus(Extension("IMAGE", -32, 4, 4)), "there is no HDU IVAR");
}

TEST(PreprocReader, NamesShapesThatDiffer) {
  const std::string image = Extension("IMAGE", -32, 4, 5);
  ExpectRefused(PreprocStatus(image + Extension("IVAR", -32, 5, 4)),
                "p.fits, HDU IVAR: is 4 x 5 pixels (rows x columns), HDU IMAGE 5 x 4");
  ExpectRefused(PreprocStatus(image + Extension("IVAR", -32, 4, 5) + Extension("MASK", 32, 4, 4)),
                "HDU MASK: is 4 x 4");
}

TEST(PreprocReader, RefusesAMaskOfFloatsAndSidesBeyondTheLimit) {
  const std::string image = Extension("IMAGE", -32, 4, 5);
  ExpectRefused(PreprocStatus(image + Extension("IVAR", -32, 4, 5) + Extension("MASK", -32, 4, 5)),
                "HDU MASK: must hold integers, has BITPIX -32");
  ExpectRefused(PreprocStatus(Extension("IMAGE", 8, 40000, 1) + Extension("IVAR", 8, 40000, 1)),
                "the limit is 32768");
}

TEST(PreprocReader, TakesAMissingMaskAsNoneFlaggedAndReadsFibermapsFromAnyFile) {
  const TempFolder folder;
  ASSERT_TRUE(PreprocStatus(Extension("IMAGE", -32, 4, 5) + Extension("IVAR", -32, 4, 5)).ok());
  ASSERT_TRUE(WriteFrame(SampleFrame(), (folder / "frame.fits")).ok());
  const absl::StatusOr<RawTable> fibermap = ReadTableHdu(Load(folder / "frame.fits"), "FIBERMAP");
  ASSERT_TRUE(fibermap.ok()) << fibermap.status();
  EXPECT_EQ(fibermap->rows, 3);
  EXPECT_EQ(fibermap->data, SampleFrame().origin.fibermap->data);
  ASSERT_TRUE(WritePsf(SamplePsf(), (folder / "psf.fits")).ok());
  ExpectRefused(ReadTableHdu(Load(folder / "psf.fits"), "FIBERMAP").status(), "there is no HDU FIBERMAP");
}

TEST(PreprocReader, TakesNoMemoryForATiledImageThatIsNotThere) {
  // The header claims 16384 x 16384 pixels in one tile of 4 bytes.
  const std::string table = HduBytes(
      {"XTENSION= 'BINTABLE'", "BITPIX  = 8", "NAXIS   = 2", "NAXIS1  = 8", "NAXIS2  = 1", "PCOUNT  = 4",
       "GCOUNT  = 1", "TFIELDS = 1", "TTYPE1  = 'COMPRESSED_DATA'", "TFORM1  = '1PB(4)'", "ZIMAGE  = T",
       "ZBITPIX = 32", "ZNAXIS  = 2", "ZNAXIS1 = 16384", "ZNAXIS2 = 16384", "ZTILE1  = 16384",
       "ZTILE2  = 16384", "ZCMPTYPE= 'RICE_1'", "EXTNAME = 'IMAGE'"},
      std::string("\0\0\0\4\0\0\0\0abcd", 12));
  ExpectRefused(PreprocStatus(table + Extension("IVAR", 8, 4, 4)), "HDU IMAGE: tile 1 of 268435456 pixels");
}

TEST(PreprocReader, NamesATileCompressionItDoesNotKnow) {
  const std::string table =
      HduBytes({"XTENSION= 'BINTABLE'", "BITPIX  = 8", "NAXIS   = 2", "NAXIS1  = 8", "NAXIS2  = 1",
                "PCOUNT  = 4", "GCOUNT  = 1", "TFIELDS = 1", "TTYPE1  = 'COMPRESSED_DATA'",
                "TFORM1  = '1PB(4)'", "ZIMAGE  = T", "ZBITPIX = 32", "ZNAXIS  = 2", "ZNAXIS1 = 2",
                "ZNAXIS2 = 1", "ZCMPTYPE= 'HCOMPRESS_1'", "EXTNAME = 'IMAGE'"},
               std::string("\0\0\0\4\0\0\0\0abcd", 12));
  ExpectRefused(PreprocStatus(table + Extension("IVAR", 8, 4, 4)),
                "tile compression HCOMPRESS_1 is not supported");
}

TEST(PreprocReader, ReadsTheRealFrame) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const absl::StatusOr<Preproc> preproc = ReadPreproc(Load(folder + "/preproc-r0-00051060.fits"), {2});
  ASSERT_TRUE(preproc.ok()) << preproc.status();
  EXPECT_EQ(preproc->image.rows(), 4128);
  EXPECT_EQ(preproc->image.columns(), 4114);
  EXPECT_EQ(FindNumber(preproc->image_cards, "EXPID"), 51060);
  EXPECT_EQ(preproc->fibermap->rows, 500);
}

TEST(TruthReader, ReadsItsOwnFilesAndTheRealOne) {
  const TempFolder folder;
  const Truth truth = SampleTruth();
  ASSERT_TRUE(WriteTruth(truth, (folder / "truth.fits")).ok());
  const absl::StatusOr<Truth> read = ReadTruth(Load(folder / "truth.fits"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->fibres, truth.fibres);
  EXPECT_EQ(read->wave, truth.wave);
  EXPECT_EQ(read->flux, truth.flux);
  SPEXD_GOLDENS_OR_SKIP(goldens);
  const absl::StatusOr<Truth> real = ReadTruth(Load(goldens + "/truth-r0-00051060.fits"));
  ASSERT_TRUE(real.ok()) << real.status();
  EXPECT_EQ(real->fibres.size(), 75u);
  EXPECT_EQ(real->fibres[25], 250);
  EXPECT_EQ(real->wave.size(), 10575u);
}

TEST(ImageReader, ReadsTheGoldenAndPeerFiles) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const Source golden = Load(folder + "/golden-r0-00051060-bundle00.fits");
  EXPECT_EQ(ReadImageHduDouble(golden, "FLUX").value().shape(), (Array<double, 2>::Shape{25, 2326}));
  EXPECT_EQ(ReadImageHduDouble(golden, "WAVELENGTH").value().shape(), (Array<double, 2>::Shape{1, 2326}));
  const Array<double, 3> resolution = ReadCubeHduDouble(golden, "RESOLUTION").value();
  EXPECT_EQ(resolution.shape(), (Array<double, 3>::Shape{25, 11, 2326}));
  const absl::StatusOr<Frame> frame = ReadFrame(golden);
  ASSERT_TRUE(frame.ok()) << frame.status();
  EXPECT_EQ(frame->grid, MakeWavelengthGrid(5760, 7620, 0.8).value());
  EXPECT_EQ(ReadFrame(Load(folder + "/peer-r0-00051060-bundle10.fits")).value().spectra.flux.shape(0), 25);
}

}  // namespace
}  // namespace spexd::testing
