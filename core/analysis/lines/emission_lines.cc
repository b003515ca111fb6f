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

// dchi2 at each redshift, and which groups are seen and significant there (StackMaxima).
struct Stack {
  explicit Stack(int64_t redshifts) : dchi2(redshifts, 0), seen(redshifts, 0), significant(redshifts, 0) {}
  std::vector<double> dchi2;
  std::vector<uint32_t> seen, significant;
};

// What a line at each redshift needs to count.
double LeastInformation(const FilteredLine& trace) {
  std::vector<double> inner(trace.information.begin() + kEdgeBins, trace.information.end() - kEdgeBins);
  return kMinInformation * Median(inner);
}

void AddGroup(const StackPlan& plan, size_t position, const FilteredLine& trace, Stack* stack) {
  const LineGroup& group = EmissionLines()[position];
  const uint32_t bit = uint32_t{1} << position;
  double most = 0;
  for (const Line& line : group.lines) most = std::max(most, line.ratio * line.ratio);
  const double least = LeastInformation(trace) * most;
  const StackedGroup stacked = StackGroup(plan, group, plan.delays[position], trace);
  for (int64_t z = 0; z < plan.redshifts; ++z) {
    const double signal = stacked.signal[z], information = stacked.information[z];
    if (!(information > least)) continue;
    stack->seen[z] |= bit;
    if (!(signal > 0)) continue;  // no line has negative flux
    const double gain = signal * signal / information;
    stack->dchi2[z] += gain;
    if (gain > kSignificantGain) stack->significant[z] |= bit;
  }
}

// The largest gain of a single line at a bin that no line of the redshift explains.
double MostUnexplained(const StackPlan& plan, int64_t redshift, const FilteredLine& trace) {
  const double least = LeastInformation(trace), growth = std::exp(static_cast<double>(redshift) * plan.step);
  double most = 0;
  for (size_t j = kEdgeBins; j + kEdgeBins < trace.signal.size(); ++j) {
    const double signal = trace.signal[j], information = trace.information[j];
    if (!(information > least) || !(signal * signal > most * information) || !(signal > 0)) continue;
    const double wave = plan.first_wave + static_cast<double>(j) * plan.bin;
    if (IsExplained(wave, growth, plan.known.data(), static_cast<int>(plan.known.size()))) continue;
    most = signal * signal / information;
  }
  return most;
}

StackMaxima MaximaOf(const Stack& stack, const StackPlan& plan) {
  const std::vector<double>& dchi2 = stack.dchi2;
  const int64_t count = static_cast<int64_t>(dchi2.size()), near = plan.near;
  StackMaxima maxima;
  maxima.best = std::max_element(dchi2.begin(), dchi2.end()) - dchi2.begin();
  for (int64_t k = 0; k < count; ++k) {
    if (std::abs(k - maxima.best) <= near) continue;
    if (maxima.second < 0 || dchi2[k] > dchi2[maxima.second]) maxima.second = k;
  }
  maxima.dchi2 = dchi2[maxima.best];
  if (maxima.best > 0) maxima.before = dchi2[maxima.best - 1];
  if (maxima.best + 1 < count) maxima.after = dchi2[maxima.best + 1];
  const auto wide = [&](int64_t offset) {
    return dchi2[MirroredRedshift(static_cast<int>(maxima.best), static_cast<int>(offset),
                                  static_cast<int>(count))];
  };
  maxima.wide_before = wide(-plan.wide);
  maxima.wide_after = wide(plan.wide);
  if (maxima.second >= 0) maxima.second_dchi2 = dchi2[maxima.second];
  maxima.seen = stack.seen[maxima.best];
  maxima.significant = stack.significant[maxima.best];
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
    Stack stack(plan.redshifts);
    for (size_t g = 0; g < EmissionLines().size(); ++g)
      AddGroup(plan, g, traces[EmissionLines()[g].doublet ? 1 : 0], &stack);
    StackMaxima maxima = MaximaOf(stack, plan);
    maxima.unexplained = MostUnexplained(plan, maxima.best, traces[0]);
    results[k] = RedshiftOf(plan, maxima);
    return absl::OkStatus();
  }));
  return results;
}

}  // namespace spexd
