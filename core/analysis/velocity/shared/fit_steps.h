// The Levenberg-Marquardt steps that fit a star, for CPUs and devices: constants, damped steps within ranges,
// and errors.
#ifndef SPEXD_CORE_ANALYSIS_VELOCITY_SHARED_FIT_STEPS_H_
#define SPEXD_CORE_ANALYSIS_VELOCITY_SHARED_FIT_STEPS_H_

#include <cmath>

#include "core/analysis/velocity/shared/small_matrix.h"
#include "core/base/host_device.h"

namespace spexd {

inline constexpr int kMaxTemplateParameters = 4;
// The parameters of a fit: the velocity, the templates' parameters, vsini^2.
inline constexpr int kMaxFitParameters = kMaxTemplateParameters + 2;
inline constexpr int kMaxContinuumDegree = 20;

inline constexpr double kMaxVsini = 300;    // km/s
inline constexpr double kVelocityUnit = 5;  // km/s
inline constexpr double kVsini2Unit = 400;  // (km/s)^2
inline constexpr double kMaxFitStep = 8;    // in the parameter's unit (FitRanges)
// Part of the value of vsini^2 by which its steps may be longer, because fast rotation is many units away
// from none.
inline constexpr double kVsini2Growth = 0.5;
inline constexpr int kMaxFitSteps = 30;
// The gain of chi-square that ends a fit: a step gained less, or the next is expected to. Close to the
// minimum, chi-square has not enough digits to judge steps by.
inline constexpr double kEnoughGained = 1e-4;
inline constexpr double kFirstDamping = 1e-3, kMinDamping = 1e-9, kMaxDamping = 1e8;
// Factors of the damping after an accepted and after a refused step.
inline constexpr double kLessDamping = 1.0 / 8, kMoreDamping = 5;
// The relative difference in expected gain below which a step counts as the same as a refused one. It is
// refused without an evaluation.
inline constexpr double kSameGain = 0.05;
// The fall of chi-square, 3 sigma, above which a parameter at the end of its range is beyond it: chi-square
// would fall by more further on.
inline constexpr double kBeyondRange = 9;
inline constexpr double kContinuumPrior = 1e-13, kScanPrior = 1e-12;  // parts of A_00, added to its diagonal

// The ranges of the parameters, and the units in which their steps are comparable.
struct FitRanges {
  // The number of parameters that may move. vsini^2 follows them and does not move without rotation.
  int moving = 0;
  double least[kMaxFitParameters], most[kMaxFitParameters], unit[kMaxFitParameters];
  double growth[kMaxFitParameters];  // part of the value by which steps may exceed kMaxFitStep
};

// Half of chi-square's second derivatives and minus half of its first, where the continuum is fitted at each
// point.
struct FitCurvature {
  double h[kMaxFitParameters * kMaxFitParameters];  // rows kMaxFitParameters apart
  double g[kMaxFitParameters];
};

// The increment of vsini^2 for a difference in place of the derivative.
SPEXD_HOST_DEVICE inline double Vsini2Increment(double vsini2) {
  return 0.02 * vsini2 > 25.0 ? 0.02 * vsini2 : 25.0;
}

SPEXD_HOST_DEVICE inline double WithinRange(double value, double least, double most) {
  return value < least ? least : value > most ? most : value;
}

// The velocity at the minimum of the parabola through chi-square at `at` and one step of the scan before and
// after; at most half a step from `at`. `next`: `at` + step.
SPEXD_HOST_DEVICE inline double RefinedVelocity(double before, double chi2, double after, double at,
                                                double next) {
  const double bend = before - 2 * chi2 + after;
  if (!(bend > 0)) return at;
  return at + 0.5 * (next - at) * WithinRange((before - after) / bend, -1, 1);
}

// Computes the next point x + d with (H + damping diag(H)) d = g, in units. |d| is at most kMaxFitStep units
// plus the growth, and x + d is within the ranges. Parameters that chi-square pushes against the end of their
// range do not move. Returns false if the damping is too small for H.
SPEXD_HOST_DEVICE inline bool DampedStep(const FitCurvature& curvature, const FitRanges& ranges,
                                         const double* x, double damping, double* next) {
  constexpr int kStride = kMaxFitParameters;
  bool free[kMaxFitParameters];
  for (int q = 0; q < kStride; ++q) {
    free[q] = q < ranges.moving && !(x[q] <= ranges.least[q] && curvature.g[q] < 0) &&
              !(x[q] >= ranges.most[q] && curvature.g[q] > 0);
  }
  // The system has a size known to compilers, so that devices solve it in registers. Parameters that do not
  // move have a row of the unit matrix.
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

// The fall of chi-square from x to `next` that H and g predict.
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
// Judges a step by its expected gain. `refused`: the gain that was expected of a refused step before it;
// infinity if there was none. A negative gain is that of a step cut to its ranges; more damping gives another
// step.
SPEXD_HOST_DEVICE inline StepVerdict JudgeStep(double expected, double refused) {
  if (expected >= 0 && expected < kEnoughGained) return StepVerdict::kEnds;
  const bool same = fabs(expected - refused) < kSameGain * refused;
  return expected > 0 && !same ? StepVerdict::kTried : StepVerdict::kSkipped;
}

// Subtracts the part that the continuum takes up: H -= G A^-1 G^T. G^T = D^T W J is [term,
// kMaxFitParameters], and `factor` is the Cholesky factor of A [term, term]. ProjectColumn turns column q of
// G^T into that of L^-1 G^T. Once all columns are done, ProjectElement changes H[q, p].
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

// The square roots of the diagonal of H's pseudo-inverse, over the parameters that are not at an end of their
// range. For the others, `errors` is unchanged, or infinite if chi-square would fall by more than
// kBeyondRange further on.
SPEXD_HOST_DEVICE inline void FitErrors(const FitCurvature& curvature, const FitRanges& ranges,
                                        const double* x, double* errors) {
  constexpr int kStride = kMaxFitParameters;
  constexpr double kMin = 1e-15;  // part of the largest eigenvalue; smaller ones are not determined
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
