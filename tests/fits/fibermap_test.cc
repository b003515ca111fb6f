// The descriptions of a FIBERMAP's columns, carried from the input file to the frame's file.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/hdu/table_file.h"
#include "core/fits/readers.h"
#include "core/fits/writers.h"
#include "tests/fits/samples.h"
#include "tests/support/matchers.h"
#include "tests/support/temp_folder.h"

namespace spexd::testing {
namespace {

using ::testing::DoubleEq;

// Cards of the columns as the pipeline and other programs write them: with comments on names and units, long
// descriptions, display formats and null values.
const std::vector<std::string> kColumnCards = {
    "TTYPE1  = 'TARGETID'           / Unique DESI target ID",
    "TFORM1  = 'K       '           / data format of field: 8-byte INTEGER",
    "TNULL1  =                   -1 / no target",
    "TTYPE2  = 'FIBER   '           / Fiber ID on the CCDs [0-4999]",
    "TFORM2  = 'J       '           / data format of field: 4-byte INTEGER",
    "TDISP2  = 'I5      '           / display format",
    "TTYPE3  = 'FLUX_G  '           / Flux in the Legacy Survey g-band (AB)",
    "TFORM3  = 'E       '           / data format of field: 4-byte REAL",
    "TUNIT3  = 'nanomaggy'          / units of field, 22.5 mag is 1",
    "TCOMM3  = 'flux of the target in g, from the imaging survey, before it is corr&'",
    "CONTINUE  'ected for extinction' / description",
    "TUCD3   = 'phot.flux'          / unified content descriptor",
};

// Returns a preprocessed frame of 4 x 5 pixels with a FIBERMAP of three rows.
Source FrameWithFibermap() {
  const std::string image(4 * 4 * 5, '\0');
  const auto extension = [&image](const std::string& name) {
    return HduBytes({"XTENSION= 'IMAGE   '", "BITPIX  = -32", "NAXIS   = 2", "NAXIS1  = 5", "NAXIS2  = 4",
                     "PCOUNT  = 0", "GCOUNT  = 1", "EXTNAME = '" + name + "'"},
                    image);
  };
  std::vector<std::string> cards = {"XTENSION= 'BINTABLE'", "BITPIX  = 8", "NAXIS   = 2", "NAXIS1  = 16",
                                    "NAXIS2  = 3",          "PCOUNT  = 0", "GCOUNT  = 1", "TFIELDS = 3"};
  cards.insert(cards.end(), kColumnCards.begin(), kColumnCards.end());
  cards.insert(cards.end(), {"EXTNAME = 'FIBERMAP'", "COMMENT from fiberassign", "HISTORY joined twice"});
  const std::string bytes = HduBytes({"SIMPLE  = T", "BITPIX  = 8", "NAXIS   = 0"}) + extension("IMAGE") +
                            extension("IVAR") + HduBytes(cards, std::string(3 * 16, '\0'));
  return Source::FromBytes("preproc.fits", bytes).value();
}

// Returns the cards of HDU FIBERMAP that begin with T or are free text, in their order.
std::vector<std::string> Described(const Source& source) {
  const FitsFile file = FitsFile::Parse(source).value();
  std::vector<std::string> described;
  for (const std::string& card : file.Find({"FIBERMAP"})->cards) {
    const bool text = absl::StartsWith(card, "COMMENT") || absl::StartsWith(card, "HISTORY") ||
                      absl::StartsWith(card, "CONTINUE");
    if (text || (card[0] == 'T' && !absl::StartsWith(card, "TFIELDS"))) described.push_back(card);
  }
  return described;
}

TEST(Fibermap, KeepsCommentsUnitsAndDescriptionsOfItsColumnsInTheFrame) {
  const Source source = FrameWithFibermap();
  const std::vector<std::string> want = Described(source);
  ASSERT_THAT(want, SizeIs(kColumnCards.size() + 2));

  const absl::StatusOr<Preproc> preproc = ReadPreproc(source);
  ASSERT_TRUE(preproc.ok()) << preproc.status();
  const TempFolder folder;
  Frame frame = SampleFrame(2);
  frame.origin.fibermap = preproc->fibermap->Sliced(1, 2);
  ASSERT_TRUE(WriteFrame(frame, folder / "frame.fits").ok());
  EXPECT_EQ(Described(Load(folder / "frame.fits")), want);
}

// Fibermaps from other files (-f), and frames that are read and written again.
TEST(Fibermap, KeepsThemWhereItComesFromAFileOfItsOwnAndIsWrittenAgain) {
  const Source source = FrameWithFibermap();
  const TempFolder folder;
  Frame frame = SampleFrame(3);
  frame.origin.fibermap = ReadTableHdu(source, "FIBERMAP").value();
  ASSERT_TRUE(WriteFrame(frame, folder / "frame.fits").ok());
  ASSERT_TRUE(WriteFrame(ReadFrame(Load(folder / "frame.fits")).value(), folder / "again.fits").ok());
  EXPECT_EQ(Described(Load(folder / "again.fits")), Described(source));
}

// Returns a table of one row with these cells; `cards`: those besides TTYPEn and TFORMn.
RawTable OneRow(const std::vector<std::pair<std::string, std::string>>& forms_and_cells,
                const std::vector<std::string>& cards) {
  RawTable table = {{}, 1, 0, ""};
  for (const auto& [form, cell] : forms_and_cells) table.data += cell;
  table.row_bytes = static_cast<int64_t>(table.data.size());
  const auto card = [&table](const std::string& text) { table.cards.push_back(absl::StrFormat("%-80s", text)); };
  card(absl::StrFormat("TFIELDS = %20d", forms_and_cells.size()));
  for (size_t k = 0; k < forms_and_cells.size(); ++k) {
    card(absl::StrFormat("TTYPE%d  = 'C%d'", k + 1, k + 1));
    card(absl::StrFormat("TFORM%d  = '%s'", k + 1, forms_and_cells[k].first));
  }
  for (const std::string& text : cards) card(text);
  return table;
}

// FITS has no unsigned integers except bytes: others are stored minus 2^15, 2^31 or 2^63.
TEST(Fibermap, HasUnsignedIntegersAsTheirWriterHadThem) {
  const RawTable table = OneRow({{"I", std::string("\x80\x07", 2)},
                                 {"J", std::string("\x80\x00\x02\x00", 4)},
                                 {"K", std::string("\x80\x8C\xC8\xE4\x1F\x2D\xA0\x01", 8)},
                                 {"K", std::string("\x00\x00\x00\x00\x00\x00\x00\x05", 8)},
                                 {"B", "\xFF"}},
                                {"TZERO1  = 32768", "TZERO2  = 2147483648", "TZERO3  = 9223372036854775808",
                                 "TZERO4  = 9223372036854775808"});
  EXPECT_THAT(IntegerColumn(table, "C1").value(), ElementsAre(7));
  EXPECT_THAT(IntegerColumn(table, "C2").value(), ElementsAre(512));
  EXPECT_THAT(IntegerColumn(table, "C3").value(), ElementsAre(0x008CC8E41F2DA001));
  EXPECT_THAT(IntegerColumn(table, "C5").value(), ElementsAre(255));
  EXPECT_THAT(std::string(IntegerColumn(table, "C4").status().message()),
              HasSubstr("column C4, row 1: 9.22337e+18 is no integer that can be held"));
}

TEST(Fibermap, HasScaledNumbers) {
  const RawTable table = OneRow({{"J", std::string("\x00\x00\x27\x10", 4)}, {"I", std::string("\x00\x03", 2)}},
                                {"TSCAL1  = 1E-6", "TZERO1  = 180.0", "TSCAL2  = 2.0", "TZERO2  = 1000.0"});
  EXPECT_THAT(NumberColumn(table, "C1").value(), ElementsAre(DoubleEq(180.01)));
  EXPECT_THAT(IntegerColumn(table, "C2").value(), ElementsAre(1006));
  EXPECT_FALSE(IntegerColumn(table, "C1").ok());
}

}  // namespace
}  // namespace spexd::testing
