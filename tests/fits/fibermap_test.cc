// What a FIBERMAP says of its columns beside their values, from the input's file to the frame's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/readers.h"
#include "core/fits/writers.h"
#include "tests/fits/samples.h"
#include "tests/support/temp_folder.h"

namespace spexd {
namespace {

using testing::HduBytes;
using testing::Load;
using ::testing::SizeIs;
using testing::TempFolder;

// Cards of the columns as the pipeline writes them, and as other programs may: comments on names and units,
// long descriptions, display formats and null values.
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

// A preprocessed frame of 4 x 5 pixels whose FIBERMAP has three rows.
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

// The cards of HDU FIBERMAP that begin with T or are free text, in their order.
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
  Frame frame = testing::SampleFrame(2);
  frame.origin.fibermap = preproc->fibermap->Sliced(1, 2);
  ASSERT_TRUE(WriteFrame(frame, folder / "frame.fits").ok());
  EXPECT_EQ(Described(Load(folder / "frame.fits")), want);
}

// Fibermaps of other programs' files: -f, and frames that are read and written again.
TEST(Fibermap, KeepsThemWhereItComesFromAFileOfItsOwnAndIsWrittenAgain) {
  const Source source = FrameWithFibermap();
  const TempFolder folder;
  Frame frame = testing::SampleFrame(3);
  frame.origin.fibermap = ReadTableHdu(source, "FIBERMAP").value();
  ASSERT_TRUE(WriteFrame(frame, folder / "frame.fits").ok());
  ASSERT_TRUE(WriteFrame(ReadFrame(Load(folder / "frame.fits")).value(), folder / "again.fits").ok());
  EXPECT_EQ(Described(Load(folder / "again.fits")), Described(source));
}

}  // namespace
}  // namespace spexd
