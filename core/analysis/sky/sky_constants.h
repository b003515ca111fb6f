// Constants of the fit of the sky, shared by every engine.
#ifndef SPEXD_CORE_ANALYSIS_SKY_SKY_CONSTANTS_H_
#define SPEXD_CORE_ANALYSIS_SKY_SKY_CONSTANTS_H_

#include "core/base/host_device.h"

namespace spexd {

// ---- The deconvolved sky
inline constexpr double kSkyPrior = 1e-9;  // part of the median of A's diagonal
inline constexpr int kMaxSkyRounds = 20;
// The limit on a sky fibre's median residual, in robust sigma of those of all sky fibres. A fibre above it is
// dropped if there are at least kMinSkyMedians medians.
inline constexpr double kMaxSkyMedian = 7 * 1.48;
inline constexpr int kMinSkyMedians = 3;
// The number of sky values with which a bin has a sky. With few sky fibres, half as many values as fibres are
// enough.
inline constexpr int kEnoughSkyValues = 10;
SPEXD_HOST_DEVICE constexpr int LeastSkyValues(int sky_fibres) {
  const int half = sky_fibres / 2;
  return half < 1 ? 1 : half < kEnoughSkyValues ? half : kEnoughSkyValues;
}

// ---- Bright lines
inline constexpr double kMinPeak = 0.1;              // part of the highest peak
inline constexpr double kSkyScatter = 0.005;         // part of the sky; this scatter is always allowed for
inline constexpr int kPeakCore = 2, kPeakReach = 3;  // bins on each side: to fit, to get the variance
// The limits of errors of the sky: residuals beyond 3 sigma of a variance that is certainly large enough are
// no errors of the sky.
inline constexpr double kMaxScatter = 0.2, kMaxShift = 0.5, kMaxResidual = 9;
// Errors of a line's wavelength to try, Angstrom: multiples of the step below the largest.
inline constexpr double kShiftStep = 0.005, kMaxShiftTried = 2;
inline constexpr int kShifts = 399;
inline constexpr double kMedianOfChi2 = 0.7888;  // roughly, for the mean of 5 independent squares

// ---- The scale of bright lines in each fibre.
inline constexpr double kLineHalf = 4, kLineContinuumHalf = 2;  // Angstrom on each side of a peak
inline constexpr double kInlierScatter = 0.02;  // scatter of a line's scale for which it is not rejected
inline constexpr double kMaxThroughputVariance = 0.01;
inline constexpr double kMedianToSigma = 1.4826;

SPEXD_HOST_DEVICE constexpr double SquareOf(double x) { return x * x; }
SPEXD_HOST_DEVICE constexpr double ShiftTried(int k) { return kShiftStep + k * kShiftStep; }
// Whether a bin's squared residual may be an error of the sky. `known`: the variance without such errors.
SPEXD_HOST_DEVICE constexpr bool MayBeSky(double residual, double known, double sky, double slope) {
  return SquareOf(residual) <=
         kMaxResidual * (known + SquareOf(kMaxScatter * sky) + SquareOf(kMaxShift * slope));
}
// The variance that a line with an error `shift` of its wavelength adds.
SPEXD_HOST_DEVICE constexpr double ShiftVariance(double sky, double shift, double slope) {
  return SquareOf(kSkyScatter * sky) + SquareOf(shift * slope);
}

// A line's scale in a fibre, b of flux = a + b model, and its variance, from the sums of w, w m, w m^2, w f
// and w f m over the line's bins. A variance of 0 means that the data do not determine the scale.
struct LineScale {
  double scale = 1, variance = 0;
};
SPEXD_HOST_DEVICE constexpr LineScale ScaleOfSums(double s0, double s1, double s2, double f0, double f1) {
  if (!(s0 > 0)) return {};
  const double information = s2 - s1 * s1 / s0;
  if (!(information > 0)) return {};
  return {(f1 - f0 * s1 / s0) / information, 1 / information};
}
// A fibre's scale, shrunk towards 1. `scatter`: the variance of all scales that is not noise.
SPEXD_HOST_DEVICE constexpr double ShrunkScale(LineScale scale, double scatter) {
  return 1 + (scale.scale - 1) * scatter / (scatter + scale.variance);
}

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_SKY_SKY_CONSTANTS_H_
