// The cell of a grid of templates that holds some parameters, on processors and devices alike.
#ifndef SPEXD_CORE_ANALYSIS_VELOCITY_SHARED_TEMPLATE_CELL_H_
#define SPEXD_CORE_ANALYSIS_VELOCITY_SHARED_TEMPLATE_CELL_H_

#include <cstdint>

#include "core/analysis/velocity/shared/fit_steps.h"
#include "core/base/host_device.h"

namespace spexd {

// Values of each parameter, ascending, two or more.
struct TemplateAxes {
  int count = 0;
  int size[kMaxTemplateParameters];
  const double* nodes[kMaxTemplateParameters];
};

// Where a value lies among those of a parameter.
struct AxisPosition {
  int node;         // the one below
  double u, width;  // beyond it, 0 to 1 of the width to the next
};
SPEXD_HOST_DEVICE inline AxisPosition PositionOnAxis(const TemplateAxes& axes, int k, double value) {
  const double* const axis = axes.nodes[k];
  int node = 0;
  while (node < axes.size[k] - 2 && axis[node + 1] <= value) ++node;
  const double width = axis[node + 1] - axis[node];
  return {node, (value - axis[node]) / width, width};
}

// A template at a corner of the cell: its weight, and the weight's derivatives by each parameter.
struct TemplateCorner {
  int64_t row = 0;
  double weight = 1;
  double slopes[kMaxTemplateParameters];
};

// Corner 0 .. 2^count - 1; the bit of the last parameter is the lowest.
SPEXD_HOST_DEVICE inline TemplateCorner CornerOf(const TemplateAxes& axes, const double* theta, int corner) {
  TemplateCorner to;
  for (int k = 0; k < axes.count; ++k) {
    const AxisPosition position = PositionOnAxis(axes, k, theta[k]);
    const int side = corner >> (axes.count - 1 - k) & 1;
    const double part = side == 0 ? 1 - position.u : position.u;
    to.row = to.row * axes.size[k] + position.node + side;
    for (int l = 0; l < k; ++l) to.slopes[l] *= part;
    to.slopes[k] = to.weight * (side == 0 ? -1 : 1) / position.width;
    to.weight *= part;
  }
  return to;
}

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_VELOCITY_SHARED_TEMPLATE_CELL_H_
