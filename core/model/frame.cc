#include "core/model/frame.h"

#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "core/model/fits_header.h"

namespace spexd {
namespace {

bool IsCard(absl::string_view card, absl::string_view keyword) {
  return card.substr(0, 8) == absl::StrFormat("%-8s", keyword);
}

}  // namespace

RawTable RawTable::Sliced(int64_t first, int64_t count) const {
  RawTable slice;
  slice.rows = count;
  slice.row_bytes = row_bytes;
  for (const std::string& card : cards) {
    if (IsCard(card, "CHECKSUM") || IsCard(card, "DATASUM")) continue;
    if (IsCard(card, "NAXIS2")) {
      slice.cards.push_back(IntegerCard("NAXIS2", count));
    } else if (IsCard(card, "THEAP")) {
      // The slice's heap follows its rows directly, whatever gap the file had.
    } else {
      slice.cards.push_back(card);
    }
  }
  slice.data = data.substr(first * row_bytes, count * row_bytes);
  slice.data += data.substr(rows * row_bytes);
  return slice;
}

}  // namespace spexd
