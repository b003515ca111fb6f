// How far covariance is kept: a little beyond the spots' reach, and much further beside holes in the data.
#ifndef SPEXD_CORE_EXTRACT_CPU_COVARIANCE_PLAN_H_
#define SPEXD_CORE_EXTRACT_CPU_COVARIANCE_PLAN_H_

#include <vector>

#include "core/extract/cpu/normal.h"
#include "core/plan/bundle_plan.h"

namespace spexd::cpu {

// Later bins that each bin's covariance is first wanted with, for one group: more where a bin of a solved
// fibre sees much less than its neighbours (kHoleWeight).
std::vector<int> FirstCovarianceWidths(const BundlePlan& plan, const NormalEquations& normal,
                                       const FibreGroup& group);

// Widens what is wanted around bins whose last partial correlation, at the widths that it was computed with,
// exceeds `tolerance`; returns whether there were any. `most` bounds the widths.
bool WidenCovariance(const std::vector<double>& last_correlation, const std::vector<int>& widths,
                     double tolerance, int reach, int most, std::vector<int>* wanted);

int MostCovarianceWidth(const BundlePlan& plan);

}  // namespace spexd::cpu

#endif  // SPEXD_CORE_EXTRACT_CPU_COVARIANCE_PLAN_H_
