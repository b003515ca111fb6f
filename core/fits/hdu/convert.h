// Conversion from stored elements to pixels: scaling, blanks and change of type.
#ifndef SPEXD_CORE_FITS_HDU_CONVERT_H_
#define SPEXD_CORE_FITS_HDU_CONVERT_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

#include "core/fits/hdu/byte_order.h"

namespace spexd {

// The scaling of stored elements: pixel = scale * stored + zero. In integer images, `blank` stands for NaN.
struct Scaling {
  double scale = 1, zero = 0;
  std::optional<int64_t> blank;

  bool identity() const { return scale == 1 && zero == 0 && !blank; }
};

// The low bits of a whole offset of at most 2^63, to be added to integers.
inline uint32_t LowBits(double zero) {
  return static_cast<uint32_t>(static_cast<int64_t>(std::fmod(zero, 4294967296.0)));
}

// Sets out[k] to load(k) scaled. T is float, double, uint16_t or uint32_t. The integer types keep the low
// bits; they take only integers with scale 1 and a whole zero (see CheckInteger).
template <typename T, typename Load>
void ConvertEach(const Load& load, int64_t count, const Scaling& scaling, T* out) {
  using Stored = decltype(load(0));
  if constexpr (std::is_integral_v<T>) {
    if constexpr (std::is_integral_v<Stored>) {
      const uint32_t zero = LowBits(scaling.zero);
      for (int64_t k = 0; k < count; ++k) out[k] = static_cast<T>(static_cast<uint32_t>(load(k)) + zero);
    }
  } else if (scaling.identity()) {
    for (int64_t k = 0; k < count; ++k) out[k] = static_cast<T>(load(k));
  } else {
    for (int64_t k = 0; k < count; ++k) {
      out[k] = static_cast<T>(static_cast<double>(load(k)) * scaling.scale + scaling.zero);
    }
    if constexpr (std::is_integral_v<Stored>) {
      if (!scaling.blank) return;
      for (int64_t k = 0; k < count; ++k) {
        if (static_cast<int64_t>(load(k)) == *scaling.blank) out[k] = std::numeric_limits<T>::quiet_NaN();
      }
    }
  }
}

// Like ConvertEach, for `count` big-endian elements of BITPIX `bitpix` at `bytes`.
template <typename T>
void ConvertBigEndian(int bitpix, const char* bytes, int64_t count, const Scaling& scaling, T* out) {
  const auto from = [&](auto sample) {
    using S = decltype(sample);
    ConvertEach<T>(
        [bytes](int64_t k) { return LoadBigEndian<S>(bytes + k * static_cast<int64_t>(sizeof(S))); }, count,
        scaling, out);
  };
  switch (bitpix) {
    case 8:
      return from(uint8_t{});
    case 16:
      return from(int16_t{});
    case 32:
      return from(int32_t{});
    case 64:
      return from(int64_t{});
    case -32:
      return from(float{});
    case -64:
      return from(double{});
  }
}

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_HDU_CONVERT_H_
