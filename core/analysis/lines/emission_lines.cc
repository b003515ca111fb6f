#include "core/analysis/lines/emission_lines.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

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

// The traces of an arm and exposure, for a single line and for the doublet.
struct ArmTraces {
  const StackPlan* plan;
  std::vector<FilteredLine> lines;
};

ArmTraces TracesOf(const StackPlan& plan, const UsableSpectra& spectra, int row) {
  const std::vector<double> ivar = InnerIvar(spectra, row);
  std::vector<double> residual = RunningContinuum(spectra.flux.Row(row), ivar);
  for (int64_t j = 0; j < spectra.bins(); ++j) {
    residual[j] = ivar[j] > 0 ? spectra.flux(row, j) - residual[j] : 0;
  }
  ArmTraces traces = {&plan, {}};
  for (const Array<double, 2>& profiles : plan.profiles) {
    traces.lines.push_back(FilterLine(ResolutionMatrix(*spectra.resolution, row), profiles, residual, ivar));
  }
  return traces;
}

// The information that a line must have to count.
double LeastInformation(const FilteredLine& trace) {
  std::vector<double> inner(trace.information.begin() + kEdgeBins, trace.information.end() - kEdgeBins);
  return kMinInformation * Median(inner);
}

// Lowers thresholds [redshift] to `least` where one of the lines is in range.
void LowerWhereSeen(const std::vector<LineDelays>& delays, double least, std::vector<double>* thresholds) {
  for (const LineDelays& line : delays) {
    for (size_t k = 0; k < line.positions.size(); ++k) {
      double& threshold = (*thresholds)[static_cast<size_t>(line.first) + k];
      threshold = std::min(threshold, least);
    }
  }
}

void AddGroup(const std::vector<ArmTraces>& traces, size_t position, Stack* stack) {
  const LineGroup& group = EmissionLines()[position];
  const uint32_t bit = uint32_t{1} << position;
  double most = 0;
  for (const Line& line : group.lines) most = std::max(most, line.ratio * line.ratio);
  const int64_t redshifts = static_cast<int64_t>(stack->dchi2.size());
  StackedGroup stacked(redshifts);
  // The least threshold of all spectra that have a line in range. Spectra without information in most bins do
  // not matter.
  std::vector<double> thresholds(redshifts, std::numeric_limits<double>::infinity());
  for (const ArmTraces& arm : traces) {
    const FilteredLine& trace = arm.lines[group.doublet ? 1 : 0];
    const std::vector<LineDelays>& delays = arm.plan->delays[position];
    AddToStack(group, delays, trace, &stacked);
    if (const double least = LeastInformation(trace) * most; least > 0)
      LowerWhereSeen(delays, least, &thresholds);
  }
  for (int64_t z = 0; z < redshifts; ++z) {
    const double signal = stacked.signal[z], information = stacked.information[z];
    const double least = std::isfinite(thresholds[z]) ? thresholds[z] : 0;
    if (!(information > least)) continue;
    stack->seen[z] |= bit;
    if (!(signal > 0)) continue;  // lines have no negative flux
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

StackMaxima MaximaOf(const Stack& stack, const RedshiftGrid& grid) {
  const std::vector<double>& dchi2 = stack.dchi2;
  const int64_t count = static_cast<int64_t>(dchi2.size()), near = grid.near;
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
  maxima.wide_before = wide(-grid.wide);
  maxima.wide_after = wide(grid.wide);
  if (maxima.second >= 0) maxima.second_dchi2 = dchi2[maxima.second];
  maxima.seen = stack.seen[maxima.best];
  maxima.significant = stack.significant[maxima.best];
  return maxima;
}

}  // namespace

absl::StatusOr<std::vector<LineRedshift>> FindLineRedshifts(absl::Span<const UsableSpectra> arms,
                                                            const std::vector<std::vector<int>>& targets,
                                                            const LineOptions& options) {
  std::vector<StackPlan> plans;
  RedshiftGrid grid;
  for (const UsableSpectra& arm : arms) {
    SPEXD_ASSIGN_OR_RETURN(StackPlan plan, PlanStack(arm.wave, options));
    AddArm(plan, &grid);
    plans.push_back(std::move(plan));
  }
  std::vector<LineRedshift> results(targets.size());
  const Workers workers = {options.threads, options.stop};
  SPEXD_RETURN_IF_ERROR(ParallelFor(static_cast<int64_t>(targets.size()), workers, [&](int64_t k) {
    std::vector<ArmTraces> traces;
    for (size_t a = 0; a < arms.size(); ++a) {
      for (const int row : targets[k]) traces.push_back(TracesOf(plans[a], arms[a], row));
    }
    Stack stack(grid.redshifts);
    for (size_t g = 0; g < EmissionLines().size(); ++g) AddGroup(traces, g, &stack);
    StackMaxima maxima = MaximaOf(stack, grid);
    for (const ArmTraces& arm : traces) {
      maxima.unexplained =
          std::max(maxima.unexplained, MostUnexplained(*arm.plan, maxima.best, arm.lines[0]));
    }
    results[k] = RedshiftOf(grid, maxima);
    return absl::OkStatus();
  }));
  return results;
}

absl::StatusOr<std::vector<LineRedshift>> FindLineRedshifts(const UsableSpectra& spectra,
                                                            const std::vector<int>& rows,
                                                            const LineOptions& options) {
  std::vector<std::vector<int>> targets;
  for (const int row : rows) targets.push_back({row});
  return FindLineRedshifts(absl::MakeConstSpan(&spectra, 1), targets, options);
}

}  // namespace spexd
