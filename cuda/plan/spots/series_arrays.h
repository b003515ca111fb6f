// Legendre series of all fibres on a device.
#ifndef SPEXD_CUDA_PLAN_SPOTS_SERIES_ARRAYS_H_
#define SPEXD_CUDA_PLAN_SPOTS_SERIES_ARRAYS_H_

#include "absl/types/span.h"
#include "core/model/traces/traces.h"
#include "cuda/memory/carver.h"

namespace spexd::cuda {

struct SeriesShape {
  int count = 0;         // series of a fibre
  int coefficients = 0;  // length of the longest; shorter ones are filled with zeros
};

// Passed to kernels by value.
struct SeriesArrays {
  SeriesShape shape;
  double* domains;       // [series, 2]: wave_min, wave_max
  double* coefficients;  // [fibre, series, coefficient]
};

// Tables may be empty, as in an outline.
SeriesShape ShapeOf(absl::Span<const LegendreTable* const> tables);
SeriesArrays LayOutSeries(const SeriesShape& shape, int fibres, Carver* carver);
// REQUIRES: the arrays' memory is zero.
void PackSeries(absl::Span<const LegendreTable* const> tables, int fibres, const SeriesArrays& to);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_PLAN_SPOTS_SERIES_ARRAYS_H_
