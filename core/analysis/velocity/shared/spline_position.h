// The position of a wavelength in a library's samples at a velocity, for CPUs and devices.
#ifndef SPEXD_CORE_ANALYSIS_VELOCITY_SHARED_SPLINE_POSITION_H_
#define SPEXD_CORE_ANALYSIS_VELOCITY_SHARED_SPLINE_POSITION_H_

#include <cmath>

#include "core/analysis/velocity_units.h"
#include "core/base/host_device.h"

namespace spexd {

// A velocity's `shift` of ln wavelength; `slope`, the derivative of a position, in samples, by the velocity
// (per km/s); and `samples`, their number in a unit of ln wavelength.
struct VelocityShift {
  double shift, slope, samples;
};
SPEXD_HOST_DEVICE inline VelocityShift ShiftOf(double velocity, double step) {
  const double beta = velocity / kLightSpeed;
  return {0.5 * log((1 - beta) / (1 + beta)), -1 / (kLightSpeed * (1 - beta * beta) * step), 1 / step};
}

struct SplinePosition {
  int sample;  // i of the taps i - 1 .. i + 2, all of which exist
  double u;    // distance beyond the sample, 0 to 1
};
SPEXD_HOST_DEVICE inline SplinePosition PositionOf(double log_wave, const VelocityShift& shift, double first,
                                                   int samples) {
  const double at = (log_wave + shift.shift - first) * shift.samples;
  int sample = static_cast<int>(floor(at));
  if (sample < 1) sample = 1;  // rounding may lead off the ends
  if (sample > samples - 3) sample = samples - 3;
  return {sample, at - sample};
}

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_VELOCITY_SHARED_SPLINE_POSITION_H_
