// The formulas of a fit of lines, defined once for CPUs and GPUs: from sums over rows to parameters.
#ifndef SPEXD_CORE_TRACES_LIGHT_LINE_FORMULA_H_
#define SPEXD_CORE_TRACES_LIGHT_LINE_FORMULA_H_

#include <cmath>

#include "core/base/host_device.h"
#include "core/traces/light/line_fit.h"
#include "core/traces/shifts/small_cholesky.h"

namespace spexd::traces {

// Weighted sums over rows of products of m, 1, z, dm with each other and with the flux.
struct LineSums {
  double normal[4][4];
  double right[4];
};

// Parameters of m, 1, z, dm and their variances.
struct LineSolution {
  double parameter[4], variance[4];
};

// Solves for the parameters. REQUIRES: the sum of weights, normal[1][1], is above 0.
SPEXD_HOST_DEVICE inline LineSolution SolveLines(const LineSums& sums) {
  LineSolution solution = {};
  double scale[4], inverse[16];
  for (int a = 0; a < 4; ++a) {
    scale[a] = std::sqrt(sums.normal[a][a] < 1e-200 ? 1e-200 : sums.normal[a][a]);
  }
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < 4; ++b) inverse[4 * a + b] = sums.normal[a][b] / scale[a] / scale[b];
    inverse[5 * a] += 1e-9;
  }
  InvertPositive(inverse, 4);
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < 4; ++b) solution.parameter[a] += inverse[4 * a + b] * sums.right[b] / scale[b];
    solution.parameter[a] /= scale[a];
    solution.variance[a] = inverse[5 * a] / (scale[a] * scale[a]);
  }
  return solution;
}

// Whether a row, at z in the stretch, is an outlier of the first fit.
SPEXD_HOST_DEVICE inline bool IsLineOutlier(const LineSolution& fit, double flux, double weight, double model,
                                            double z, double slope) {
  constexpr double kClip = 6;          // standard deviations
  constexpr double kModelError = 0.1;  // part of the model
  const double light = fit.parameter[0] * model;
  const double left = flux - light - fit.parameter[1] - fit.parameter[2] * z - fit.parameter[3] * slope;
  const double error = kModelError * light;
  // Both sides are multiplied by the weight.
  return weight * left * left >= kClip * kClip * (1 + weight * error * error);
}

SPEXD_HOST_DEVICE inline LineFit LineFitOf(const LineSolution& solution, int used) {
  LineFit fit;
  fit.amplitude = solution.parameter[0];
  fit.amplitude_info = 1 / solution.variance[0];
  fit.moment = solution.parameter[3];
  fit.moment_info = 1 / solution.variance[3];
  fit.used = used;
  return fit;
}

}  // namespace spexd::traces

#endif  // SPEXD_CORE_TRACES_LIGHT_LINE_FORMULA_H_
