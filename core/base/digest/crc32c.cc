#include "core/base/digest/crc32c.h"

#include <array>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace spexd {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;  // 0x1EDC6F41 with its bits reversed
constexpr size_t kSlices = 8;

template <size_t N>
using Tables = std::array<std::array<uint32_t, 256>, N>;

// table[s][b]: the remainder of byte b followed by s zero bytes.
constexpr Tables<kSlices> MakeTables() {
  Tables<kSlices> table{};
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

constexpr Tables<kSlices> kTable = MakeTables();

uint32_t LoadLittleEndian(const unsigned char* bytes) {
  return uint32_t{bytes[0]} | uint32_t{bytes[1]} << 8 | uint32_t{bytes[2]} << 16 | uint32_t{bytes[3]} << 24;
}

// `crc` and what these functions return is the register itself: without the inversions at both ends.
uint32_t ExtendByTables(uint32_t crc, const unsigned char* next, size_t left) {
  for (; left >= kSlices; left -= kSlices, next += kSlices) {
    const uint32_t low = crc ^ LoadLittleEndian(next);
    const uint32_t high = LoadLittleEndian(next + 4);
    crc = kTable[7][low & 255] ^ kTable[6][(low >> 8) & 255] ^ kTable[5][(low >> 16) & 255] ^
          kTable[4][low >> 24] ^ kTable[3][high & 255] ^ kTable[2][(high >> 8) & 255] ^
          kTable[1][(high >> 16) & 255] ^ kTable[0][high >> 24];
  }
  for (; left > 0; --left, ++next) crc = (crc >> 8) ^ kTable[0][(crc ^ *next) & 255];
  return crc;
}

#if defined(__x86_64__)

// The processor's instruction takes 8 bytes a cycle, but its result three cycles: three lanes side by side.
constexpr size_t kLane = 1024;

// The product of two remainders, bits reversed as everything here.
constexpr uint32_t Multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = uint32_t{1} << 31; bit != 0; bit >>= 1) {
    if (a & bit) product ^= b;
    b = (b >> 1) ^ ((b & 1) ? kPolynomial : 0);
  }
  return product;
}

// table[k][b]: what byte k of a register with value b becomes by kLane zero bytes.
constexpr Tables<4> MakeLaneTables() {
  uint32_t zeros = uint32_t{1} << 30;  // x: one zero bit
  for (size_t bits = 1; bits < 8 * kLane; bits *= 2) zeros = Multiply(zeros, zeros);
  Tables<4> table{};
  for (size_t k = 0; k < 4; ++k) {
    for (uint32_t byte = 0; byte < 256; ++byte) table[k][byte] = Multiply(zeros, byte << (8 * k));
  }
  return table;
}
static_assert((kLane & (kLane - 1)) == 0, "the loop above squares");

constexpr Tables<4> kLaneTable = MakeLaneTables();

uint32_t SkipLane(uint64_t crc) {
  return kLaneTable[0][crc & 255] ^ kLaneTable[1][(crc >> 8) & 255] ^ kLaneTable[2][(crc >> 16) & 255] ^
         kLaneTable[3][(crc >> 24) & 255];
}

uint64_t Load(const unsigned char* bytes) {
  uint64_t value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

__attribute__((target("sse4.2"))) uint32_t ExtendByInstruction(uint32_t crc, const unsigned char* next,
                                                               size_t left) {
  uint64_t first = crc;
  for (; left >= 3 * kLane; left -= 3 * kLane, next += 3 * kLane) {
    uint64_t second = 0, third = 0;
    for (size_t k = 0; k < kLane; k += sizeof(uint64_t)) {
      first = _mm_crc32_u64(first, Load(next + k));
      second = _mm_crc32_u64(second, Load(next + kLane + k));
      third = _mm_crc32_u64(third, Load(next + 2 * kLane + k));
    }
    first = SkipLane(SkipLane(first) ^ second) ^ third;
  }
  for (; left >= sizeof(uint64_t); left -= sizeof(uint64_t), next += sizeof(uint64_t))
    first = _mm_crc32_u64(first, Load(next));
  auto last = static_cast<uint32_t>(first);
  for (; left > 0; --left, ++next) last = _mm_crc32_u8(last, *next);
  return last;
}

uint32_t Extend(uint32_t crc, const unsigned char* next, size_t left) {
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  return has_instruction ? ExtendByInstruction(crc, next, left) : ExtendByTables(crc, next, left);
}

#else

uint32_t Extend(uint32_t crc, const unsigned char* next, size_t left) {
  return ExtendByTables(crc, next, left);
}

#endif

}  // namespace

uint32_t ExtendCrc32c(uint32_t crc, absl::string_view bytes) {
  return ~Extend(~crc, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

uint32_t ExtendCrc32cByTables(uint32_t crc, absl::string_view bytes) {
  return ~ExtendByTables(~crc, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

}  // namespace spexd
