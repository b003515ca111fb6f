// Header cards of integers.
#ifndef SPEXD_CORE_MODEL_INTEGER_CARD_H_
#define SPEXD_CORE_MODEL_INTEGER_CARD_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace spexd {

// "KEYWORD =                value", 80 characters. Not by StrFormat: where memory runs out, that ends the
// process.
inline std::string IntegerCard(absl::string_view keyword, int64_t value) {
  constexpr size_t kKeyword = 8, kValueEnd = 30, kCard = 80;
  const std::string digits = absl::StrCat(value);
  std::string card(keyword);
  card.resize(kKeyword, ' ');
  card += "= ";
  card.resize(kValueEnd - digits.size(), ' ');
  card += digits;
  card.resize(kCard, ' ');
  return card;
}

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_INTEGER_CARD_H_
