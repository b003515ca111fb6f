#include "core/analysis/lines/emission_lines.h"

#include <algorithm>
#include <cmath>

#include "core/analysis/lines/continuum.h"
#include "core/analysis/lines/line_constants.h"
#include "core/analysis/lines/line_stack.h"
#include "core/analysis/lines/matched_filter.h"
#include "core/base/median.h"
#include "core/base/status_macros.h"
#include "core/base/threads/parallel.h"

namespace spexd {
namespace {

// dchi2 at each redshift, and how many groups are significant there.
struct Stack {
  std::vector<double> dchi2;
  std::vector<int> groups;
};

void AddGroup(const StackPlan& plan, const LineGroup& group, const std::vector<LineDelays>& delays,
              const FilteredLine& trace, Stack* stack) {
  std::vector<double> inner(trace.information.begin() + kEdgeBins, trace.information.end() - kEdgeBins);
  double most = 0;
  for (const Line& line : group.lines) most = std::max(most, line.ratio * line.ratio);
  const double least = kLeastInformation * Median(inner) * most;
  const StackedGroup stacked = StackGroup(plan, group, delays, trace);
  for (int64_t z = 0; z < plan.redshifts; ++z) {
    const double signal = stacked.signal[z], information = stacked.information[z];
    if (!(information > least) || !(signal > 0)) continue;  // no line has negative flux
    const double gain = signal * signal / information;
    stack->dchi2[z] += gain;
    stack->groups[z] += gain > kSignificantGain ? 1 : 0;
  }
}

StackMaxima MaximaOf(const Stack& stack, int64_t near) {
  const std::vector<double>& dchi2 = stack.dchi2;
  const int64_t count = static_cast<int64_t>(dchi2.size());
  StackMaxima maxima;
  maxima.best = std::max_element(dchi2.begin(), dchi2.end()) - dchi2.begin();
  for (int64_t k = 0; k < count; ++k) {
    if (std::abs(k - maxima.best) <= near) continue;
    if (maxima.second < 0 || dchi2[k] > dchi2[maxima.second]) maxima.second = k;
  }
  maxima.dchi2 = dchi2[maxima.best];
  if (maxima.best > 0) maxima.before = dchi2[maxima.best - 1];
  if (maxima.best + 1 < count) maxima.after = dchi2[maxima.best + 1];
  if (maxima.second >= 0) maxima.second_dchi2 = dchi2[maxima.second];
  maxima.groups = stack.groups[maxima.best];
  return maxima;
}

}  // namespace

absl::StatusOr<std::vector<LineRedshift>> FindLineRedshifts(const UsableSpectra& spectra,
                                                            const std::vector<int>& rows,
                                                            const LineOptions& options) {
  SPEXD_ASSIGN_OR_RETURN(const StackPlan plan, PlanStack(spectra.wave, options));
  std::vector<LineRedshift> results(rows.size());
  const Workers workers = {options.threads, options.stop};
  SPEXD_RETURN_IF_ERROR(ParallelFor(static_cast<int64_t>(rows.size()), workers, [&](int64_t k) {
    const int row = rows[k];
    const std::vector<double> ivar = InnerIvar(spectra, row);
    std::vector<double> residual = RunningContinuum(spectra.flux.Row(row), ivar);
    for (int64_t j = 0; j < spectra.bins(); ++j) {
      residual[j] = ivar[j] > 0 ? spectra.flux(row, j) - residual[j] : 0;
    }
    std::vector<FilteredLine> traces;
    for (const Array<double, 2>& profiles : plan.profiles) {
      traces.push_back(FilterLine(ResolutionMatrix(*spectra.resolution, row), profiles, residual, ivar));
    }
    Stack stack{std::vector<double>(plan.redshifts, 0), std::vector<int>(plan.redshifts, 0)};
    for (size_t g = 0; g < EmissionLines().size(); ++g) {
      const LineGroup& group = EmissionLines()[g];
      AddGroup(plan, group, plan.delays[g], traces[group.doublet ? 1 : 0], &stack);
    }
    results[k] = RedshiftOf(plan, MaximaOf(stack, plan.near));
    return absl::OkStatus();
  }));
  return results;
}

}  // namespace spexd
