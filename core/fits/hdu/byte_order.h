// Conversion of FITS numbers, which are big-endian and need not be aligned in memory.
#ifndef SPEXD_CORE_FITS_HDU_BYTE_ORDER_H_
#define SPEXD_CORE_FITS_HDU_BYTE_ORDER_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace spexd {

// Reverses the byte order of an unsigned integer: from the CPU's to big-endian, or back.
template <typename Bits>
Bits SwapBigEndian(Bits bits) {
  if constexpr (std::endian::native == std::endian::little) {
    if constexpr (sizeof(Bits) == 2) bits = __builtin_bswap16(bits);
    if constexpr (sizeof(Bits) == 4) bits = __builtin_bswap32(bits);
    if constexpr (sizeof(Bits) == 8) bits = __builtin_bswap64(bits);
  }
  return bits;
}

template <typename T>
T LoadBigEndian(const char* bytes) {
  using Bits = std::conditional_t<
      sizeof(T) == 1, uint8_t,
      std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
  Bits bits;
  std::memcpy(&bits, bytes, sizeof(T));
  return std::bit_cast<T>(SwapBigEndian(bits));
}

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_HDU_BYTE_ORDER_H_
