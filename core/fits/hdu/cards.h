// Header cards: 80 characters each, "KEYWORD = value / comment" (FITS standard 4.0, section 4).
#ifndef SPEXD_CORE_FITS_HDU_CARDS_H_
#define SPEXD_CORE_FITS_HDU_CARDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace spexd {

// The keyword of a card: its first 8 characters without trailing blanks.
absl::string_view CardKeyword(absl::string_view card);

// The value of a card; nullopt if it has none or one of another type. A string continues over the CONTINUE
// cards that follow cards[index].
std::optional<std::string> CardString(const std::vector<std::string>& cards, size_t index);
std::optional<double> CardNumber(absl::string_view card);  // accepts exponent D, too
std::optional<bool> CardLogical(absl::string_view card);

// Header values by keyword from raw cards; nullopt if a value is missing or of another type.
std::optional<std::string> FindString(const std::vector<std::string>& cards, const std::string& keyword);
std::optional<double> FindNumber(const std::vector<std::string>& cards, const std::string& keyword);

// Whether a card describes how an HDU is stored, not what it holds: sizes, types, scaling, compression,
// checksums, names, the file's date, and the comments that libraries put into every file.
bool IsStructuralCard(absl::string_view card);

// Whether a card belongs to a world coordinate system, which holds only for the image that it came with.
bool IsWorldCoordinateCard(absl::string_view card);

// The cards that `keep` accepts, with the CONTINUE cards that follow them. Blank cards and cards with
// characters that FITS does not allow are left out.
template <typename Keep>
std::vector<std::string> FilterCards(const std::vector<std::string>& cards, const Keep& keep);

// The card "KEYWORD =  value / comment", with the shortest decimal that reads back as `value`.
std::string NumberCard(absl::string_view keyword, double value, absl::string_view comment);

// Text in printable ASCII; other characters become '?'.
std::string PrintableAscii(absl::string_view text);

// The beginning of a text, for a message. A string of a header may be as long as its CONTINUE cards make it.
std::string Excerpt(absl::string_view text);

// Whether a card holds only characters that FITS allows.
bool IsWellFormedCard(absl::string_view card);

template <typename Keep>
std::vector<std::string> FilterCards(const std::vector<std::string>& cards, const Keep& keep) {
  std::vector<std::string> kept;
  bool continued = false;
  for (const std::string& card : cards) {
    if (CardKeyword(card) != "CONTINUE") {
      continued = card.size() == 80 && card.find_first_not_of(' ') != std::string::npos &&
                  IsWellFormedCard(card) && keep(absl::string_view(card));
    } else if (!IsWellFormedCard(card)) {
      continue;
    }
    if (continued) kept.push_back(card);
  }
  return kept;
}

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_HDU_CARDS_H_
