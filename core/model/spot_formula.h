// The PSF's formula, once, for every engine: one spot of a GAUSS-HERMITE PSF (core/extract/README.md).
#ifndef SPEXD_CORE_MODEL_SPOT_FORMULA_H_
#define SPEXD_CORE_MODEL_SPOT_FORMULA_H_

#include <cmath>

#include "core/base/host_device.h"

namespace spexd {

// First pixel of a spot centred at `centre` (integer coordinates are pixel centres) that reaches `half`
// pixels each way.
SPEXD_HOST_DEVICE inline double FirstPixel(double centre, int half) {
  return std::floor(centre - half + 0.5);
}

// Integrals over the 2 half + 1 pixels of He_k(u) exp(-u^2/2) / sqrt(2 pi), u = (pixel - offset) / sigma, for
// k = 0..degree; `offset` is the centre relative to the spot's middle pixel. out[k * stride + pixel].
// REQUIRES: sigma > 0. Degree 0 is a difference of erf; degree k >= 1 one of -He_{k-1}(u) exp(-u^2/2) /
// sqrt(2 pi).
SPEXD_HOST_DEVICE inline void PixelIntegrals(int degree, int half, double offset, double sigma, double* out,
                                             int stride) {
  constexpr double kInvSqrt2 = 0.70710678118654752440;
  constexpr double kInvSqrt2Pi = 0.39894228040143267794;
  const double inverse_sigma = 1 / sigma;
  const int pixels = 2 * half + 1;
  for (int edge = 0; edge <= pixels; ++edge) {
    const double u = (edge - half - 0.5 - offset) * inverse_sigma;
    // The antiderivative at this edge ends pixel edge - 1 and begins pixel edge.
    double value = 0.5 * std::erf(u * kInvSqrt2);
    double hermite = -kInvSqrt2Pi * std::exp(-0.5 * u * u), previous = 0;
    for (int k = 0; k <= degree; ++k) {
      if (edge > 0) out[k * stride + edge - 1] = value - out[k * stride + edge - 1];
      if (edge < pixels) out[k * stride + edge] = value;
      value = hermite;  // the antiderivative of degree k + 1: -He_k times the Gaussian
      const double next = u * hermite - k * previous;
      previous = hermite;
      hermite = next;
    }
  }
}

// The tail at scaled squared distance r2 = (dx scale_x)^2 + (dy scale_y)^2.
SPEXD_HOST_DEVICE inline double TailValue(double amplitude, double core, double index, double r2) {
  return amplitude * r2 / std::pow(core * core + r2, 1 + 0.5 * index);
}

// A spot must have a positive, finite sum to be normalised; one that has not (a width that is not positive
// where a series is extrapolated) is empty, and its bin NODATA.
SPEXD_HOST_DEVICE inline double SpotScale(double sum) { return sum > 0 && std::isfinite(sum) ? 1 / sum : 0; }

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_SPOT_FORMULA_H_
