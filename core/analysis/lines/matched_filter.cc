#include "core/analysis/lines/matched_filter.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/analysis/velocity_units.h"

namespace spexd {
namespace {

constexpr int kProfileRows = 2 * kProfileHalf + 1;
constexpr int kCarriedHalf = kProfileHalf + kResolutionHalfWidth;
constexpr int kCarriedRows = 2 * kCarriedHalf + 1;
constexpr int64_t kBlock = 128;  // bins at a time, so that profiles stay in the cache

// Computes P = R G for bins [first, first + count): [offset + kCarriedHalf, bin - first]. `carried` is zeroed
// first.
void CarryProfiles(const ResolutionMatrix& r, const Array<double, 2>& profiles, int64_t first, int64_t count,
                   Array<double, 2>* carried) {
  carried->Assign({kCarriedRows, kBlock});
  const int64_t bins = r.bins();
  for (int p = 0; p < kProfileRows; ++p) {
    const int64_t e = p - kProfileHalf;  // bin j + e of the profile is a column of R
    const int64_t low = std::max(first, -e), high = std::min(first + count, bins - e);
    for (int k = 0; k < kResolutionDiagonals; ++k) {
      if (low < high) {
        AddProducts(r.values(k) + low + e, &profiles(p, low), high - low, &(*carried)(p + k, low - first));
      }
    }
  }
}

}  // namespace

Array<double, 2> LineProfiles(const std::vector<double>& wave, const std::vector<LineComponent>& components,
                              double sigma) {
  const int64_t bins = static_cast<int64_t>(wave.size());
  const double step = wave[1] - wave[0];
  Array<double, 2> profiles({kProfileRows, bins});
  for (const LineComponent& component : components) {
    for (int64_t j = 0; j < bins; ++j) {
      const double width = wave[j] * sigma / kLightSpeed / step,
                   shift = wave[j] * std::expm1(component.velocity / kLightSpeed) / step,
                   height = component.part / (width * std::sqrt(2 * std::numbers::pi));
      for (int p = 0; p < kProfileRows; ++p) {
        const double x = (p - kProfileHalf - shift) / width;
        profiles(p, j) += height * std::exp(-0.5 * x * x);
      }
    }
  }
  return profiles;
}

FilteredLine FilterLine(const ResolutionMatrix& r, const Array<double, 2>& profiles,
                        absl::Span<const double> residual, absl::Span<const double> ivar) {
  const int64_t bins = r.bins();
  FilteredLine line{std::vector<double>(bins, 0), std::vector<double>(bins, 0)};
  std::vector<double> weighted(bins), carried(bins);
  for (int64_t j = 0; j < bins; ++j) weighted[j] = ivar[j] * residual[j];
  r.MultiplyTransposed(weighted.data(), carried.data());
  for (int p = 0; p < kProfileRows; ++p) {
    const Diagonal diagonal(p, kProfileHalf, bins);
    for (int64_t j = diagonal.first; j < diagonal.end; ++j) {
      line.signal[j] += profiles(p, j) * carried[j + diagonal.offset];
    }
  }
  Array<double, 2> block;
  for (int64_t first = 0; first < bins; first += kBlock) {
    const int64_t count = std::min(kBlock, bins - first);
    CarryProfiles(r, profiles, first, count, &block);
    for (int p = 0; p < kCarriedRows; ++p) {
      const Diagonal diagonal(p, kCarriedHalf, bins);
      const int64_t low = std::max(first, diagonal.first), high = std::min(first + count, diagonal.end);
      for (int64_t j = low; j < high; ++j) {
        const double value = block(p, j - first);
        line.information[j] += ivar[j + diagonal.offset] * value * value;
      }
    }
  }
  return line;
}

}  // namespace spexd
