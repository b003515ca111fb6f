// The cell of a grid of templates that contains given parameters, for CPUs and devices.
#ifndef SPEXD_CORE_ANALYSIS_VELOCITY_SHARED_TEMPLATE_CELL_H_
#define SPEXD_CORE_ANALYSIS_VELOCITY_SHARED_TEMPLATE_CELL_H_

#include <cstdint>

#include "core/analysis/velocity/shared/fit_steps.h"
#include "core/base/host_device.h"

namespace spexd {

// The grid's values of each parameter: two or more, ascending.
struct TemplateAxes {
  int count = 0;
  int size[kMaxTemplateParameters];
  const double* nodes[kMaxTemplateParameters];
};

// The position of a value among the grid's values of a parameter.
struct AxisPosition {
  int node;         // the grid value below
  double u, width;  // distance beyond the node, 0 to 1; distance to the next node
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

// Corner 0 .. 2^count - 1 of the cell. The lowest bit of the number is the side along the last parameter.
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
