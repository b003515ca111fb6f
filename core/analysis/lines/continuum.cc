#include "core/analysis/lines/continuum.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/analysis/lines/line_constants.h"

namespace spexd {

std::vector<double> RunningContinuum(absl::Span<const double> flux, absl::Span<const double> ivar) {
  const int64_t bins = static_cast<int64_t>(flux.size());
  std::vector<double> continuum(bins, 0), sums(bins + 1, 0), weights(bins + 1, 0);
  for (int pass = 0; pass < kContinuumPasses; ++pass) {
    for (int64_t j = 0; j < bins; ++j) {
      const bool kept = pass == 0 || std::abs(flux[j] - continuum[j]) * std::sqrt(ivar[j]) < kContinuumClip;
      const double weight = kept ? ivar[j] : 0;
      sums[j + 1] = sums[j] + weight * flux[j];
      weights[j + 1] = weights[j] + weight;
    }
    for (int64_t j = 0; j < bins; ++j) {
      const int64_t low = std::max<int64_t>(0, j - kContinuumReach),
                    high = std::min(bins, j + kContinuumReach + 1);
      const double weight = weights[high] - weights[low];
      continuum[j] = weight > 0 ? (sums[high] - sums[low]) / weight : 0;
    }
  }
  return continuum;
}

}  // namespace spexd
