// The value of a band-limited spectrum between the centres of its bins, as a sum over the surrounding bins.
#ifndef SPEXD_CORE_ANALYSIS_COADD_SHIFT_TAPS_H_
#define SPEXD_CORE_ANALYSIS_COADD_SHIFT_TAPS_H_

#include <cmath>
#include <cstdint>
#include <numbers>

#include "core/analysis/velocity_units.h"
#include "core/model/low_pass.h"
#include "core/model/wavelength_grid.h"

namespace spexd {

inline constexpr int kShiftHalf = 8;  // number of bins on each side of the nearest one
inline constexpr int kShiftTaps = 2 * kShiftHalf + 1;

// The taps of a windowed sinc, whose weights sum to 1. Bins first .. first + kShiftTaps - 1 may lie outside
// the spectrum.
struct ShiftTaps {
  int64_t first;
  double weight[kShiftTaps];
};

// The taps for a position in bins from the centre of bin 0. REQUIRES: the position is finite.
inline ShiftTaps TapsAt(double position) {
  const double nearest = std::nearbyint(position);
  ShiftTaps taps = {static_cast<int64_t>(nearest) - kShiftHalf, {}};
  double sum = 0;
  for (int t = 0; t < kShiftTaps; ++t) {
    const double x = position - nearest - (t - kShiftHalf), at = std::numbers::pi * x;
    taps.weight[t] = (x == 0 ? 1 : std::sin(at) / at) * KaiserWindow(x / (kShiftHalf + 1));
    sum += taps.weight[t];
  }
  for (double& weight : taps.weight) weight /= sum;
  return taps;
}

// The position, in bins of the coadd's grid, of light that an exposure's grid has at a bin. `velocity`, km/s:
// the exposure sees light of wavelength w at w sqrt((1 + v/c) / (1 - v/c)).
inline double PositionInCoadd(const WavelengthGrid& exposure, int64_t bin, double velocity,
                              const WavelengthGrid& coadd) {
  const double beta = velocity / kLightSpeed,
               wave = exposure.first + static_cast<double>(bin) * exposure.step;
  return (wave * std::sqrt((1 - beta) / (1 + beta)) - coadd.first) / coadd.step;
}

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_COADD_SHIFT_TAPS_H_
