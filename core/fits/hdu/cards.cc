#include "core/fits/hdu/cards.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace spexd {
namespace {

// The text after "= " without leading blanks; nullopt if the card has no value indicator.
std::optional<absl::string_view> ValueField(absl::string_view card) {
  if (card.size() < 11 || card[8] != '=' || card[9] != ' ') return std::nullopt;
  return absl::StripLeadingAsciiWhitespace(card.substr(10));
}

// The quoted string at the start of `field`, with doubled quotes undone and trailing blanks removed.
std::optional<std::string> Unquote(absl::string_view field) {
  if (field.empty() || field[0] != '\'') return std::nullopt;
  std::string text;
  for (size_t k = 1; k < field.size(); ++k) {
    if (field[k] != '\'') {
      text += field[k];
    } else if (k + 1 < field.size() && field[k + 1] == '\'') {
      text += '\'';
      ++k;
    } else {
      absl::StripTrailingAsciiWhitespace(&text);
      return text;
    }
  }
  return std::nullopt;  // there is no closing quote
}

// The value field of a number or logical, without the comment.
std::optional<absl::string_view> Bare(absl::string_view card) {
  const std::optional<absl::string_view> field = ValueField(card);
  if (!field || field->empty() || (*field)[0] == '\'') return std::nullopt;
  return absl::StripAsciiWhitespace(field->substr(0, field->find('/')));
}

bool OneOf(absl::string_view keyword, std::initializer_list<absl::string_view> names) {
  return std::find(names.begin(), names.end(), keyword) != names.end();
}

// Whether `keyword` is one of `stems` followed by digits, or by digits, '_' and digits if `pairs`.
bool Numbered(absl::string_view keyword, std::initializer_list<absl::string_view> stems, bool pairs = false) {
  for (absl::string_view stem : stems) {
    if (!absl::StartsWith(keyword, stem) || keyword.size() == stem.size()) continue;
    const absl::string_view rest = keyword.substr(stem.size());
    if (absl::ascii_isdigit(rest[0]) && std::all_of(rest.begin(), rest.end(), [pairs](char c) {
          return absl::ascii_isdigit(c) || (pairs && c == '_');
        })) {
      return true;
    }
  }
  return false;
}

template <typename Value, typename Parse>
std::optional<Value> Find(const std::vector<std::string>& cards, const std::string& keyword,
                          const Parse& parse) {
  for (size_t k = 0; k < cards.size(); ++k) {
    if (CardKeyword(cards[k]) == keyword) return parse(k);
  }
  return std::nullopt;
}

}  // namespace

absl::string_view CardKeyword(absl::string_view card) {
  return absl::StripTrailingAsciiWhitespace(card.substr(0, 8));
}

std::optional<std::string> CardString(const std::vector<std::string>& cards, size_t index) {
  const std::optional<absl::string_view> field = ValueField(cards[index]);
  std::optional<std::string> text = field ? Unquote(*field) : std::nullopt;
  while (text && absl::EndsWith(*text, "&") && ++index < cards.size() &&
         CardKeyword(cards[index]) == "CONTINUE") {
    const std::optional<std::string> more =
        Unquote(absl::StripLeadingAsciiWhitespace(absl::string_view(cards[index]).substr(8)));
    if (!more) break;
    text->pop_back();
    *text += *more;
  }
  return text;
}

std::optional<double> CardNumber(absl::string_view card) {
  const std::optional<absl::string_view> bare = Bare(card);
  if (!bare || bare->empty()) return std::nullopt;
  std::string text(*bare);
  for (char& c : text) {
    if (c == 'D' || c == 'd') c = 'E';
  }
  double value;
  if (text[0] == 'n' || text[0] == 'N' || text[0] == 'i' || text[0] == 'I') return std::nullopt;
  if (!absl::SimpleAtod(text, &value) || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<bool> CardLogical(absl::string_view card) {
  const std::optional<absl::string_view> bare = Bare(card);
  if (bare && *bare == "T") return true;
  if (bare && *bare == "F") return false;
  return std::nullopt;
}

bool IsStructuralCard(absl::string_view card) {
  const absl::string_view keyword = CardKeyword(card);
  if (keyword == "COMMENT") {
    return absl::StrContains(card, "FITS (Flexible Image Transport System) format is") ||
           absl::StrContains(card, "and Astrophysics', volume 376, page 359") ||
           absl::StrContains(card, "The OGIP long string convention");
  }
  return OneOf(keyword, {"SIMPLE",   "XTENSION", "BITPIX",   "NAXIS",    "EXTEND",   "PCOUNT",   "GCOUNT",
                         "GROUPS",   "END",      "BSCALE",   "BZERO",    "BLANK",    "DATAMIN",  "DATAMAX",
                         "EXTNAME",  "EXTVER",   "EXTLEVEL", "HDUNAME",  "HDUVER",   "HDULEVEL", "INHERIT",
                         "CHECKSUM", "DATASUM",  "DATE",     "LONGSTRN", "TFIELDS",  "THEAP",    "BLOCKED",
                         "ZIMAGE",   "ZSIMPLE",  "ZTENSION", "ZEXTEND",  "ZBITPIX",  "ZNAXIS",   "ZPCOUNT",
                         "ZGCOUNT",  "ZBLOCKED", "ZQUANTIZ", "ZDITHER0", "ZCMPTYPE", "ZMASKCMP", "ZBLANK",
                         "ZSCALE",   "ZZERO",    "ZHECKSUM", "ZDATASUM", "ZTABLE",   "FZALGOR",  "FZTILE",
                         "FZQVALUE", "FZQMETHD", "FZDTHRSD", "FZINT2F",  "FZHSCALE"}) ||
         Numbered(keyword, {"NAXIS", "ZNAXIS", "ZTILE", "ZNAME", "ZVAL", "TTYPE", "TFORM", "TUNIT", "TNULL",
                            "TSCAL", "TZERO", "TDISP", "TDIM", "TBCOL", "ZFORM", "ZCTYP"});
}

bool IsWorldCoordinateCard(absl::string_view card) {
  const absl::string_view keyword = CardKeyword(card);
  return OneOf(keyword, {"WCSAXES", "WCSNAME", "LONPOLE", "LATPOLE", "RADESYS", "EQUINOX"}) ||
         Numbered(keyword, {"CRPIX", "CRVAL", "CDELT", "CTYPE", "CUNIT", "CROTA", "LTV"}) ||
         Numbered(keyword, {"CD", "PC", "PV", "PS", "LTM", "PC00"}, true);
}

std::string NumberCard(absl::string_view keyword, double value, absl::string_view comment) {
  std::string text;
  // Numbers of everyday size have no exponent.
  const int least = value != 0 && std::abs(value) >= 1 && std::abs(value) < 1e6 ? 6 : 1;
  for (int digits = least; digits <= 17; ++digits) {
    text = absl::StrFormat("%.*G", digits, value);
    double back;
    if (absl::SimpleAtod(text, &back) && back == value) break;
  }
  if (text.find_first_of(".EN") == std::string::npos) text += ".0";
  std::string card = absl::StrFormat("%-8s= %20s / %s", keyword, text, comment);
  card.resize(80, ' ');
  return card;
}

std::string PrintableAscii(absl::string_view text) {
  std::string printable(text);
  for (char& c : printable) {
    if (c < ' ' || c > '~') c = '?';
  }
  return printable;
}

std::string Excerpt(absl::string_view text) {
  constexpr size_t kMaxCharacters = 72;  // more than fit on one card
  if (text.size() <= kMaxCharacters) return PrintableAscii(text);
  return PrintableAscii(text.substr(0, kMaxCharacters)) + "...";
}

bool IsWellFormedCard(absl::string_view card) {
  const absl::string_view keyword = CardKeyword(card);
  return std::all_of(card.begin(), card.end(), [](char c) { return c >= ' ' && c <= '~'; }) &&
         std::all_of(keyword.begin(), keyword.end(), [](char c) {
           return absl::ascii_isupper(c) || absl::ascii_isdigit(c) || c == '-' || c == '_';
         });
}

std::optional<std::string> FindString(const std::vector<std::string>& cards, const std::string& keyword) {
  return Find<std::string>(cards, keyword, [&cards](size_t k) { return CardString(cards, k); });
}

std::optional<double> FindNumber(const std::vector<std::string>& cards, const std::string& keyword) {
  return Find<double>(cards, keyword, [&cards](size_t k) { return CardNumber(cards[k]); });
}

}  // namespace spexd
