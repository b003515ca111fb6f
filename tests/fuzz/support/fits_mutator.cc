// Changes FITS files but keeps most of their structure, so that they pass the first checks: values and
// keywords of header cards, copies of cards and blocks, data, or any bytes. Gzipped files are changed inside.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "core/fits/hdu/source.h"
#include "tests/service/support/attack_files.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace spexd::fuzz {
namespace {

constexpr size_t kBlock = 2880, kCard = 80, kKeyword = 8, kValue = 10;

// Values at and beyond the limits of the readers, separated by |.
constexpr absl::string_view kValues =
    "0|1|-1|2|3|4|8|16|31|32|64|-32|-64|255|999|1000|4096|10000|20000|32768|32769|65536|268435456|"
    "2147483647|2147483648|4294967296|-2147483648|9007199254740992|1152921504606846976|"
    "9223372036854775807|1E300|-1E300|1E-300|0.5|1.5D3|NAN|INF|T|F|''|'RICE_1  '|'GZIP_1  '|'GZIP_2  '|"
    "'NOCOMPRESS'|'NO_DITHER'|'SUBTRACTIVE_DITHER_1'|'SUBTRACTIVE_DITHER_2'|'NONE    '|'BINTABLE'|"
    "'IMAGE   '|'1PB(9)  '|'1QB(9)  '|'0PB     '|'PE      '|'1D      '|'9A      '|'E       '|"
    "'1J      '|'X       '|'K       '|'BYTEPIX '|'BLOCKSIZE'|'GAUSS-HERMITE'|'a string &'";
constexpr const char* kKeywords[] = {
    "SIMPLE",  "XTENSION", "BITPIX",   "NAXIS",    "NAXIS1",  "NAXIS2", "NAXIS3",  "PCOUNT",   "GCOUNT",
    "TFIELDS", "THEAP",    "TFORM1",   "TTYPE1",   "TDIM1",   "TNULL1", "TZERO1",  "TSCAL1",   "TDISP1",
    "EXTNAME", "HDUNAME",  "END",      "CONTINUE", "COMMENT", "BSCALE", "BZERO",   "BLANK",    "ZIMAGE",
    "ZTABLE",  "ZBITPIX",  "ZNAXIS",   "ZNAXIS1",  "ZNAXIS2", "ZTILE1", "ZTILE2",  "ZCMPTYPE", "ZNAME1",
    "ZVAL1",   "ZQUANTIZ", "ZDITHER0", "ZSCALE",   "ZZERO",   "ZBLANK", "PSFTYPE", "PSFVER",   "LEGDEG",
    "WAVEMIN", "FIBERMIN", "FIBERMAX", "IN_PSF",   "PSFERR"};

using Random = std::minstd_rand;

size_t Below(Random& random, size_t count) { return count == 0 ? 0 : random() % count; }

template <size_t N>
std::string OneOf(Random& random, const char* const (&texts)[N]) {
  return texts[Below(random, N)];
}

bool IsCard(const std::string& file, size_t at) {
  return std::all_of(&file[at], &file[at] + kKeyword, [](unsigned char c) {
    return absl::ascii_isupper(c) || absl::ascii_isdigit(c) || c == ' ' || c == '-' || c == '_';
  });
}

// Returns the offset of a random card. A file without text has no card.
size_t AnyCard(const std::string& file, Random& random) {
  const size_t cards = file.size() / kCard;
  for (int tries = 0; tries < 50; ++tries) {
    const size_t at = Below(random, cards) * kCard;
    if (file[at] != ' ' && IsCard(file, at)) return at;
  }
  return Below(random, cards) * kCard;
}

// Returns the card's integer changed by a little; empty if it has none.
std::string Near(const std::string& card, Random& random) {
  int64_t value = 0;
  const std::string text = card.substr(kValue, card.find('/') - kValue);
  if (!absl::SimpleAtoi(text, &value) || value > INT64_MAX / 2 || value < INT64_MIN / 2) return "";
  switch (random() % 4) {
    case 0:
      return absl::StrCat(value + 1);
    case 1:
      return absl::StrCat(value - 1);
    case 2:
      return absl::StrCat(value * 2);
    default:
      return absl::StrCat(value / 2);
  }
}

void ChangeValue(std::string& file, Random& random) {
  const size_t at = AnyCard(file, random);
  std::string card = file.substr(at, kCard);
  if (random() % 4 == 0) {
    LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(&card[kValue]), kCard - kValue, kCard - kValue);
  } else {
    std::string value = random() % 2 == 0 ? Near(card, random) : "";
    if (value.empty()) {
      const std::vector<std::string> values = absl::StrSplit(kValues, '|');
      value = values[Below(random, values.size())];
    }
    card = absl::StrFormat("%-8s= %20s", card.substr(0, kKeyword), value);
    card.resize(kCard, ' ');
  }
  file.replace(at, kCard, card);
}

void ChangeKeyword(std::string& file, Random& random) {
  file.replace(AnyCard(file, random), kKeyword, absl::StrFormat("%-8s", OneOf(random, kKeywords)));
}

void CopyCard(std::string& file, Random& random) {
  const std::string card = file.substr(AnyCard(file, random), kCard);
  file.replace(AnyCard(file, random), kCard, card);
}

// Copies or removes a whole block, so that the rest stays aligned.
void ChangeBlocks(std::string& file, Random& random) {
  const size_t blocks = file.size() / kBlock;
  const std::string block = file.substr(Below(random, blocks) * kBlock, kBlock);
  const size_t at = Below(random, blocks) * kBlock;
  if (random() % 2 == 0) {
    file.insert(at, block);
  } else {
    file.erase(at, kBlock);
  }
}

void ChangeBytes(std::string& file, Random& random) {
  const size_t at = Below(random, file.size());
  const size_t count = std::min<size_t>(file.size() - at, 1 + Below(random, 64));
  LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(&file[at]), count, count);
}

void ChangeAnything(std::string& file, size_t most) {
  const size_t size = file.size();
  file.resize(std::max(most, size));
  file.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(file.data()), size, file.size()));
}

void ChangePlain(std::string& file, size_t most, Random& random) {
  if (file.size() < kBlock) return ChangeAnything(file, most);
  switch (random() % 16) {
    case 0:
    case 1:
      return ChangeKeyword(file, random);
    case 2:
      return CopyCard(file, random);
    case 3:
      return ChangeBlocks(file, random);
    case 4:
      return ChangeAnything(file, most);
    case 5:
    case 6:
    case 7:
    case 8:
      return ChangeBytes(file, random);
    default:
      return ChangeValue(file, random);
  }
}

// Returns a changed file of at most `most` bytes.
std::string Changed(std::string file, size_t most, Random& random) {
  const SourceLimits limits{static_cast<int64_t>(4 * most), nullptr};
  const absl::StatusOr<Source> source = Source::FromBytes("", file, limits);
  const bool within = source.ok() && source->bytes() != file && random() % 4 != 0;
  if (within) file = std::string(source->bytes());
  const int changes = 1 << random() % 3;
  for (int k = 0; k < changes; ++k) ChangePlain(file, most, random);
  if (within ? random() % 16 != 0 : random() % 64 == 0) file = testing::Gzipped(file);
  file.resize(std::min(file.size(), most));
  return file;
}

}  // namespace
}  // namespace spexd::fuzz

// libFuzzer calls this to make its next input.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  spexd::fuzz::Random random(seed);
  const std::string file =
      spexd::fuzz::Changed(std::string(reinterpret_cast<char*>(data), size), most, random);
  std::copy(file.begin(), file.end(), data);
  return file.size();
}
