// Functions on FITS headers that a job needs: values by keyword, and which cards describe a file rather than
// its content.
#ifndef SPEXD_CORE_FRAME_CARDS_H_
#define SPEXD_CORE_FRAME_CARDS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace spexd {

// The keyword of a card, without trailing blanks.
absl::string_view Keyword(absl::string_view card);

// The number on the first card with `keyword`; nullopt if there is no such card or its value is not a finite
// number.
std::optional<double> NumberOf(const std::vector<std::string>& cards, absl::string_view keyword);

// The text on the first card with `keyword`, without trailing blanks; nullopt if there is no such card or its
// value is not text.
std::optional<std::string> TextOf(const std::vector<std::string>& cards, absl::string_view keyword);

// InvalidArgument, naming the card's position, unless every card has 80 characters.
absl::Status CheckCards(const std::string& what, const std::vector<std::string>& cards);

// The cards of an input image that are also valid for results made from it: all except those of structure,
// compression, scaling, units, checksums and extension names.
std::vector<std::string> InheritedCards(const std::vector<std::string>& cards);

}  // namespace spexd

#endif  // SPEXD_CORE_FRAME_CARDS_H_
