// Broadening of a star's lines by rotation (Gray 2008, chapter 18).
#ifndef SPEXD_CORE_ANALYSIS_VELOCITY_ROTATION_H_
#define SPEXD_CORE_ANALYSIS_VELOCITY_ROTATION_H_

#include <cmath>
#include <vector>

#include "core/base/host_device.h"

namespace spexd {

// The kernel of rotation as a sum over Gauss's nodes for the weight sqrt(1 - x^2), which is part of the
// kernel. `reach`: that of the kernel, in samples. CPUs and devices share these functions.
struct RotationNode {
  double at, weight;  // position in samples from the centre; the weight is not normalised
};
SPEXD_HOST_DEVICE inline int RotationNodes(double reach) { return static_cast<int>(2 * reach) + 16; }
SPEXD_HOST_DEVICE inline RotationNode RotationNodeOf(int q, int nodes, double reach) {  // q = 1 .. nodes
  constexpr double kLimbDarkening = 0.6, kPi = 3.14159265358979323846;
  const double angle = kPi * q / (nodes + 1), sine = sin(angle);
  return {-reach * cos(angle), sine * sine * (2 * (1 - kLimbDarkening) + 0.5 * kPi * kLimbDarkening * sine)};
}
// Half of the filter's length, rounded down. It exceeds the kernel's reach, because the cardinal spline dies
// away beyond the kernel.
SPEXD_HOST_DEVICE inline int RotationHalf(double reach) { return static_cast<int>(ceil(reach)) + 14; }

// The filter that broadens the B-spline coefficients of a spectrum by rotation. Samples are `step` km/s
// apart; `vsini` is in km/s. The filter has an odd length and its centre in the middle. It is exact for the
// function that the spline represents, and therefore analytic in vsini^2 down to 0.
std::vector<double> RotationFilter(double vsini, double step);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_VELOCITY_ROTATION_H_
