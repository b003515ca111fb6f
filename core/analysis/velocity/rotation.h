// Broadening of a star's lines by rotation (Gray 2008, chapter 18).
#ifndef SPEXD_CORE_ANALYSIS_VELOCITY_ROTATION_H_
#define SPEXD_CORE_ANALYSIS_VELOCITY_ROTATION_H_

#include <cmath>
#include <vector>

#include "core/base/host_device.h"

namespace spexd {

// The kernel of rotation as a sum over Gauss's nodes for the weight sqrt(1 - x^2), which is part of it.
// `reach`: of the kernel, in samples. Processors and devices share these.
struct RotationNode {
  double at, weight;  // samples from the centre; not normalised
};
SPEXD_HOST_DEVICE inline int RotationNodes(double reach) { return static_cast<int>(2 * reach) + 16; }
SPEXD_HOST_DEVICE inline RotationNode RotationNodeOf(int q, int nodes, double reach) {  // q: 1 .. nodes
  constexpr double kLimbDarkening = 0.6, kPi = 3.14159265358979323846;
  const double angle = kPi * q / (nodes + 1), sine = sin(angle);
  return {-reach * cos(angle), sine * sine * (2 * (1 - kLimbDarkening) + 0.5 * kPi * kLimbDarkening * sine)};
}
// Half of the filter's length, less a half: the cardinal spline dies away beyond the kernel.
SPEXD_HOST_DEVICE inline int RotationHalf(double reach) { return static_cast<int>(ceil(reach)) + 14; }

// The filter of an odd length, its centre in the middle, that rotates the B-spline coefficients of a spectrum
// whose samples are `step` km/s apart. It is analytic in vsini^2 down to 0, as it is exact for what the
// spline stands for. `vsini`: km/s.
std::vector<double> RotationFilter(double vsini, double step);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_VELOCITY_ROTATION_H_
