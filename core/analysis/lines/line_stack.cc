#include "core/analysis/lines/line_stack.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "absl/strings/str_format.h"
#include "core/analysis/velocity_units.h"
#include "core/base/status_macros.h"

namespace spexd {
namespace {

constexpr double kOxygen = (3727.092 * 0.73 + 3729.875) / 1.73;
constexpr double kApart = 1000;      // km/s between z and z2, or between a line and wings that it explains
constexpr double kOtherApart = 500;  // km/s likewise for OtherLines, which are faint

absl::Status CheckLineOptions(int64_t bins, const LineOptions& options) {
  const bool positive = options.max_redshift > 0 && options.step > 0 && options.sigma > 0;
  if (!positive || std::log1p(options.max_redshift) / (options.step / kLightSpeed) > 1e6) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "lines: redshift %g, step %g km/s and sigma %g km/s must be positive, with at most 1e6 redshifts",
        options.max_redshift, options.step, options.sigma));
  }
  if (bins > 2 * kEdgeBins + 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("lines: need more than %d bins, there are %d", 2 * kEdgeBins + 1, bins));
}

// The positions of a line at redshifts with these `growth` = 1 + z.
LineDelays DelaysOf(const Line& line, const std::vector<double>& wave, const std::vector<double>& growth) {
  const double bin = wave[1] - wave[0], bins = static_cast<double>(wave.size());
  LineDelays delays;
  for (int64_t k = 0; k < static_cast<int64_t>(growth.size()); ++k) {
    const double at = (line.wave * growth[k] - wave[0]) / bin;
    if (at < kEdgeBins || at >= bins - kEdgeBins - 1) continue;
    if (delays.positions.empty()) delays.first = k;
    delays.positions.push_back({static_cast<int>(at), at - std::floor(at)});
  }
  delays.positions.shrink_to_fit();
  return delays;
}

int WarningOf(const LineRedshift& found, const StackMaxima& maxima, int64_t redshifts) {
  if (!(found.dchi2 > 0)) return kLineNoData;
  constexpr uint32_t kHalpha = 1u << kHalphaGroup, kWithHalpha = 1u << kNitrogenGroup | 1u << kSulphurGroup;
  const bool accepted = found.gap > kAcceptedGapAlone || (found.gap > kAcceptedGap && found.lines >= 2),
             unlikely = (maxima.significant & kWithHalpha) != 0 && (maxima.seen & kHalpha) != 0 &&
                        (maxima.significant & kHalpha) == 0,
             at_limit = maxima.best == 0 || maxima.best + 1 == redshifts;
  return (accepted ? 0 : kLineGapTooSmall) | (at_limit ? kLineAtLimit : 0) |
         (std::isnan(found.error) ? kLineNoMinimum : 0) |
         (maxima.unexplained > kUnexplainedGain ? kLineUnexplained : 0) | (unlikely ? kLineUnlikely : 0);
}

}  // namespace

const std::vector<LineGroup>& EmissionLines() {
  static const auto* const groups =
      new std::vector<LineGroup>{{"[OII]", true, {{kOxygen, 1}}},
                                 {"H beta", false, {{4862.68, 1}}},
                                 {"[OIII]", false, {{4960.295, 0.335}, {5008.240, 1}}},
                                 {"H alpha", false, {{6564.61, 1}}},
                                 {"[NII]", false, {{6549.86, 0.338}, {6585.27, 1}}},
                                 {"[SII]", false, {{6718.29, 1}, {6732.67, 0.8}}}};
  return *groups;
}

const std::vector<double>& OtherLines() {
  // The lines of [NeV], [NeIII], H8 to H gamma, [OIII], He II, [NI], He I, [OI], [ArIII] and [OII].
  static const auto* const lines = new std::vector<double>{
      3346.79, 3426.85, 3869.86, 3890.17, 3968.59, 3971.20, 4102.89, 4341.69, 4364.44, 4472.73,
      4687.02, 5201.71, 5877.25, 6302.05, 6365.54, 6679.99, 7067.14, 7137.76, 7321.94, 7332.21};
  return *lines;
}

void AddArm(const RedshiftGrid& arm, RedshiftGrid* grid) {
  const int64_t wide = grid->wide;
  const double relative_bin = grid->relative_bin;
  *grid = arm;
  grid->wide = std::max(wide, arm.wide);
  grid->relative_bin = std::max(relative_bin, arm.relative_bin);
}

absl::StatusOr<StackPlan> PlanStack(const std::vector<double>& wave, const LineOptions& options) {
  SPEXD_RETURN_IF_ERROR(CheckLineOptions(static_cast<int64_t>(wave.size()), options));
  StackPlan plan;
  plan.step = options.step / kLightSpeed;
  plan.redshifts = static_cast<int64_t>(std::ceil(std::log1p(options.max_redshift) / plan.step));
  while (static_cast<double>(plan.near + 1) * plan.step * kLightSpeed <= kApart) ++plan.near;
  plan.first_wave = wave[0];
  plan.bin = wave[1] - wave[0];
  plan.relative_bin = plan.bin / (0.5 * (wave.front() + wave.back()));
  plan.wide = std::max<int64_t>(1, std::llround(plan.relative_bin / plan.step));
  for (const LineGroup& group : EmissionLines()) {
    for (const Line& line : group.lines) plan.known.push_back({line.wave, kApart / kLightSpeed});
  }
  for (const double line : OtherLines()) plan.known.push_back({line, kOtherApart / kLightSpeed});
  std::vector<LineComponent> doublet;
  for (const Line& line : kOxygenDoublet) {
    doublet.push_back({kLightSpeed * std::log(line.wave / kOxygen), line.ratio / 1.73});
  }
  plan.profiles = {LineProfiles(wave, {{0, 1}}, options.sigma), LineProfiles(wave, doublet, options.sigma)};
  std::vector<double> growth;
  for (int64_t k = 0; k < plan.redshifts; ++k) growth.push_back(std::exp(static_cast<double>(k) * plan.step));
  for (const LineGroup& group : EmissionLines()) {
    std::vector<LineDelays>& delays = plan.delays.emplace_back();
    for (const Line& line : group.lines) delays.push_back(DelaysOf(line, wave, growth));
  }
  return plan;
}

void AddToStack(const LineGroup& group, const std::vector<LineDelays>& delays, const FilteredLine& trace,
                StackedGroup* stacked) {
  for (size_t k = 0; k < delays.size(); ++k) {
    const double ratio = group.lines[k].ratio;
    int64_t z = delays[k].first;
    for (const auto& [bin, part] : delays[k].positions) {
      stacked->signal[z] += ratio * ((1 - part) * trace.signal[bin] + part * trace.signal[bin + 1]);
      stacked->information[z] +=
          ratio * ratio * ((1 - part) * trace.information[bin] + part * trace.information[bin + 1]);
      ++z;
    }
  }
}

LineRedshift RedshiftOf(const RedshiftGrid& grid, const StackMaxima& maxima) {
  double at = static_cast<double>(maxima.best);
  if (maxima.best > 0 && maxima.best + 1 < grid.redshifts) {  // vertex of the maximum's parabola
    const double bend = maxima.before - 2 * maxima.dchi2 + maxima.after;
    if (bend < 0) at += std::clamp(0.5 * (maxima.before - maxima.after) / bend, -1.0, 1.0);
  }
  LineRedshift result;
  result.z = std::expm1(at * grid.step);
  result.dchi2 = maxima.dchi2;
  result.lines = std::popcount(maxima.significant);
  result.gap = maxima.second < 0 ? maxima.dchi2 : maxima.dchi2 - maxima.second_dchi2;
  const double across = static_cast<double>(grid.wide) * grid.step,
               curvature = (2 * maxima.dchi2 - maxima.wide_before - maxima.wide_after) / (across * across);
  if (curvature > 0) {
    const double of_bins = grid.relative_bin * grid.relative_bin / 8;
    result.error = (1 + result.z) * std::sqrt(2 / curvature + of_bins * of_bins * curvature / maxima.dchi2);
  }
  result.warning = WarningOf(result, maxima, grid.redshifts);
  result.z2 = maxima.second < 0 ? result.z : std::expm1(static_cast<double>(maxima.second) * grid.step);
  return result;
}

}  // namespace spexd
