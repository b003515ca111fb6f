#include "core/extract/cpu/covariance_plan.h"

#include <algorithm>
#include <cmath>

#include "core/model/frame.h"
#include "core/model/tolerances.h"

namespace spexd::cpu {

int MostCovarianceWidth(const BundlePlan& plan) { return kHoleReaches * (plan.reach + kCovarianceMargin); }

std::vector<int> FirstCovarianceWidths(const BundlePlan& plan, const NormalEquations& normal,
                                       const FibreGroup& group) {
  const int bins = plan.bins(), usual = std::max(plan.reach + kCovarianceMargin, kResolutionHalfWidth + 1);
  const int wide = std::max(MostCovarianceWidth(plan), usual);
  const int around = 2 * std::max(plan.reach, 1);
  std::vector<int> wanted(bins, usual);
  for (int i = group.kept.first; i < group.kept.end(); ++i) {
    for (int j = 0; j < bins; ++j) {
      double local = 0;
      for (int k = std::max(0, j - around); k <= std::min(bins - 1, j + around); k += around / 2) {
        local = std::max(local, normal.flux_weight(k, i));
      }
      if (normal.flux_weight(j, i) >= kHoleWeight * local) continue;
      // Bins before the hole are tied to those behind it.
      for (int k = std::max(0, j - wide / 2); k <= std::min(bins - 1, j + plan.reach); ++k) wanted[k] = wide;
    }
  }
  return wanted;
}

bool WidenCovariance(const std::vector<double>& last_correlation, const std::vector<int>& widths,
                     double tolerance, int reach, int most, std::vector<int>* wanted) {
  const int bins = static_cast<int>(widths.size());
  bool changed = false;
  for (int j = 0; j < bins; ++j) {
    const double excess = last_correlation[j] / tolerance;
    if (excess <= 1 || widths[j] >= std::min(most, bins - 1 - j)) continue;
    // Correlation falls about 70 times over a reach (5 times in 3 of 8 bins). Some room, and the neighbours
    // too, so that the next pass finds little left to do.
    const double more = std::ceil(std::log(kWidenRoom * excess) / std::log(70.0) * reach);
    const int width = static_cast<int>(std::min<double>(widths[j] + 1 + more, most));
    for (int k = std::max(0, j - reach / 2); k <= std::min(bins - 1, j + reach / 2); ++k) {
      (*wanted)[k] = std::max((*wanted)[k], width);
    }
    changed = true;
  }
  return changed;
}

}  // namespace spexd::cpu
