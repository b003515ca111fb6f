// Gauss-Hermite spots on a device.
#ifndef SPEXD_CUDA_PLAN_SPOTS_GAUSS_HERMITE_H_
#define SPEXD_CUDA_PLAN_SPOTS_GAUSS_HERMITE_H_

#include <cstdint>

#include "core/base/host_device.h"
#include "core/model/spots/gauss_hermite.h"
#include "cuda/memory/carver.h"
#include "cuda/plan/spots/series_arrays.h"

namespace spexd::cuda {

// Two cores are treated as one with more degrees: those of the second core are counted from here on.
inline constexpr int kSecondCoreDegree = kMaxTwoCoreDegree + 1;

struct GaussHermiteShape {
  int cores = 1;
  int degree = 0;  // the largest in x or y
  int terms = 0;   // of all cores
  bool cutoff = false, tail = false;
  // The order of the series: sigma_x and sigma_y of each core, the terms, the cutoff, and a tail's amplitude,
  // core, index, scale_x, scale_y.
  SeriesShape series;

  SPEXD_HOST_DEVICE int widths() const { return 2 * cores; }
};

// Passed to kernels by value.
struct GaussHermiteArrays {
  GaussHermiteShape shape;
  SeriesArrays series;
  int32_t* degrees;  // [term, 2]: degree_x, degree_y
};

GaussHermiteShape ShapeOf(const GaussHermiteSpots& spots);
GaussHermiteArrays LayOutSpots(const GaussHermiteShape& shape, int fibres, Carver* carver);
// REQUIRES: the arrays' memory is zero.
void PackSpots(const GaussHermiteSpots& spots, int fibres, const GaussHermiteArrays& to);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_PLAN_SPOTS_GAUSS_HERMITE_H_
