#include "core/traces/rows/coarse.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "core/base/median.h"
#include "core/base/status_macros.h"

namespace spexd::traces {
namespace {

constexpr double kTrialStep = 0.25;  // pixels
constexpr double kWidth = 1.2;       // standard deviation of the Gaussian, pixels
constexpr double kAway = 4;          // pixels beyond which a score counts as another fibre's
constexpr double kBrightest = 3;     // a fibre counts at most this many times the median fibre

CoarseProfile CollapsedProfile(const Image& image, const TraceRows& rows, int fibre, int stride) {
  double sum[kCoarseStretches][kCoarseOffsets] = {}, count[kCoarseStretches][kCoarseOffsets] = {};
  const int first = (rows.first_row(fibre) + stride - 1) / stride * stride;
  for (int row = first; row < rows.end_row(fibre); row += stride) {
    const double x = std::floor(rows.At(fibre, row).x + 0.5);
    if (!(x > -kCoarseReach - 1 && x < image.columns() + kCoarseReach + 1)) continue;
    const int left = static_cast<int>(x) - kCoarseReach;
    const int stretch = static_cast<int>(int64_t{row} * kCoarseStretches / image.rows());
    const float* pixels = image.pixels.Row(row).data();
    const float* ivar = image.ivar.Row(row).data();
    for (int k = std::max(0, -left); k < std::min(kCoarseOffsets, image.columns() - left); ++k) {
      const bool usable = ivar[left + k] > 0;
      sum[stretch][k] += usable ? pixels[left + k] : 0;
      count[stretch][k] += usable;
    }
  }
  CoarseProfile profile;
  std::vector<double> means(kCoarseStretches);
  for (int k = 0; k < kCoarseOffsets; ++k) {
    means.resize(kCoarseStretches);
    for (int s = 0; s < kCoarseStretches; ++s) means[s] = count[s][k] > 0 ? sum[s][k] / count[s][k] : 0;
    profile[k] = Median(means);
  }
  return profile;
}

}  // namespace

absl::StatusOr<CoarseShift> FindCoarseShift(const Image& image, const TraceRows& rows, int stride,
                                            const TraceShiftOptions& options, const Workers& workers) {
  std::vector<CoarseProfile> profiles(static_cast<size_t>(rows.fibres()));
  SPEXD_RETURN_IF_ERROR(ParallelFor(rows.fibres(), workers, [&](int64_t fibre) {
    profiles[fibre] = CollapsedProfile(image, rows, static_cast<int>(fibre), stride);
    return absl::OkStatus();
  }));
  return CoarseShiftOf(std::move(profiles), options);
}

CoarseShift CoarseShiftOf(std::vector<CoarseProfile> profiles, const TraceShiftOptions& options) {
  // Light that is the same at all offsets says nothing about the shift.
  for (CoarseProfile& profile : profiles) {
    const double least = std::min(*std::min_element(profile.begin(), profile.end()), 0.0);
    for (double& value : profile) value -= least;
  }
  std::vector<double> heights;
  for (const CoarseProfile& profile : profiles) {
    const double height = *std::max_element(profile.begin(), profile.end());
    if (height > 0) heights.push_back(height);
  }
  const double typical = Median(heights);
  if (!(typical > 0)) return CoarseShift();
  CoarseProfile total = {};
  for (const CoarseProfile& profile : profiles) {
    const double height = *std::max_element(profile.begin(), profile.end());
    const double scale = height > kBrightest * typical ? kBrightest * typical / height : 1;
    for (int k = 0; k < kCoarseOffsets; ++k) total[k] += scale * profile[k];
  }

  constexpr double kFirstTrial = -kCoarseReach + 2;
  constexpr int kTrials = static_cast<int>((2 * kCoarseReach - 4) / kTrialStep) + 1;
  double score[kTrials];
  int best = -1;
  for (int trial = 0; trial < kTrials; ++trial) {
    const double dx = kFirstTrial + trial * kTrialStep;
    score[trial] = 0;
    for (int k = 0; k < kCoarseOffsets; ++k) {
      const double z = (k - kCoarseReach - dx) / kWidth;
      score[trial] += total[k] * std::exp(-0.5 * z * z);
    }
    if (std::abs(dx) <= options.max_dx + 1 && (best < 0 || score[trial] > score[best])) best = trial;
  }
  CoarseShift shift;
  if (best < 0) return shift;
  shift.dx = kFirstTrial + best * kTrialStep;
  shift.score = score[best];
  if (best > 0 && best < kTrials - 1) {  // the vertex of the parabola through three scores
    const double curvature = score[best - 1] - 2 * score[best] + score[best + 1];
    shift.dx += 0.5 * kTrialStep * (score[best - 1] - score[best + 1]) / std::min(curvature, -1e-300);
  }
  for (int trial = 0; trial < kTrials; ++trial) {
    if (std::abs(kFirstTrial + trial * kTrialStep - shift.dx) > kAway) {
      shift.away = std::max(shift.away, score[trial]);
    }
  }
  return shift;
}

}  // namespace spexd::traces
