#include "core/base/crc32c.h"

#include <array>
#include <cstddef>

namespace spexd {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;  // 0x1EDC6F41 with its bits reversed
constexpr size_t kSlices = 8;

using Tables = std::array<std::array<uint32_t, 256>, kSlices>;

// table[s][b]: the remainder of byte b followed by s zero bytes.
constexpr Tables MakeTables() {
  Tables table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit) remainder = (remainder >> 1) ^ ((remainder & 1) ? kPolynomial : 0);
    table[0][byte] = remainder;
  }
  for (size_t slice = 1; slice < kSlices; ++slice) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = table[slice - 1][byte];
      table[slice][byte] = (before >> 8) ^ table[0][before & 255];
    }
  }
  return table;
}

constexpr Tables kTable = MakeTables();

uint32_t LoadLittleEndian(const unsigned char* bytes) {
  return uint32_t{bytes[0]} | uint32_t{bytes[1]} << 8 | uint32_t{bytes[2]} << 16 | uint32_t{bytes[3]} << 24;
}

}  // namespace

uint32_t ExtendCrc32c(uint32_t crc, absl::string_view bytes) {
  const auto* next = reinterpret_cast<const unsigned char*>(bytes.data());
  size_t left = bytes.size();
  crc = ~crc;
  for (; left >= kSlices; left -= kSlices, next += kSlices) {
    const uint32_t low = crc ^ LoadLittleEndian(next);
    const uint32_t high = LoadLittleEndian(next + 4);
    crc = kTable[7][low & 255] ^ kTable[6][(low >> 8) & 255] ^ kTable[5][(low >> 16) & 255] ^
          kTable[4][low >> 24] ^ kTable[3][high & 255] ^ kTable[2][(high >> 8) & 255] ^
          kTable[1][(high >> 16) & 255] ^ kTable[0][high >> 24];
  }
  for (; left > 0; --left, ++next) crc = (crc >> 8) ^ kTable[0][(crc ^ *next) & 255];
  return ~crc;
}

}  // namespace spexd
