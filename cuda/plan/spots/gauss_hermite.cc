#include "cuda/plan/spots/gauss_hermite.h"

#include <algorithm>
#include <vector>

namespace spexd::cuda {
namespace {

std::vector<const LegendreTable*> SeriesOf(const GaussHermiteSpots& spots) {
  std::vector<const LegendreTable*> series;
  for (const GaussHermiteCore& core : spots.cores)
    series.insert(series.end(), {&core.sigma_x, &core.sigma_y});
  for (const GaussHermiteCore& core : spots.cores) {
    for (const GaussHermiteTerm& term : core.terms) series.push_back(&term.amplitude);
  }
  if (!spots.cutoff.empty()) series.push_back(&spots.cutoff);
  if (spots.has_tail()) {
    series.insert(series.end(), {&spots.tail_amplitude, &spots.tail_core, &spots.tail_index,
                                 &spots.tail_scale_x, &spots.tail_scale_y});
  }
  return series;
}

}  // namespace

GaussHermiteShape ShapeOf(const GaussHermiteSpots& spots) {
  GaussHermiteShape shape;
  shape.cores = static_cast<int>(spots.cores.size());
  for (int k = 0; k < shape.cores; ++k) {
    const GaussHermiteCore& core = spots.cores[static_cast<size_t>(k)];
    shape.degree =
        std::max(shape.degree, k * kSecondCoreDegree + std::max(core.max_degree_x, core.max_degree_y));
    shape.terms += static_cast<int>(core.terms.size());
  }
  shape.cutoff = !spots.cutoff.empty();
  shape.tail = spots.has_tail();
  shape.series = ShapeOf(SeriesOf(spots));
  return shape;
}

GaussHermiteArrays LayOutSpots(const GaussHermiteShape& shape, int fibres, Carver* carver) {
  GaussHermiteArrays arrays;
  arrays.shape = shape;
  arrays.series = LayOutSeries(shape.series, fibres, carver);
  arrays.degrees = carver->Take<int32_t>(2 * shape.terms);
  return arrays;
}

void PackSpots(const GaussHermiteSpots& spots, int fibres, const GaussHermiteArrays& to) {
  PackSeries(SeriesOf(spots), fibres, to.series);
  int32_t* degrees = to.degrees;
  for (size_t k = 0; k < spots.cores.size(); ++k) {
    const int first = static_cast<int>(k) * kSecondCoreDegree;
    for (const GaussHermiteTerm& term : spots.cores[k].terms) {
      *degrees++ = first + term.degree_x;
      *degrees++ = first + term.degree_y;
    }
  }
}

}  // namespace spexd::cuda
