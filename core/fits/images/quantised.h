// Floating-point pixels stored as scaled integers, with subtractive dithering (FITS standard 4.0,
// section 10.2 and appendix I).
#ifndef SPEXD_CORE_FITS_IMAGES_QUANTISED_H_
#define SPEXD_CORE_FITS_IMAGES_QUANTISED_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "core/fits/images/coding.h"

namespace spexd {

enum class Dither { kNone, kSubtractive1, kSubtractive2 };

struct Quantisation {
  double scale = 1, zero = 0;
  std::optional<int32_t> blank;  // the integer that stands for NaN
  Dither dither = Dither::kNone;
  int64_t sequence = 0;  // tile index + ZDITHER0 - 1, which determines the tile's first random number
};

// The kDitherRandoms random numbers of the standard: seed <- 16807 seed mod (2^31 - 1), over 2^31 - 1.
absl::Span<const float> DitherRandoms();
// The index of a tile's first random number, below kFirstRandoms. The tile's numbers go on to the end of the
// table, then from FirstRandom(sequence + 1).
size_t FirstRandom(int64_t sequence);

// Computes the pixels of one tile. T is float or double.
template <typename T>
void Dequantise(absl::Span<const int32_t> stored, const Quantisation& quantisation, T* out);

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_IMAGES_QUANTISED_H_
