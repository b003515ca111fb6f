#include "core/fits/hdu/checksum.h"

#include <fitsio.h>

#include <cstring>

#include "absl/strings/str_format.h"
#include "core/fits/hdu/byte_order.h"
#include "core/fits/hdu/cards.h"

namespace spexd {
namespace {

constexpr int64_t kCard = 80;
constexpr int64_t kValue = 11;  // where a string's text begins in its card

// The offset of a keyword's card in the header; -1 if it has none.
int64_t FindCard(const char* file, const HduExtent& extent, absl::string_view keyword) {
  for (int64_t at = extent.header; at + kCard <= extent.data; at += kCard) {
    if (CardKeyword(absl::string_view(file + at, kCard)) == keyword) return at;
  }
  return -1;
}

}  // namespace

uint32_t OnesComplementSum(absl::string_view bytes, uint32_t sum) {
  uint64_t total = sum;
  for (size_t k = 0; k + 4 <= bytes.size(); k += 4) total += LoadBigEndian<uint32_t>(bytes.data() + k);
  while (total >> 32 != 0) total = (total & 0xffffffff) + (total >> 32);
  return static_cast<uint32_t>(total);
}

absl::Status WriteChecksums(char* file, const HduExtent& extent) {
  const int64_t checksum = FindCard(file, extent, "CHECKSUM"), datasum = FindCard(file, extent, "DATASUM");
  if (checksum < 0 && datasum < 0 && extent.data == extent.end) return absl::OkStatus();
  if (checksum < 0 || datasum < 0) return absl::InternalError("an HDU lacks its CHECKSUM or DATASUM card");
  const uint32_t data = OnesComplementSum(absl::string_view(file + extent.data, extent.end - extent.data));
  const std::string text = absl::StrFormat("%-10d", data);
  std::memcpy(file + datasum + kValue, text.data(), text.size());
  const uint32_t all =
      OnesComplementSum(absl::string_view(file + extent.header, extent.data - extent.header), data);
  char encoded[17];
  fits_encode_chksum(all, 1, encoded);
  std::memcpy(file + checksum + kValue, encoded, 16);
  return absl::OkStatus();
}

}  // namespace spexd
