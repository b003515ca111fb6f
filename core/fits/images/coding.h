// Code that decoders of compressed tiles share, on host and device (FITS standard 4.0, sections 10.2 and
// 10.4.1).
#ifndef SPEXD_CORE_FITS_IMAGES_CODING_H_
#define SPEXD_CORE_FITS_IMAGES_CODING_H_

#include <cstddef>
#include <cstdint>

#include "core/base/host_device.h"

namespace spexd {

// ---- Rice coding. A block of values begins with its split; one more than the split is stored. Each value is
// then stored as its high bits in unary and as many low bits as the split says.

// The number of bits in which a block's split is stored, for values of `bytes` bytes.
SPEXD_HOST_DEVICE constexpr int SplitBits(size_t bytes) { return bytes == 1 ? 3 : bytes == 2 ? 4 : 5; }
// The split that stands for values stored in full.
SPEXD_HOST_DEVICE constexpr int FullSplit(size_t bytes) { return bytes == 1 ? 6 : bytes == 2 ? 14 : 25; }

// The difference from the previous value. Differences are stored in the order 0, -1, 1, -2, ...
template <typename Bits>
SPEXD_HOST_DEVICE Bits Unfold(uint64_t folded) {
  return static_cast<Bits>((folded >> 1) ^ (~(folded & 1) + 1));
}

// ---- Scaled integers

inline constexpr size_t kDitherRandoms = 10000;      // size of the standard's table of random numbers
inline constexpr size_t kFirstRandoms = 500;         // a tile's random numbers begin among the first so many
inline constexpr int32_t kStoredZero = -2147483646;  // stands for an exact 0 under SUBTRACTIVE_DITHER_2

// The pixel of a stored integer from which a random number was subtracted. REQUIRES: compiled without fused
// multiply-add.
SPEXD_HOST_DEVICE inline double Undithered(int32_t stored, float random, double scale, double zero) {
  return (static_cast<double>(stored) - random + 0.5) * scale + zero;
}

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_IMAGES_CODING_H_
