// The steps of Levenberg and Marquardt that fit a star, on processors and devices alike: constants, damped
// steps within ranges, errors.
#ifndef SPEXD_CORE_ANALYSIS_VELOCITY_SHARED_FIT_STEPS_H_
#define SPEXD_CORE_ANALYSIS_VELOCITY_SHARED_FIT_STEPS_H_

#include <cmath>

#include "core/analysis/velocity/shared/small_matrix.h"
#include "core/base/host_device.h"

namespace spexd {

inline constexpr int kMaxTemplateParameters = 4;
// The velocity, the templates' parameters, vsini^2.
inline constexpr int kMaxFitParameters = kMaxTemplateParameters + 2;
inline constexpr int kMaxContinuumDegree = 20;

inline constexpr double kMaxVsini = 300;    // km/s
inline constexpr double kVelocityUnit = 5;  // km/s
inline constexpr double kVsini2Unit = 400;  // (km/s)^2
inline constexpr double kMaxFitStep = 8;    // units
// Steps of vsini^2 may be longer by this part of its value: fast rotation is many units from none.
inline constexpr double kVsini2Growth = 0.5;
inline constexpr int kMaxFitSteps = 30;
// Of chi-square. A fit ends when a step gained less, or when the next is expected to: close to the minimum
// chi-square has no more digits to judge steps by.
inline constexpr double kEnoughGained = 1e-4;
inline constexpr double kFirstDamping = 1e-3, kMinDamping = 1e-9, kMaxDamping = 1e8;
// Factors of the damping after a step that was accepted or refused.
inline constexpr double kLessDamping = 1.0 / 8, kMoreDamping = 5;
// A step expected to gain what was expected of a refused one, within this part of it, is taken for the same
// step: it is refused without an evaluation.
inline constexpr double kSameGain = 0.05;
// A parameter at the end of its range is beyond it if chi-square would fall there by more: 3 sigma.
inline constexpr double kBeyondRange = 9;
inline constexpr double kContinuumPrior = 1e-13, kScanPrior = 1e-12;  // of the continuum's normal matrix

// The ranges of the parameters, and the units in which their steps are like.
struct FitRanges {
  int moving = 0;  // parameters that may move; one after them, vsini^2 without rotation, may not
  double least[kMaxFitParameters], most[kMaxFitParameters], unit[kMaxFitParameters];
  double growth[kMaxFitParameters];  // of a value, by which steps may be longer than kMaxFitStep
};

// Half of chi-square's second derivatives and minus half of its first, with the continuum following.
struct FitCurvature {
  double h[kMaxFitParameters * kMaxFitParameters];  // rows kMaxFitParameters apart
  double g[kMaxFitParameters];
};

// The increment of vsini^2 whose difference stands for the derivative.
SPEXD_HOST_DEVICE inline double Vsini2Increment(double vsini2) {
  return 0.02 * vsini2 > 25.0 ? 0.02 * vsini2 : 25.0;
}

SPEXD_HOST_DEVICE inline double WithinRange(double value, double least, double most) {
  return value < least ? least : value > most ? most : value;
}

// The velocity at the minimum of the parabola through chi-square at `at` and those a step of the scan before
// and after; at most a half of a step off. `next`: at + step.
SPEXD_HOST_DEVICE inline double RefinedVelocity(double before, double chi2, double after, double at,
                                                double next) {
  const double bend = before - 2 * chi2 + after;
  if (!(bend > 0)) return at;
  return at + 0.5 * (next - at) * WithinRange((before - after) / bend, -1, 1);
}

// The next point x + d with (H + damping diag(H)) d = g in units, |d| at most kMaxFitStep of them plus the
// growth, within the ranges. Parameters at the end of their range that chi-square pushes against it do not
// move. Returns false if the damping is too little for H.
SPEXD_HOST_DEVICE inline bool DampedStep(const FitCurvature& curvature, const FitRanges& ranges,
                                         const double* x, double damping, double* next) {
  constexpr int kStride = kMaxFitParameters;
  bool free[kMaxFitParameters];
  for (int q = 0; q < kStride; ++q) {
    free[q] = q < ranges.moving && !(x[q] <= ranges.least[q] && curvature.g[q] < 0) &&
              !(x[q] >= ranges.most[q] && curvature.g[q] > 0);
  }
  // The system has a size that compilers know, so that devices solve it in registers: what does not move has
  // a row of the unit matrix.
  double matrix[kMaxFitParameters * kMaxFitParameters], step[kMaxFitParameters];
  for (int q = 0; q < kStride; ++q) {
    step[q] = free[q] ? curvature.g[q] * ranges.unit[q] : 0;
    for (int p = 0; p <= q; ++p) {
      matrix[q * kStride + p] =
          free[q] && free[p] ? curvature.h[q * kStride + p] * ranges.unit[q] * ranges.unit[p] : 0;
    }
    double& diagonal = matrix[q * kStride + q];
    diagonal = free[q] ? diagonal + damping * (diagonal + 1e-30) : 1;
  }
  if (!SolvePositive(matrix, kStride, kMaxFitParameters, step)) return false;
  for (int q = 0; q < kStride; ++q) {
    if (q >= ranges.moving) continue;
    const double most = kMaxFitStep * ranges.unit[q] + ranges.growth[q] * fabs(x[q]);
    const double there = x[q] + WithinRange(step[q] * ranges.unit[q], -most, most);
    next[q] = free[q] ? WithinRange(there, ranges.least[q], ranges.most[q]) : x[q];
  }
  return true;
}

// What the step from x to `next` takes from chi-square where H and g tell all of it.
SPEXD_HOST_DEVICE inline double ExpectedGain(const FitCurvature& curvature, int moving, const double* x,
                                             const double* next) {
  double gain = 0;
  for (int q = 0; q < moving; ++q) {
    double slope = 2 * curvature.g[q];
    for (int p = 0; p < moving; ++p) slope -= curvature.h[q * kMaxFitParameters + p] * (next[p] - x[p]);
    gain += slope * (next[q] - x[q]);
  }
  return gain;
}

enum class StepVerdict { kTried, kSkipped, kEnds };
// What becomes of a step expected to gain so much, after one was refused that was expected to gain `refused`
// (infinity: none was). A negative gain is that of a step cut to its ranges: more damping gives another.
SPEXD_HOST_DEVICE inline StepVerdict JudgeStep(double expected, double refused) {
  if (expected >= 0 && expected < kEnoughGained) return StepVerdict::kEnds;
  const bool same = fabs(expected - refused) < kSameGain * refused;
  return expected > 0 && !same ? StepVerdict::kTried : StepVerdict::kSkipped;
}

// H -= G A^-1 G^T, what the continuum takes up, from G^T = D^T W J [term, kMaxFitParameters] and the
// Cholesky factor of A [term, term]. ProjectColumn makes column q of L^-1 G^T from that of G^T; once all
// columns are, ProjectElement changes H[q, p].
SPEXD_HOST_DEVICE inline void ProjectColumn(const double* factor, int terms, int q, double* cross) {
  for (int k = 0; k < terms; ++k) {
    double value = cross[k * kMaxFitParameters + q];
    for (int l = 0; l < k; ++l) value -= factor[k * terms + l] * cross[l * kMaxFitParameters + q];
    cross[k * kMaxFitParameters + q] = value / factor[k * terms + k];
  }
}
SPEXD_HOST_DEVICE inline void ProjectElement(const double* cross, int terms, int q, int p, double* h) {
  for (int k = 0; k < terms; ++k) {
    h[q * kMaxFitParameters + p] -= cross[k * kMaxFitParameters + q] * cross[k * kMaxFitParameters + p];
  }
}

// Square roots of the diagonal of H's pseudo-inverse over the parameters that are not at an end. Of the
// others `errors` is left as it is, or infinite where chi-square would fall by more than kBeyondRange further
// on.
SPEXD_HOST_DEVICE inline void FitErrors(const FitCurvature& curvature, const FitRanges& ranges,
                                        const double* x, double* errors) {
  constexpr int kStride = kMaxFitParameters;
  constexpr double kMin = 1e-15;  // relative to the largest eigenvalue: not determined
  int inside[kMaxFitParameters], count = 0;
  for (int q = 0; q < ranges.moving; ++q) {
    if (x[q] > ranges.least[q] && x[q] < ranges.most[q]) inside[count++] = q;
  }
  double matrix[kMaxFitParameters * kMaxFitParameters], vectors[kMaxFitParameters * kMaxFitParameters];
  for (int q = 0; q < count; ++q) {
    for (int p = 0; p < count; ++p) matrix[q * kStride + p] = curvature.h[inside[q] * kStride + inside[p]];
  }
  Diagonalize(matrix, vectors, kStride, count);
  double largest = 0;
  for (int k = 0; k < count; ++k) largest = fmax(largest, fabs(matrix[k * kStride + k]));
  for (int q = 0; q < count; ++q) {
    double variance = 0;
    for (int k = 0; k < count; ++k) {
      const double value = matrix[k * kStride + k], part = vectors[q * kStride + k];
      if (fabs(value) > kMin * largest) variance += part * part / value;
    }
    errors[inside[q]] = sqrt(variance);
  }
  for (int q = 0; q < ranges.moving; ++q) {
    const double g = curvature.g[q], h = curvature.h[q * kStride + q];
    const bool pushed = (x[q] <= ranges.least[q] && g < 0) || (x[q] >= ranges.most[q] && g > 0);
    if (pushed && ranges.least[q] < ranges.most[q] && g * g > kBeyondRange * h) errors[q] = INFINITY;
  }
}

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_VELOCITY_SHARED_FIT_STEPS_H_
