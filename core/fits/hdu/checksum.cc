#include "core/fits/hdu/checksum.h"

#include <fitsio.h>

#include <cstring>
#include <string>

#include "absl/strings/str_format.h"
#include "core/fits/hdu/byte_order.h"
#include "core/fits/hdu/cards.h"
#include "core/model/fits_header.h"

namespace spexd {
namespace {

constexpr size_t kValue = 11;  // position of a string's text in its card

// The card of a keyword in the header; null if there is none.
char* FindCard(absl::Span<char> header, absl::string_view keyword) {
  for (size_t at = 0; at + kFitsCardBytes <= header.size(); at += kFitsCardBytes) {
    if (CardKeyword(absl::string_view(&header[at], kFitsCardBytes)) == keyword) return &header[at];
  }
  return nullptr;
}

}  // namespace

uint32_t AddOnesComplement(uint32_t a, uint32_t b) {
  const uint32_t sum = a + b;
  return sum < a ? sum + 1 : sum;  // adds the carry
}

uint32_t OnesComplementSum(absl::string_view bytes, uint32_t sum) {
  uint64_t total = sum;
  for (size_t k = 0; k + 4 <= bytes.size(); k += 4) total += LoadBigEndian<uint32_t>(bytes.data() + k);
  while (total >> 32 != 0) total = (total & 0xffffffff) + (total >> 32);
  return static_cast<uint32_t>(total);
}

absl::Status WriteChecksums(absl::Span<char> header, bool has_data, uint32_t data_sum) {
  char* const checksum = FindCard(header, "CHECKSUM");
  char* const datasum = FindCard(header, "DATASUM");
  if (checksum == nullptr && datasum == nullptr && !has_data) return absl::OkStatus();
  if (checksum == nullptr || datasum == nullptr)
    return absl::InternalError("an HDU lacks its CHECKSUM or DATASUM card");
  const std::string text = absl::StrFormat("%-10d", data_sum);
  std::memcpy(datasum + kValue, text.data(), text.size());
  char encoded[17];
  fits_encode_chksum(OnesComplementSum(absl::string_view(header.data(), header.size()), data_sum), 1,
                     encoded);
  std::memcpy(checksum + kValue, encoded, 16);
  return absl::OkStatus();
}

}  // namespace spexd
