// Cubic B-splines on a uniform grid (Unser 1999, IEEE Signal Processing Magazine 16(6), 22), for CPUs and
// devices.
#ifndef SPEXD_CORE_ANALYSIS_VELOCITY_SHARED_SPLINE_WEIGHTS_H_
#define SPEXD_CORE_ANALYSIS_VELOCITY_SHARED_SPLINE_WEIGHTS_H_

#include <array>

#include "core/base/host_device.h"

namespace spexd {

// The weights of the coefficients i - 1 .. i + 2 in the value at i + u, 0 <= u < 1.
template <typename Real>
SPEXD_HOST_DEVICE inline std::array<Real, 4> SplineWeights(Real u) {
  const Real v = 1 - u, u2 = u * u, u3 = u2 * u;
  return {v * v * v / 6, (4 - 6 * u2 + 3 * u3) / 6, (1 + 3 * u + 3 * u2 - 3 * u3) / 6, u3 / 6};
}
// The weights of the coefficients in the derivative by u.
template <typename Real>
SPEXD_HOST_DEVICE inline std::array<Real, 4> SplineSlopes(Real u) {
  const Real v = 1 - u, u2 = u * u, half = Real(0.5);
  return {-half * v * v, -2 * u + 3 * half * u2, half + u - 3 * half * u2, half * u2};
}

inline constexpr double kSplinePole = -0.26794919243112270647;  // sqrt(3) - 2

// The weight, in a coefficient, of a sample `distance` away on either side: the inverse of [1 4 1] / 6.
SPEXD_HOST_DEVICE inline double CardinalSpline(int distance) {
  double value = -6 * kSplinePole / (1 - kSplinePole * kSplinePole);
  for (int k = 0; k < distance; ++k) value *= kSplinePole;
  return value;
}
inline constexpr int kCardinalReach = 40;  // distance beyond which the weight is less than 1e-22

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_VELOCITY_SHARED_SPLINE_WEIGHTS_H_
