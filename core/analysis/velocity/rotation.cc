#include "core/analysis/velocity/rotation.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "core/analysis/velocity/cubic_spline.h"

namespace spexd {
std::vector<double> RotationFilter(double vsini, double step) {
  const double reach = vsini / step;  // reach of the kernel, in samples
  const int nodes = RotationNodes(reach), half = RotationHalf(reach);
  const int64_t size = 2 * half + 1;
  std::vector<double> splines(size, 0);  // the kernel in B-splines
  double total = 0;
  for (int q = 1; q <= nodes; ++q) {
    const RotationNode node = RotationNodeOf(q, nodes, reach);
    const double floor = std::floor(node.at);
    const std::array<double, 4> parts = SplineWeights(node.at - floor);
    for (int k = 0; k < 4; ++k) splines[static_cast<int64_t>(floor) + k - 1 + half] += node.weight * parts[k];
    total += node.weight;
  }
  // Coefficients are samples multiplied by the inverse of [1 4 1] / 6.
  std::vector<double> cardinal(size);
  for (int l = 0; l < size; ++l) cardinal[l] = CardinalSpline(std::abs(l - half));
  std::vector<double> filter(size, 0);
  for (int64_t l = 0; l < size; ++l) {
    for (int64_t m = 0; m < size; ++m) {
      const int64_t from = l - m + half;
      if (from >= 0 && from < size) filter[l] += splines[m] / total * cardinal[from];
    }
  }
  return filter;
}

}  // namespace spexd
