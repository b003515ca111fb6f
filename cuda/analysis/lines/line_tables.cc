#include "cuda/analysis/lines/line_tables.h"

#include <algorithm>

namespace spexd::cuda {

LineTables::LineTables(const StackPlan& plan) {
  for (const Array<double, 2>& profile : plan.profiles) {
    for (const double value : profile.flat()) profiles.push_back(static_cast<float>(value));
  }
  stack_.redshifts = static_cast<int>(plan.redshifts);
  stack_.near = static_cast<int>(plan.near);
  stack_.wide = static_cast<int>(plan.wide);
  stack_.step = plan.step;
  arm_.bins = static_cast<int>(plan.profiles[0].shape(1));
  arm_.first_wave = plan.first_wave;
  arm_.bin = plan.bin;
  for (const KnownLine& line : plan.known) stack_.known_line[stack_.known++] = line;
  for (size_t g = 0; g < plan.delays.size(); ++g) {
    const LineGroup& from = EmissionLines()[g];
    StackedGroup& group = arm_.group[stack_.groups++];
    group.filter = from.doublet ? 1 : 0;
    for (size_t k = 0; k < from.lines.size(); ++k) {
      const LineDelays& delays = plan.delays[g][k];
      StackedLine& line = group.line[group.lines++];
      line.first = static_cast<int>(delays.first);
      line.end = line.first + static_cast<int>(delays.positions.size());
      line.ratio = static_cast<float>(from.lines[k].ratio);
      group.max_ratio2 = std::max(group.max_ratio2, line.ratio * line.ratio);
      first_positions_.push_back(static_cast<int64_t>(positions.size()));
      for (const auto& [bin, part] : delays.positions) positions.push_back({bin, static_cast<float>(part)});
    }
  }
}

LineArm LineTables::At(const float* profiles_at, const LinePosition* positions_at) const {
  LineArm arm = arm_;
  arm.profiles = profiles_at;
  size_t next = 0;
  for (int g = 0; g < stack_.groups; ++g) {
    StackedGroup& group = arm.group[g];
    for (int k = 0; k < group.lines; ++k) group.line[k].at = positions_at + first_positions_[next++];
  }
  return arm;
}

StackMaxima MaximaOf(const LineMaxima& maxima) {
  StackMaxima result;
  result.best = maxima.best;
  result.second = maxima.second;
  result.before = maxima.before;
  result.dchi2 = maxima.dchi2;
  result.after = maxima.after;
  result.second_dchi2 = maxima.second_dchi2;
  result.wide_before = maxima.wide_before;
  result.wide_after = maxima.wide_after;
  result.unexplained = maxima.unexplained;
  result.seen = maxima.seen;
  result.significant = maxima.significant;
  return result;
}

}  // namespace spexd::cuda
