// What decoders of compressed tiles share, on host and device (FITS standard 4.0, sections 10.2 and 10.4.1).
#ifndef SPEXD_CORE_FITS_IMAGES_CODING_H_
#define SPEXD_CORE_FITS_IMAGES_CODING_H_

#include <cstddef>
#include <cstdint>

#include "core/base/host_device.h"

namespace spexd {

// ---- Rice coding. A block of values begins with its split, one more than which is stored: each value is
// then that many low bits, after the high ones in unary.

// The number of bits that tell a block's split, by bytes a value.
SPEXD_HOST_DEVICE constexpr int SplitBits(size_t bytes) { return bytes == 1 ? 3 : bytes == 2 ? 4 : 5; }
// The split that stands for values stored in full.
SPEXD_HOST_DEVICE constexpr int FullSplit(size_t bytes) { return bytes == 1 ? 6 : bytes == 2 ? 14 : 25; }

// Values are differences from the one before, stored as 0, -1, 1, -2, ...
template <typename Bits>
SPEXD_HOST_DEVICE Bits Unfold(uint64_t folded) {
  return static_cast<Bits>((folded >> 1) ^ (~(folded & 1) + 1));
}

// ---- Scaled integers

inline constexpr size_t kDitherRandoms = 10000;      // random numbers in the standard's table
inline constexpr size_t kFirstRandoms = 500;         // among the first so many, a tile's own begin
inline constexpr int32_t kStoredZero = -2147483646;  // an exact 0 under SUBTRACTIVE_DITHER_2

// The pixel of a stored integer, of which a random number was subtracted. To be compiled without fused
// multiply-add.
SPEXD_HOST_DEVICE inline double Undithered(int32_t stored, float random, double scale, double zero) {
  return (static_cast<double>(stored) - random + 0.5) * scale + zero;
}

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_IMAGES_CODING_H_
