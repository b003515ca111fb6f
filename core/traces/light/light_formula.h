// The formulas of the common spectrum and of lines, defined once for CPUs and GPUs.
#ifndef SPEXD_CORE_TRACES_LIGHT_LIGHT_FORMULA_H_
#define SPEXD_CORE_TRACES_LIGHT_LIGHT_FORMULA_H_

#include "core/base/host_device.h"

namespace spexd::traces {

inline constexpr int kLightRounds = 2;  // number of solutions for the common spectrum
inline constexpr int kLightChunk = 25;  // number of fibres whose sums are made together

// The weight of a row. `beyond`: the typical residual of the rows times target_error (TraceShiftOptions).
SPEXD_HOST_DEVICE inline float TargetWeight(float ivar, float beyond) {
  return ivar > 0 ? ivar / (1 + ivar * beyond * beyond) : 0;
}

// Whether a fibre's part of the common spectrum is well known.
SPEXD_HOST_DEVICE inline bool IsThroughputKnown(double throughput, double info) {
  constexpr double kMinThroughput = 0.2;
  constexpr double kMinThroughputInfo = 100;  // throughput^2 / variance
  return throughput > kMinThroughput && throughput * throughput * info > kMinThroughputInfo;
}
// The least info, 1 / pixels^2, of shifts against the common spectrum and against lines.
inline constexpr double kMinCommonInfo = 0.25;  // an error below 2 pixels
inline constexpr double kMinLineInfo = 0.05;

// P_b / P_0, from P_b of the common spectrum (`hermite`), the fibre's part of that spectrum, its flux, and
// the model of the flux.
SPEXD_HOST_DEVICE inline float BesideLines(float hermite, float part, float flux, float model) {
  const float light = part * (model > 0 ? model : 0.0f), total = flux > light ? flux : light;
  if (!(total > 0)) return 0;
  const float ratio = hermite * part / total;
  return ratio < -1 ? -1.0f : ratio > 1 ? 1.0f : ratio;
}

// The robust mean over fibres of a line's amplitude.
inline constexpr int kMeanRounds = 5;
// Whether an amplitude takes part in the next round of the mean.
SPEXD_HOST_DEVICE inline bool IsNearMean(double amplitude, double info, double mean) {
  constexpr double kMeanClip = 4;           // standard deviations
  constexpr double kAmplitudeSpread = 0.3;  // part by which the amplitudes of fibres differ
  const double spread = kAmplitudeSpread * mean, off = amplitude - mean;
  return off * off < kMeanClip * kMeanClip * (1 / info + spread * spread);
}

// The scan for a shift in y.
inline constexpr double kScanStep = 0.25;  // pixels
inline constexpr int kContinuumBins = 41;

}  // namespace spexd::traces

#endif  // SPEXD_CORE_TRACES_LIGHT_LIGHT_FORMULA_H_
