#include "core/fits/images/quantised.h"

#include <algorithm>
#include <array>
#include <limits>

namespace spexd {
namespace {

using RandomTable = std::array<float, kDitherRandoms>;

}  // namespace

absl::Span<const float> DitherRandoms() {
  static const RandomTable table = [] {
    RandomTable values;
    uint64_t seed = 1;
    for (float& value : values) {
      seed = 16807 * seed % 2147483647;
      value = static_cast<float>(static_cast<double>(seed) / 2147483647.0);
    }
    return values;
  }();
  return table;
}

size_t FirstRandom(int64_t sequence) {
  return static_cast<size_t>(DitherRandoms()[static_cast<size_t>(sequence) % kDitherRandoms] * kFirstRandoms);
}

template <typename T>
void Dequantise(absl::Span<const int32_t> stored, const Quantisation& q, T* out) {
  const size_t count = stored.size();
  if (q.dither == Dither::kNone) {
    for (size_t k = 0; k < count; ++k) out[k] = static_cast<T>(stored[k] * q.scale + q.zero);
  } else {
    const absl::Span<const float> randoms = DitherRandoms();
    int64_t sequence = q.sequence;
    for (size_t k = 0; k < count;) {
      const size_t first = FirstRandom(sequence++);
      const size_t run = std::min(count - k, kDitherRandoms - first);
      const float* random = randoms.data() + first;
      const int32_t* in = stored.data() + k;
      T* to = out + k;
      for (size_t i = 0; i < run; ++i) {
        to[i] = static_cast<T>(Undithered(in[i], random[i], q.scale, q.zero));
      }
      k += run;
    }
    if (q.dither == Dither::kSubtractive2) {
      for (size_t k = 0; k < count; ++k) {
        if (stored[k] == kStoredZero) out[k] = 0;
      }
    }
  }
  if (q.blank) {
    for (size_t k = 0; k < count; ++k) {
      if (stored[k] == *q.blank) out[k] = std::numeric_limits<T>::quiet_NaN();
    }
  }
}

template void Dequantise<float>(absl::Span<const int32_t>, const Quantisation&, float*);
template void Dequantise<double>(absl::Span<const int32_t>, const Quantisation&, double*);

}  // namespace spexd
