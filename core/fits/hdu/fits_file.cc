#include "core/fits/hdu/fits_file.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/cards.h"
#include "core/model/fits_header.h"

namespace spexd {
namespace {

constexpr size_t kMaxCards = 100000;  // limit for an HDU
constexpr size_t kMaxCardsOfFile = 200000;
constexpr size_t kMaxHdus = 10000;
// Upper estimates of the memory of a card, as text and in the index by keyword, and of everything else in an
// HDU.
constexpr size_t kBytesOfCard = kCardCopyBytes + 96, kBytesOfHdu = 1024;

// The number of cards of the header at `offset`, without END.
absl::StatusOr<size_t> CountCards(absl::string_view bytes, size_t offset, const Hdu& hdu) {
  for (size_t count = 0; count <= kMaxCards; ++count) {
    const size_t at = offset + count * kFitsCardBytes;
    if (bytes.size() - at < kFitsCardBytes)
      return hdu.Error("the header has no END card: the file is truncated or not FITS");
    if (CardKeyword(bytes.substr(at, kFitsCardBytes)) == "END") return count;
  }
  return hdu.Error(absl::StrFormat("has more than %d header cards", kMaxCards));
}

// The number of data bytes that the header announces, without padding.
absl::StatusOr<int64_t> DataBytes(Hdu& hdu) {
  SPEXD_ASSIGN_OR_RETURN(const int64_t bitpix, hdu.RequireInteger("BITPIX", -64, 64));
  if (bitpix != 8 && bitpix != 16 && bitpix != 32 && bitpix != 64 && bitpix != -32 && bitpix != -64) {
    return hdu.Error(absl::StrFormat("BITPIX is %d, must be 8, 16, 32, 64, -32 or -64", bitpix));
  }
  hdu.bitpix = static_cast<int>(bitpix);
  SPEXD_ASSIGN_OR_RETURN(const int64_t naxis, hdu.RequireInteger("NAXIS", 0, 999));
  std::optional<int64_t> elements = naxis == 0 ? 0 : 1;
  for (int64_t k = 1; k <= naxis; ++k) {
    SPEXD_ASSIGN_OR_RETURN(const int64_t extent,
                           hdu.RequireInteger(absl::StrCat("NAXIS", k), 0, int64_t{1} << 60));
    hdu.axes.push_back(extent);
    if (elements) elements = CheckedProduct(*elements, extent);
  }
  int64_t pcount = 0;
  if (hdu.Has("XTENSION")) {
    if (hdu.Has("PCOUNT")) {
      SPEXD_ASSIGN_OR_RETURN(pcount, hdu.RequireInteger("PCOUNT", 0, int64_t{1} << 60));
    }
    if (hdu.Has("GCOUNT")) {
      SPEXD_RETURN_IF_ERROR(hdu.RequireInteger("GCOUNT", 1, 1).status());
    }
  }
  std::optional<int64_t> bytes = elements ? CheckedSum(*elements, pcount) : std::nullopt;
  if (bytes) bytes = CheckedProduct(*bytes, std::abs(hdu.bitpix) / 8);
  if (!bytes) return hdu.Error("the sizes NAXISn and PCOUNT are beyond any file");
  return *bytes;
}

std::string NameOf(const Hdu& hdu) {
  for (const char* keyword : {"EXTNAME", "HDUNAME"}) {
    if (const std::optional<std::string> name = hdu.String(keyword); name && !name->empty()) {
      return absl::AsciiStrToUpper(Excerpt(*name));
    }
  }
  return "";
}

}  // namespace

std::optional<int64_t> CheckedProduct(int64_t a, int64_t b) {
  int64_t result;
  if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

std::optional<int64_t> CheckedSum(int64_t a, int64_t b) {
  int64_t result;
  if (a < 0 || b < 0 || __builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

std::optional<std::string> Hdu::String(const std::string& keyword) const {
  const auto found = card_of.find(keyword);
  return found == card_of.end() ? std::nullopt : CardString(cards, found->second);
}

std::optional<double> Hdu::Number(const std::string& keyword) const {
  const auto found = card_of.find(keyword);
  return found == card_of.end() ? std::nullopt : CardNumber(cards[found->second]);
}

std::optional<int64_t> Hdu::Integer(const std::string& keyword) const {
  const std::optional<double> value = Number(keyword);
  // Integers up to 2^53, such as sizes of files, are exact in a double.
  if (!value || *value != std::floor(*value) || std::abs(*value) > 9007199254740992.0) return std::nullopt;
  return static_cast<int64_t>(*value);
}

bool Hdu::IsTrue(const std::string& keyword) const {
  const auto found = card_of.find(keyword);
  return found != card_of.end() && CardLogical(cards[found->second]).value_or(false);
}

absl::StatusOr<int64_t> Hdu::RequireInteger(const std::string& keyword, int64_t least, int64_t most) const {
  if (!Has(keyword)) return Error(absl::StrCat("the keyword ", keyword, " is missing"));
  const std::optional<int64_t> value = Integer(keyword);
  if (!value) return Error(absl::StrCat("the keyword ", keyword, " is not an integer"));
  if (*value < least || *value > most) {
    return Error(absl::StrFormat("%s is %d, must be %d to %d", keyword, *value, least, most));
  }
  return *value;
}

absl::StatusOr<double> Hdu::RequireNumber(const std::string& keyword) const {
  if (!Has(keyword)) return Error(absl::StrCat("the keyword ", keyword, " is missing"));
  const std::optional<double> value = Number(keyword);
  if (!value) return Error(absl::StrCat("the keyword ", keyword, " is not a number"));
  return *value;
}

absl::Status Hdu::TakeMemory(int64_t bytes) const {
  return memory == nullptr ? absl::OkStatus() : memory->Take(bytes);
}

absl::Status Hdu::Error(absl::string_view text) const {
  return absl::InvalidArgumentError(absl::StrCat(file, ", HDU ", name, ": ", text));
}

absl::StatusOr<FitsFile> FitsFile::Parse(const Source& source) {
  const absl::string_view bytes = source.bytes();
  if (!absl::StartsWith(bytes, "SIMPLE  =")) {
    return absl::InvalidArgumentError(
        absl::StrCat(source.name(), bytes.empty() ? ": is empty, not a FITS file"
                                                  : ": is not a FITS file (no SIMPLE card)"));
  }
  FitsFile file(source);
  SPEXD_ASSIGN_OR_RETURN(file.structure_, MemoryLoan::Take(source.memory(), 0));
  size_t at = 0, all_cards = 0;
  while (at < bytes.size()) {
    Hdu hdu;
    hdu.file = source.name();
    hdu.name = absl::StrCat(file.hdus_.size());  // its name until the header is known
    hdu.memory = source.memory();
    if (!file.hdus_.empty() && !absl::StartsWith(bytes.substr(at), "XTENSION=")) {
      if (bytes.substr(at).find_first_not_of(absl::string_view("\0 ", 2)) == absl::string_view::npos) break;
      return hdu.Error(absl::StrFormat("does not begin with an XTENSION card (byte %d of the file)", at));
    }
    if (file.hdus_.size() == kMaxHdus) return hdu.Error(absl::StrFormat("the limit is %d HDUs", kMaxHdus));
    SPEXD_ASSIGN_OR_RETURN(const size_t cards, CountCards(bytes, at, hdu));
    all_cards += cards;
    if (all_cards > kMaxCardsOfFile) {
      return hdu.Error(absl::StrFormat("the file has more than %d header cards", kMaxCardsOfFile));
    }
    SPEXD_RETURN_IF_ERROR(file.structure_.Add(static_cast<int64_t>(kBytesOfHdu + cards * kBytesOfCard)));
    hdu.cards.reserve(cards);
    for (size_t k = 0; k < cards; ++k) {
      const absl::string_view card = bytes.substr(at + k * kFitsCardBytes, kFitsCardBytes);
      hdu.card_of.emplace(std::string(CardKeyword(card)), k);
      hdu.cards.emplace_back(card);
    }
    const size_t data_begin =
        std::min(bytes.size(), at + static_cast<size_t>(FitsPadded((cards + 1) * kFitsCardBytes)));
    if (const std::string name = NameOf(hdu); !name.empty()) {
      hdu.name = name;
    } else if (file.hdus_.empty()) {
      hdu.name = "PRIMARY";
    }
    hdu.type = file.hdus_.empty() ? "IMAGE" : hdu.String("XTENSION").value_or("");
    SPEXD_ASSIGN_OR_RETURN(const int64_t size, DataBytes(hdu));
    const int64_t present = static_cast<int64_t>(bytes.size() - data_begin);
    if (size > present) {
      return hdu.Error(
          absl::StrFormat("the file is truncated: %d bytes of data announced, %d there", size, present));
    }
    hdu.data = bytes.substr(data_begin, static_cast<size_t>(size));
    const auto padded = static_cast<size_t>(FitsPadded(size));
    at = std::min(bytes.size(), data_begin + padded);
    file.hdus_.push_back(std::move(hdu));
  }
  return file;
}

const Hdu* FitsFile::Find(std::initializer_list<absl::string_view> names) const {
  for (absl::string_view name : names) {
    if (name.empty()) return &hdus_.front();
    for (const Hdu& hdu : hdus_) {
      if (absl::EqualsIgnoreCase(hdu.name, name)) return &hdu;
    }
  }
  return nullptr;
}

absl::StatusOr<const Hdu*> FitsFile::Get(std::initializer_list<absl::string_view> names) const {
  if (const Hdu* hdu = Find(names)) return hdu;
  std::vector<std::string> present;
  for (const Hdu& hdu : hdus_) present.push_back(hdu.name);
  if (present.size() > 20) {
    present.resize(20);
    present.push_back("...");
  }
  return absl::InvalidArgumentError(absl::StrFormat("%s: there is no HDU %s; the file has %s", name(),
                                                    absl::StrJoin(names, " or "),
                                                    absl::StrJoin(present, ", ")));
}

}  // namespace spexd
