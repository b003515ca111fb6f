#include <fitsio.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <thread>

#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/fits_builder.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/readers.h"
#include "core/fits/writers.h"
#include "tests/fits/expectations.h"
#include "tests/fits/samples.h"
#include "tests/support/matchers.h"
#include "tests/support/run_command.h"
#include "tests/support/temp_folder.h"

namespace spexd::testing {
namespace {

std::vector<std::string> HduNames(const std::string& path) {
  std::vector<std::string> names;
  const FitsFile file = FitsFile::Parse(Load(path)).value();
  for (const Hdu& hdu : file.hdus()) names.push_back(hdu.name);
  return names;
}

template <typename T>
std::vector<T> Counting(size_t count, T first) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

// Images of exactly one piece, of less, of more, and empty: WriteHdus cuts data into pieces of 364 blocks.
struct SampleImages {
  static constexpr int64_t kPieceBytes = 364 * 2880;
  const std::vector<float> none = {};
  const std::vector<float> cube = Counting(3 * 11 * 17011, -2000.5f);
  const std::vector<double> line = Counting(kPieceBytes / 8 + 1, -7.25);
  const std::vector<int32_t> plane = Counting(2 * kPieceBytes / 4, -1000);
  const std::vector<uint32_t> mask = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 5};
  const std::vector<float> special = {NAN, -NAN, INFINITY, -0.0f, 1e-42f};

  // Returns the file. Its pixels go through CFITSIO (`threads` 0) or are written late.
  absl::StatusOr<std::string> File(int threads) const {
    FitsBuilder fits(0);
    const auto add = [&](const char* name, int bitpix, const std::vector<int64_t>& shape,
                         const auto& values) {
      fits.BeginImage(name, bitpix, shape);
      fits.Text("BUNIT", "electron", "unit");
      const auto span = absl::MakeConstSpan(values);
      threads > 0 ? fits.LatePixels(span) : fits.Pixels(span);
      fits.Integer("AFTER", 1, "a card that comes after the pixels");
    };
    add("EMPTY", FLOAT_IMG, {0, 5}, none);
    add("CUBE", FLOAT_IMG, {3, 11, 17011}, cube);
    add("LINE", DOUBLE_IMG, {static_cast<int64_t>(line.size())}, line);
    fits.BeginTable("TABLE", 2, {"VALUE"}, {"1D"});
    fits.ColumnValues(1, 1, absl::MakeConstSpan(line).first(2));
    add("PLANE", LONG_IMG, {2, kPieceBytes / 4}, plane);
    add("MASK", ULONG_IMG, {2, 3}, mask);
    add("SPECIAL", FLOAT_IMG, {5}, special);
    add("NONE", FLOAT_IMG, {0}, none);
    return fits.Bytes(std::max(threads, 1));
  }
};

void ExpectRightChecksums(std::string file) {
  void* memory = file.data();
  size_t size = file.size();
  fitsfile* fits = nullptr;
  int status = 0, hdus = 0;
  fits_open_memfile(&fits, "sample", READONLY, &memory, &size, 0, nullptr, &status);
  fits_get_num_hdus(fits, &hdus, &status);
  ASSERT_EQ(status, 0);
  for (int k = 1; k <= hdus; ++k) {
    int data = 0, whole = 0;
    fits_movabs_hdu(fits, k, nullptr, &status);
    fits_verify_chksum(fits, &data, &whole, &status);
    EXPECT_EQ(status, 0) << "HDU " << k;
    EXPECT_EQ(data, 1) << "HDU " << k;
    EXPECT_EQ(whole, 1) << "HDU " << k;
  }
  fits_close_file(fits, &status);
}

TEST(FitsBuilder, GivesTheSameBytesForLatePixelsByAnyNumberOfThreads) {
  const SampleImages images;
  const std::string expected = images.File(0).value();
  ExpectRightChecksums(expected);
  for (const int threads : {1, 2, 3, 7}) EXPECT_TRUE(images.File(threads).value() == expected) << threads;
}

TEST(FitsBuilder, RefusesLatePixelsThatAreNotThoseOfTheImage) {
  const std::vector<float> values(6);
  const auto file = [&](int bitpix, const std::vector<int64_t>& shape, bool compress) {
    FitsBuilder fits(0);
    fits.CompressImages(compress);
    fits.BeginImage("IMAGE", bitpix, shape);
    fits.LatePixels(absl::MakeConstSpan(values));
    return fits.Bytes().status();
  };
  EXPECT_TRUE(file(FLOAT_IMG, {2, 3}, false).ok());
  EXPECT_EQ(file(DOUBLE_IMG, {2, 3}, false).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(file(FLOAT_IMG, {2, 4}, false).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(file(FLOAT_IMG, {}, false).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(file(FLOAT_IMG, {2, 3}, true).code(), absl::StatusCode::kInternal);
}

TEST(FrameWriter, WritesTheHdusInThePipelinesOrder) {
  const TempFolder folder;
  ASSERT_TRUE(WriteFrame(SampleFrame(), (folder / "a.fits")).ok());
  EXPECT_THAT(HduNames(folder / "a.fits"), ElementsAre("FLUX", "IVAR", "MASK", "WAVELENGTH", "RESOLUTION",
                                                       "FIBERMAP", "CHI2PIX", "SCORES"));
  Frame bare = SampleFrame();
  bare.origin.fibermap.reset();
  bare.scores.reset();
  bare.fibres.first = 13;
  ASSERT_TRUE(WriteFrame(bare, (folder / "b.fits")).ok());
  EXPECT_THAT(HduNames(folder / "b.fits"),
              ElementsAre("FLUX", "IVAR", "MASK", "WAVELENGTH", "RESOLUTION", "CHI2PIX"));
  const FitsFile file = FitsFile::Parse(Load(folder / "b.fits")).value();
  EXPECT_EQ(file.hdus()[0].Integer("FIBERMIN"), 13);
  EXPECT_EQ(FitsFile::Parse(Load(folder / "a.fits"))->hdus()[0].Integer("FIBERMIN"), 0);  // FIBERMAP's
}

TEST(FrameWriter, NamesTheExtractorAsThePipelineDoes) {
  const TempFolder folder;
  Frame frame = SampleFrame();
  for (const char* text : {"DEPNAM00= 'numpy   '", "DEPVER00= '2.0     '"}) {
    frame.origin.image_cards.push_back(Card(text));
  }
  ASSERT_TRUE(WriteFrame(frame, folder / "frame.fits").ok());
  // A frame that was read and written again has the card once.
  ASSERT_TRUE(WriteFrame(ReadFrame(Load(folder / "frame.fits")).value(), folder / "again.fits").ok());
  for (const char* name : {"frame.fits", "again.fits"}) {
    SCOPED_TRACE(name);
    const Hdu flux = FitsFile::Parse(Load(folder / name))->hdus()[0];
    EXPECT_EQ(flux.String("DEPNAM00"), "numpy");
    EXPECT_EQ(flux.String("DEPNAM01"), "spexd");
    EXPECT_EQ(flux.String("DEPVER01"), "0.1.0");
    EXPECT_FALSE(flux.Has("DEPNAM02"));
  }
}

TEST(FrameWriter, TellsTheCardsThatItWrites) {
  const TempFolder folder;
  const Frame frame = SampleFrame();
  ASSERT_TRUE(WriteFrame(frame, folder / "frame.fits").ok());
  const std::vector<std::string> cards = FrameCards(frame.grid, frame.fibres, frame.origin).value();
  EXPECT_EQ(cards, ReadFrameCards(Load(folder / "frame.fits")).value());
  EXPECT_EQ(FindString(cards, "EXTNAME"), "FLUX");
  for (const std::string& card : cards) EXPECT_EQ(card.size(), 80) << card;
}

TEST(FrameWriter, CommentsTheScores) {
  const TempFolder folder;
  ASSERT_TRUE(WriteFrame(SampleFrame(), folder / "frame.fits").ok());
  const FitsFile file = FitsFile::Parse(Load(folder / "frame.fits")).value();
  const Hdu* scores = file.Find({"SCORES"});
  ASSERT_NE(scores, nullptr);
  for (const char* column : {"TTYPE1", "TTYPE2", "TTYPE3"}) {
    EXPECT_THAT(scores->cards[scores->card_of.at(column)], HasSubstr("flux"));
  }
}

TEST(FrameWriter, ReadsBackTheSameFrame) {
  const TempFolder folder;
  const Frame frame = SampleFrame();
  for (const char* name : {"frame.fits", "frame.fits.gz"}) {
    ASSERT_TRUE(WriteFrame(frame, (folder / name)).ok());
    const absl::StatusOr<Frame> read = ReadFrame(Load(folder / name));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->grid, frame.grid);
    EXPECT_EQ(read->fibres, frame.fibres);
    EXPECT_EQ(read->spectra, frame.spectra);
    EXPECT_EQ(read->scores, frame.scores);
    EXPECT_EQ(read->origin.input_image, frame.origin.input_image);
    EXPECT_EQ(read->origin.input_psf, frame.origin.input_psf);
    EXPECT_EQ(read->origin.original_psf, frame.origin.original_psf);
    EXPECT_EQ(read->origin.heliocentric_factor, frame.origin.heliocentric_factor);
    EXPECT_EQ(read->origin.psferr, frame.origin.psferr);
    EXPECT_EQ(read->origin.version, frame.origin.version);
    EXPECT_EQ(read->origin.fibermap->data, frame.origin.fibermap->data);
    EXPECT_EQ(FindNumber(read->origin.fibermap->cards, "TILEID"), 80605);
    // A frame that was read can be written again, as the same bytes.
    ASSERT_TRUE(WriteFrame(*read, (folder / (std::string("again-") + name))).ok());
    EXPECT_EQ(ReadBytes(folder / name), ReadBytes((folder / (std::string("again-") + name))));
  }
}

TEST(FrameWriter, KeepsTheImageCardsThatStillHold) {
  const TempFolder folder;
  Frame frame = SampleFrame();
  frame.origin.fine_grid_prior = true;
  frame.origin.flux_residual = 2.5e-12;
  frame.origin.root_error = 4e-11;
  frame.origin.chi2pix_median = 0.75;
  frame.origin.chi2pix_outliers = 0.25;
  ASSERT_TRUE(WriteFrame(frame, (folder / "frame.fits")).ok());
  const FitsFile file = FitsFile::Parse(Load(folder / "frame.fits")).value();
  const Hdu& flux = file.hdus()[0];
  EXPECT_EQ(flux.String("CAMERA"), "r0");
  EXPECT_EQ(flux.Number("EXPTIME"), 1000);
  EXPECT_EQ(flux.String("LONGTEXT"),
            "a value that is so long that it needs another card, which goes on here");
  EXPECT_TRUE(flux.Has("COMMENT"));
  for (const char* gone : {"BZERO", "ZCMPTYPE", "TTYPE1", "CRPIX1", "DATE"})
    EXPECT_FALSE(flux.Has(gone)) << gone;
  EXPECT_EQ(flux.Integer("BITPIX"), -32);
  EXPECT_EQ(flux.String("BUNIT"), "electron/Angstrom");
  EXPECT_EQ(flux.Integer("NSPEC"), 3);
  EXPECT_EQ(flux.Number("WAVEMIN"), 5760);
  EXPECT_EQ(flux.Number("WAVEMAX"), 5775.2);
  EXPECT_EQ(flux.Number("WAVESTEP"), 0.8);
  EXPECT_EQ(flux.String("IN_IMG"), frame.origin.input_image);
  EXPECT_EQ(flux.String("IN_PSF"), frame.origin.input_psf);
  EXPECT_EQ(flux.String("ORIG_PSF"), frame.origin.original_psf);
  EXPECT_EQ(flux.Number("HELIOCOR"), frame.origin.heliocentric_factor);
  EXPECT_EQ(flux.Number("PSFERR"), 0.01);
  EXPECT_EQ(flux.String("EXTRNAME"), "spexd");
  EXPECT_EQ(flux.String("EXTRVER"), "0.1.0");
  EXPECT_TRUE(flux.IsTrue("FINEGRID"));
  EXPECT_EQ(flux.Number("FLUXRES"), 2.5e-12);
  EXPECT_EQ(flux.Number("ROOTERR"), 4e-11);
  EXPECT_EQ(flux.Number("CHI2MED"), 0.75);
  EXPECT_EQ(flux.Number("CHI2OUT"), 0.25);
  EXPECT_EQ(file.hdus()[2].Number("BZERO"), 2147483648.0);
  EXPECT_EQ(file.hdus()[3].String("BUNIT"), "Angstrom");
}

TEST(FrameWriter, LeavesOutCardsOfWhatThereIsNot) {
  const TempFolder folder;
  Frame frame = SampleFrame();
  frame.origin.original_psf.clear();
  frame.origin.heliocentric_factor.reset();
  ASSERT_TRUE(WriteFrame(frame, (folder / "frame.fits")).ok());
  const FitsFile file = FitsFile::Parse(Load(folder / "frame.fits")).value();
  for (const char* gone : {"ORIG_PSF", "HELIOCOR", "FINEGRID", "FLUXRES", "ROOTERR", "CHI2MED", "CHI2OUT"})
    EXPECT_FALSE(file.hdus()[0].Has(gone)) << gone;
}

TEST(FrameWriter, WritesScoresWithoutTheQualityOfTheFitWhereItIsNotKnown) {
  const TempFolder folder;
  Frame frame = SampleFrame();
  frame.scores->median_chi2pix.clear();
  frame.scores->outliers_chi2pix.clear();
  ASSERT_TRUE(WriteFrame(frame, (folder / "frame.fits")).ok());
  const absl::StatusOr<Frame> read = ReadFrame(Load(folder / "frame.fits"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->scores, frame.scores);
}

TEST(FrameWriter, RefusesArraysThatDoNotFit) {
  const TempFolder folder;
  const std::string path = (folder / "frame.fits");
  Frame frame = SampleFrame();
  frame.grid.count += 1;
  EXPECT_EQ(WriteFrame(frame, path).code(), absl::StatusCode::kInvalidArgument);
  frame = SampleFrame();
  frame.origin.fibermap = frame.origin.fibermap->Sliced(0, 2);
  EXPECT_THAT(std::string(WriteFrame(frame, path).message()), HasSubstr("FIBERMAP has 2 rows for 3 fibres"));
  frame = SampleFrame();
  frame.origin.fibermap->data.pop_back();
  EXPECT_FALSE(WriteFrame(frame, path).ok());
  frame = SampleFrame();
  frame.origin.fibermap->cards[7] = Card("TFIELDS =                  999");
  EXPECT_THAT(std::string(WriteFrame(frame, path).message()), HasSubstr(path));
  frame = SampleFrame();
  frame.scores->median_snr.pop_back();
  EXPECT_EQ(WriteFrame(frame, path).code(), absl::StatusCode::kInvalidArgument);
  frame = SampleFrame();
  frame.scores->median_chi2pix.pop_back();
  EXPECT_EQ(WriteFrame(frame, path).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(folder.Entries().empty());
}

TEST(FrameWriter, SlicesAFibermapWithAHeap) {
  RawTable table;
  table.rows = 3;
  table.row_bytes = 8;
  for (const char* text :
       {"XTENSION= 'BINTABLE'", "BITPIX  =                    8", "NAXIS   =                    2",
        "NAXIS1  =                    8", "NAXIS2  =                    3", "PCOUNT  =                    5",
        "GCOUNT  =                    1", "TFIELDS =                    1", "TTYPE1  = 'LIST    '",
        "TFORM1  = '1PB(3)  '", "EXTNAME = 'FIBERMAP'"}) {
    table.cards.push_back(Card(text));
  }
  table.data = std::string("\0\0\0\2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\3\0\0\0\2hello", 29);
  Frame frame = SampleFrame(2);
  frame.origin.fibermap = table.Sliced(1, 2);
  const TempFolder folder;
  ASSERT_TRUE(WriteFrame(frame, (folder / "frame.fits")).ok());
  const absl::StatusOr<RawTable> read = ReadTableHdu(Load(folder / "frame.fits"), "FIBERMAP");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->data, std::string("\0\0\0\0\0\0\0\0\0\0\0\3\0\0\0\2hello", 21));
  ExpectVerified(folder / "frame.fits");
}

// Our reader takes these tables, but CFITSIO would not.
TEST(FrameWriter, WritesAFibermapWhoseHeaderIsNotToTheStandard) {
  using Change = std::function<void(std::vector<std::string>&)>;
  const Change changes[] = {
      [](auto& cards) { cards.erase(cards.begin() + 5, cards.begin() + 7); },  // neither PCOUNT nor GCOUNT
      [](auto& cards) { std::rotate(cards.begin() + 1, cards.begin() + 4, cards.end()); },
      [](auto& cards) { cards[3] = Card("NAXIS1  =               1.5D1"); },
      [](auto& cards) { cards.push_back(Card("TFORM1  = '99K     '")); },  // given twice
      [](auto& cards) { cards[14] = Card("EXTNAME = 'FIBERMAP'           / caf\xe9"); },
  };
  const TempFolder folder;
  for (const Change& change : changes) {
    Frame frame = SampleFrame();
    change(frame.origin.fibermap->cards);
    ASSERT_THAT(WriteFrame(frame, (folder / "frame.fits")), IsOk());
    const absl::StatusOr<RawTable> read = ReadTableHdu(Load(folder / "frame.fits"), "FIBERMAP");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->data, frame.origin.fibermap->data);
    ExpectVerified(folder / "frame.fits");
  }
}

TEST(FrameWriter, RefusesAFibermapThatIsACompressedImage) {
  Frame frame = SampleFrame();
  frame.origin.fibermap->cards.push_back(Card("ZIMAGE  =                    T"));
  const TempFolder folder;
  const absl::Status written = WriteFrame(frame, (folder / "frame.fits"));
  EXPECT_EQ(written.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(written.message().find("FIBERMAP: a compressed image, must be a table"), std::string::npos)
      << written;
  EXPECT_TRUE(folder.Entries().empty());
}

TEST(Writers, PassFitsverify) {
  const TempFolder folder;
  const Frame frame = SampleFrame();
  ASSERT_TRUE(WriteFrame(frame, (folder / "frame.fits")).ok());
  Array<float, 2> model({24, 40}, 1.5f);
  ASSERT_TRUE(WriteModel(model, frame.origin, (folder / "model.fits")).ok());
  ASSERT_TRUE(WritePsf(SamplePsf(), (folder / "psf.fits")).ok());
  ASSERT_TRUE(WritePreproc(SamplePreproc(), (folder / "plain.fits"), false).ok());
  ASSERT_TRUE(WritePreproc(SamplePreproc(), (folder / "rice.fits"), true).ok());
  ASSERT_TRUE(WriteTruth(SampleTruth(), (folder / "truth.fits")).ok());
  for (const std::string& name : folder.Entries()) {
    SCOPED_TRACE(name);
    ExpectVerified(folder / name);
  }
}

// Values range from the sky to a saturated line, over three orders of magnitude.
TEST(PreprocWriter, CompressesIvarWithoutLoss) {
  PreprocFile file = SamplePreproc(40, 200);
  for (int row = 0; row < 40; ++row) {
    for (int column = 0; column < 200; ++column) {
      const double ivar = 1 / (9 + 6e4 * std::exp(-0.5 * std::pow(0.2 * (column - 100), 2)) + row);
      file.ivar(row, column) = static_cast<float>(kIvarStep * std::round(ivar / kIvarStep));
    }
  }
  const TempFolder folder;
  ASSERT_TRUE(WritePreproc(file, folder / "rice.fits", true).ok());
  EXPECT_EQ(ReadImageHdu(Load(folder / "rice.fits"), "IVAR").value(), file.ivar);
  EXPECT_TRUE(ReadPreprocCoded(Load(folder / "rice.fits")).ok());
}

TEST(ModelWriter, KeepsTheWorldCoordinatesAndTheImage) {
  const TempFolder folder;
  Array<float, 2> model({5, 7});
  for (int k = 0; k < 35; ++k) model.flat()[k] = 0.5f * k;
  ASSERT_TRUE(WriteModel(model, SampleFrame().origin, (folder / "model.fits.gz")).ok());
  const Source source = Load(folder / "model.fits.gz");
  EXPECT_EQ(ReadImageHdu(source, "").value(), model);
  EXPECT_EQ(ReadImageHdu(source, "MODEL").value(), model);
  const FitsFile file = FitsFile::Parse(source).value();
  EXPECT_EQ(file.hdus()[0].Number("CRPIX1"), 1);
  EXPECT_EQ(file.hdus()[0].String("BUNIT"), "electron");
}

TEST(Writers, GiveTheSameBytesEveryTime) {
  const TempFolder folder;
  for (const char* name : {"1", "2"}) {
    ASSERT_TRUE(WriteFrame(SampleFrame(), (folder / (std::string("f") + name))).ok());
    ASSERT_TRUE(WritePreproc(SamplePreproc(), (folder / (std::string("p") + name)), true).ok());
    ASSERT_TRUE(WritePsf(SamplePsf(), (folder / (std::string("s") + name))).ok());
  }
  for (const char* stem : {"f", "p", "s"}) {
    EXPECT_EQ(ReadBytes((folder / (std::string(stem) + "1"))),
              ReadBytes((folder / (std::string(stem) + "2"))))
        << stem;
  }
}

TEST(Writers, GiveTheSameBytesByAnyNumberOfThreads) {
  const TempFolder folder;
  const Frame frame = SampleFrame(30, 2000);
  const Array<float, 2> model({700, 900}, 1.5f);
  for (const std::string end : {".fits", ".fits.gz"}) {
    for (const int threads : {1, 4}) {
      const std::string name = std::to_string(threads) + end;
      ASSERT_TRUE(WriteFrame(frame, folder / ("frame-" + name), threads).ok());
      ASSERT_TRUE(WriteModel(model, frame.origin, folder / ("model-" + name), threads).ok());
    }
    for (const std::string stem : {"frame-", "model-"})
      EXPECT_TRUE(ReadBytes(folder / (stem + "1" + end)) == ReadBytes(folder / (stem + "4" + end))) << stem;
  }
}

TEST(Writers, WorkFromManyThreadsAtOnce) {
  const TempFolder folder;
  ASSERT_TRUE(WriteFrame(SampleFrame(), (folder / "expected.fits")).ok());
  const std::string expected = ReadBytes(folder / "expected.fits");
  std::vector<int> failures(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&folder, &expected, &failures, t] {
      const std::string own = (folder / ("frame-" + std::to_string(t) + ".fits")),
                        shared = (folder / "shared.fits.gz");
      const std::string preproc = (folder / ("preproc-" + std::to_string(t) + ".fits"));
      for (int round = 0; round < 5; ++round) {
        failures[t] += !WriteFrame(SampleFrame(), own).ok() + !WriteFrame(SampleFrame(), shared).ok();
        failures[t] += ReadBytes(own) != expected;
        const absl::StatusOr<Source> source = Source::FromFile(shared);  // complete, whoever wrote it
        failures[t] += !source.ok() || !ReadFrame(*source).ok();
        failures[t] += !WritePreproc(SamplePreproc(), preproc, true).ok();
        failures[t] += !ReadPreproc(Load(preproc), {2}).ok();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(failures, ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(folder.Entries().size(), 10u);
}

TEST(Writers, StandOnAReentrantCfitsio) { EXPECT_EQ(fits_is_reentrant(), 1); }

}  // namespace
}  // namespace spexd::testing
