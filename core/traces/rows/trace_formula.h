// The formulas of a trace's course over rows, defined once for CPUs and GPUs.
#ifndef SPEXD_CORE_TRACES_ROWS_TRACE_FORMULA_H_
#define SPEXD_CORE_TRACES_ROWS_TRACE_FORMULA_H_

#include <cmath>

#include "core/base/host_device.h"
#include "core/model/traces/legendre.h"

namespace spexd::traces {

// The position of a trace at a row.
struct TracePosition {
  double x;  // column
  double t;  // wavelength, scaled to [-1, 1] over the domain of XTRACE and YTRACE
};

// A trace is stored at every kNodeRows-th row as kNodeValues values: x, dx/ds, t, dt/ds with s = row /
// kNodeRows. Between these nodes it is a cubic with these values and slopes.
inline constexpr int kNodeRows = 16;
inline constexpr int kNodeValues = 4;

SPEXD_HOST_DEVICE inline double TraceCubic(const double* a, double s) {
  const double rise = a[kNodeValues] - a[0];
  const double c2 = 3 * rise - 2 * a[1] - a[kNodeValues + 1], c3 = a[1] + a[kNodeValues + 1] - 2 * rise;
  return a[0] + s * (a[1] + s * (c2 + s * c3));
}
// The position at a row. `nodes` [node, value] are those of a fibre that reaches the row.
SPEXD_HOST_DEVICE inline TracePosition TraceAt(const double* nodes, int row) {
  const double* a = nodes + row / kNodeRows * kNodeValues;
  const double s = static_cast<double>(row % kNodeRows) / kNodeRows;
  return {TraceCubic(a, s), TraceCubic(a + 2, s)};
}

// Samples of a fibre's Y, which must increase: kTraceSamples wavelengths from end to end of the domain.
inline constexpr int kTraceSamples = 129;
SPEXD_HOST_DEVICE inline double TraceSampleAt(int sample) { return 2.0 * sample / (kTraceSamples - 1) - 1; }

// The rows of a CCD that a fibre's wavelengths reach, first <= row < end; none if first >= end.
struct RowRange {
  int first, end;
};
SPEXD_HOST_DEVICE inline RowRange RowsReached(double low, double high, int rows) {
  const double first = low > 0 ? (low < rows ? low : rows) : 0;
  const double last = high > -1 ? (high < rows - 1 ? high : rows - 1) : -1;
  return {static_cast<int>(std::ceil(first)), static_cast<int>(std::floor(last)) + 1};
}

// Finds the values of a node by Newton's method, from the samples of Y (row_at). `sample`: the last sample
// below the node's row or an earlier one; it is moved on. Returns false if the trace leaves all bounds.
SPEXD_HOST_DEVICE inline bool FindTraceNode(const double* x, int x_count, const double* y, int y_count,
                                            const double* row_at, int node, int* sample, double* values) {
  constexpr int kMaxNewtonSteps = 4;
  constexpr double kRowError = 1e-7;  // pixels; Newton's method ends at this error
  constexpr double kFarAway = 1e6;    // pixels; no trace on a CCD is as far or as steep
  const double row = node * kNodeRows;
  int k = *sample;
  while (k + 2 < kTraceSamples && row_at[k + 1] < row) ++k;
  *sample = k;
  double t = TraceSampleAt(k) +
             (row - row_at[k]) * (TraceSampleAt(k + 1) - TraceSampleAt(k)) / (row_at[k + 1] - row_at[k]);
  ValueAndSlope at = EvaluateLegendre(y, y_count, t);
  for (int step = 0; step < kMaxNewtonSteps && at.slope > 0 && std::fabs(at.value - row) > kRowError;
       ++step) {
    t += (row - at.value) / at.slope;
    at = EvaluateLegendre(y, y_count, t);
  }
  if (!(at.slope > 0) || !(std::fabs(at.value - row) < 1e-3)) return false;
  const ValueAndSlope column = EvaluateLegendre(x, x_count, t);
  if (!(std::fabs(column.value) < kFarAway && std::fabs(column.slope) < kFarAway)) return false;
  const double dt = kNodeRows / at.slope;
  values[0] = column.value;
  values[1] = column.slope * dt;
  values[2] = t;
  values[3] = dt;
  return true;
}

}  // namespace spexd::traces

#endif  // SPEXD_CORE_TRACES_ROWS_TRACE_FORMULA_H_
