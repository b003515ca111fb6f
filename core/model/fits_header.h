// Headers of FITS files: sizes that the standard 4.0 fixes (sections 3.1 and 4.1), and cards of integers.
#ifndef SPEXD_CORE_MODEL_FITS_HEADER_H_
#define SPEXD_CORE_MODEL_FITS_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace spexd {

inline constexpr size_t kFitsCardBytes = 80;      // one card of a header
inline constexpr int64_t kFitsBlockBytes = 2880;  // the size to whose multiples headers and data are padded

// The number of bytes padded to whole blocks.
constexpr int64_t FitsPadded(int64_t bytes) {
  return (bytes + kFitsBlockBytes - 1) / kFitsBlockBytes * kFitsBlockBytes;
}

// One card, "KEYWORD =                value". It does not use StrFormat, which ends the process if memory
// runs out.
inline std::string IntegerCard(absl::string_view keyword, int64_t value) {
  constexpr size_t kKeyword = 8, kValueEnd = 30;
  const std::string digits = absl::StrCat(value);
  std::string card(keyword);
  card.resize(kKeyword, ' ');
  card += "= ";
  card.resize(kValueEnd - digits.size(), ' ');
  card += digits;
  card.resize(kFitsCardBytes, ' ');
  return card;
}

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_FITS_HEADER_H_
