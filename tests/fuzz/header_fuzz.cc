// Headers and tables: the cards of any FITS file, a FIBERMAP on its way to an output file (CFITSIO writes
// it), and the readers of frames and truths.
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/readers.h"
#include "core/fits/writers.h"
#include "tests/fits/samples.h"
#include "tests/fuzz/support/fuzz_check.h"
#include "tests/fuzz/support/read_metered.h"
#include "tests/support/temp_folder.h"

namespace spexd::fuzz {
namespace {

void ReadCards(const Hdu& hdu) {
  for (size_t k = 0; k < hdu.cards.size(); ++k) {
    CardString(hdu.cards, k);
    if (const std::optional<double> number = CardNumber(hdu.cards[k])) {
      const std::string card = NumberCard("KEY", *number, "comment");
      Require(card.size() == 80 && (!std::isfinite(*number) || CardNumber(card) == *number),
              "a number is written as it was read");
    }
    CardLogical(hdu.cards[k]);
    hdu.Integer(std::string(CardKeyword(hdu.cards[k])));
  }
  for (const std::string& card : FilterCards(hdu.cards, [](absl::string_view card) {
         return !IsStructuralCard(card) && !IsWorldCoordinateCard(card);
       })) {
    Require(card.size() == 80 && IsWellFormedCard(card), "cards that are kept are well-formed");
  }
}

// Writes and reads a frame of two fibres with the cards and the table of an arbitrary file.
void WriteWith(const std::vector<std::string>& cards, const RawTable& table) {
  if (table.rows < 2 ||
      (table.row_bytes > 0 && table.rows > static_cast<int64_t>(table.data.size()) / table.row_bytes))
    return;
  static const testing::TempFolder folder;
  const std::string path = folder / "frame.fits";
  Frame frame = testing::SampleFrame(2, 4);
  frame.origin.image_cards = cards;
  frame.origin.fibermap = table.Sliced(0, 2);
  const absl::Status written = WriteFrame(frame, path);
  RequireGoodError(written);
  if (!written.ok()) return;
  const absl::StatusOr<Frame> back = ReadFrame(testing::Load(path));
  Require(back.ok(), absl::StrCat("a frame that was written is read: ", back.status().ToString()));
  Require(back->origin.fibermap.has_value(), "a FIBERMAP keeps its name");
  Require(back->origin.fibermap->data == frame.origin.fibermap->data, "a FIBERMAP is written as it is");
}

// Reads frames and truths as `spex compare` and `spex plot` do. image_fuzz.cc reads compressed images.
void ReadSpectra(const Source& source, const FitsFile& file) {
  for (const Hdu& hdu : file.hdus()) {
    if (hdu.Has("ZIMAGE")) return;
  }
  const HeapMeter meter;
  RequireGoodError(ReadFrame(source).status());
  RequireGoodError(ReadTruth(source).status());
  RequireHeapWithin(meter, StructureBytes(static_cast<int64_t>(source.bytes().size())), "a frame");
}

void ReadAll(absl::string_view bytes) {
  const auto file =
      ReadMetered(bytes, "a file's structure", [](const Source& source) { return FitsFile::Parse(source); });
  if (!file.ok()) return;
  for (const Hdu& hdu : file->hdus()) ReadCards(hdu);
  ReadSpectra(*Source::FromBytes("any.fits", std::string(bytes)), *file);
  const auto fibermap =
      ReadMetered(bytes, "a table", [](const Source& source) { return ReadTableHdu(source, "FIBERMAP"); });
  if (fibermap.ok()) WriteWith(file->hdus()[0].cards, *fibermap);
}

}  // namespace
}  // namespace spexd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  spexd::fuzz::ReadAll({reinterpret_cast<const char*>(data), size});
  return 0;
}
