#include "core/fits/quantised.h"

#include <algorithm>
#include <array>
#include <limits>

namespace spexd {
namespace {

constexpr size_t kRandoms = 10000;
constexpr int32_t kStoredZero = -2147483646;  // an exact 0 under SUBTRACTIVE_DITHER_2

using RandomTable = std::array<float, kRandoms>;

// The standard's sequence: seed <- 16807 seed mod (2^31 - 1).
const RandomTable& Randoms() {
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

}  // namespace

template <typename T>
void Dequantise(absl::Span<const int32_t> stored, const Quantisation& q, T* out) {
  const size_t count = stored.size();
  if (q.dither == Dither::kNone) {
    for (size_t k = 0; k < count; ++k) out[k] = static_cast<T>(stored[k] * q.scale + q.zero);
  } else {
    const RandomTable& randoms = Randoms();
    size_t start = static_cast<size_t>(q.sequence) % kRandoms;
    for (size_t k = 0; k < count;) {
      const size_t first = static_cast<size_t>(randoms[start] * 500);
      const size_t run = std::min(count - k, kRandoms - first);
      const float* random = randoms.data() + first;
      const int32_t* in = stored.data() + k;
      T* to = out + k;
      for (size_t i = 0; i < run; ++i) {
        to[i] = static_cast<T>((static_cast<double>(in[i]) - random[i] + 0.5) * q.scale + q.zero);
      }
      k += run;
      start = (start + 1) % kRandoms;
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
