#include "core/frame/cards.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "core/model/fits_header.h"

namespace spexd {
namespace {

// Keywords of structure that stand alone, keywords that an index follows (NAXIS1, TTYPE12), and those of
// compression.
constexpr std::array<absl::string_view, 25> kStructural = {
    "SIMPLE", "XTENSION", "BITPIX",  "NAXIS",    "EXTEND",   "PCOUNT",   "GCOUNT",  "GROUPS", "TFIELDS",
    "THEAP",  "EXTNAME",  "EXTVER",  "EXTLEVEL", "CHECKSUM", "DATASUM",  "BSCALE",  "BZERO",  "BLANK",
    "BUNIT",  "DATAMIN",  "DATAMAX", "INHERIT",  "END",      "LONGSTRN", "HELIOCOR"};
constexpr std::array<absl::string_view, 16> kIndexed = {"NAXIS", "ZNAXIS", "ZTILE", "ZNAME", "ZVAL",  "TTYPE",
                                                        "TFORM", "TUNIT",  "TNULL", "TSCAL", "TZERO", "TDISP",
                                                        "TDIM",  "ZFORM",  "ZCTYP", "TBCOL"};
constexpr std::array<absl::string_view, 20> kCompression = {
    "ZIMAGE",   "ZTABLE",  "ZCMPTYPE", "ZSIMPLE",  "ZTENSION", "ZEXTEND", "ZBITPIX",
    "ZNAXIS",   "ZPCOUNT", "ZGCOUNT",  "ZQUANTIZ", "ZDITHER0", "ZBLANK",  "ZMASKCMP",
    "ZBLOCKED", "ZSCALE",  "ZZERO",    "ZHECKSUM", "ZDATASUM", "ZTHEAP"};

template <size_t N>
bool Contains(const std::array<absl::string_view, N>& words, absl::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool IsIndexed(absl::string_view keyword) {
  size_t digits = 0;
  while (digits < keyword.size() && absl::ascii_isdigit(keyword[keyword.size() - 1 - digits])) ++digits;
  return digits > 0 && Contains(kIndexed, keyword.substr(0, keyword.size() - digits));
}

// Whether a card is one of the two comments that FITS libraries put into every primary header.
bool IsFormatNotice(absl::string_view card) {
  return absl::StartsWith(card, "COMMENT   FITS (Flexible Image Transport System) format") ||
         absl::StartsWith(card, "COMMENT   and Astrophysics', volume 376, page 359");
}

bool IsPrintable(absl::string_view card) {
  return std::all_of(card.begin(), card.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace

absl::string_view Keyword(absl::string_view card) {
  return absl::StripTrailingAsciiWhitespace(card.substr(0, 8));
}

std::optional<double> NumberOf(const std::vector<std::string>& cards, absl::string_view keyword) {
  for (const std::string& card : cards) {
    const absl::string_view text = card;
    if (text.size() < 10 || Keyword(text) != keyword || text.substr(8, 2) != "= ") continue;
    absl::string_view value = text.substr(10);
    value = absl::StripAsciiWhitespace(value.substr(0, value.find('/')));
    double number = 0;
    // FORTRAN's D exponents are legal in FITS.
    if (!absl::SimpleAtod(absl::StrReplaceAll(value, {{"D", "E"}, {"d", "e"}}), &number)) return std::nullopt;
    if (!std::isfinite(number)) return std::nullopt;
    return number;
  }
  return std::nullopt;
}

std::optional<std::string> TextOf(const std::vector<std::string>& cards, absl::string_view keyword) {
  for (const std::string& card : cards) {
    const absl::string_view text = card;
    if (text.size() < 12 || Keyword(text) != keyword || text.substr(8, 3) != "= '") continue;
    const absl::string_view value = text.substr(11);
    const size_t end = value.find('\'');
    if (end == absl::string_view::npos) return std::nullopt;
    return std::string(absl::StripTrailingAsciiWhitespace(value.substr(0, end)));
  }
  return std::nullopt;
}

absl::Status CheckCards(const std::string& what, const std::vector<std::string>& cards) {
  for (size_t k = 0; k < cards.size(); ++k) {
    if (cards[k].size() != kFitsCardBytes) {
      return absl::InvalidArgumentError(absl::StrFormat("%s: card %d has %d characters, must have %d", what,
                                                        k + 1, cards[k].size(), kFitsCardBytes));
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> InheritedCards(const std::vector<std::string>& cards) {
  std::vector<std::string> kept;
  bool dropping = true;
  for (const std::string& card : cards) {
    const absl::string_view keyword = Keyword(card);
    // A CONTINUE card is kept or dropped with the card that it continues.
    if (keyword != "CONTINUE") {
      dropping = Contains(kStructural, keyword) || Contains(kCompression, keyword) || IsIndexed(keyword) ||
                 IsFormatNotice(card);
    }
    if (!dropping && IsPrintable(card)) kept.push_back(card);
  }
  return kept;
}

}  // namespace spexd
