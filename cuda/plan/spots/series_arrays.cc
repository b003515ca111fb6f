#include "cuda/plan/spots/series_arrays.h"

#include <algorithm>
#include <cstdint>

namespace spexd::cuda {

SeriesShape ShapeOf(absl::Span<const LegendreTable* const> tables) {
  SeriesShape shape = {static_cast<int>(tables.size()), 0};
  for (const LegendreTable* table : tables)
    shape.coefficients = std::max(shape.coefficients, static_cast<int>(table->coeff.shape(1)));
  return shape;
}

SeriesArrays LayOutSeries(const SeriesShape& shape, int fibres, Carver* carver) {
  SeriesArrays arrays;
  arrays.shape = shape;
  arrays.domains = carver->Take<double>(2 * shape.count);
  arrays.coefficients = carver->Take<double>(int64_t{fibres} * shape.count * shape.coefficients);
  return arrays;
}

void PackSeries(absl::Span<const LegendreTable* const> tables, int fibres, const SeriesArrays& to) {
  for (size_t s = 0; s < tables.size(); ++s) {
    to.domains[2 * s] = tables[s]->wave_min;
    to.domains[2 * s + 1] = tables[s]->wave_max;
    for (int i = 0; i < fibres; ++i) {
      const int64_t at = (int64_t{i} * to.shape.count + static_cast<int64_t>(s)) * to.shape.coefficients;
      std::ranges::copy(tables[s]->coeff.Row(i), to.coefficients + at);
    }
  }
}

}  // namespace spexd::cuda
