// The formula of a Gauss-Hermite spot, defined once for all engines (core/extract/README.md).
#ifndef SPEXD_CORE_MODEL_SPOTS_GAUSS_HERMITE_FORMULA_H_
#define SPEXD_CORE_MODEL_SPOTS_GAUSS_HERMITE_FORMULA_H_

#include <cmath>

#include "core/base/host_device.h"
#include "core/model/spots/stamp.h"

namespace spexd {

inline constexpr double kInvSqrt2 = 0.70710678118654752440;
inline constexpr double kInvSqrt2Pi = 0.39894228040143267794;

// Antiderivatives of He_k(u) exp(-u^2/2) / sqrt(2 pi) at u for k = 0..degree, passed in order to `use(k,
// value)`: half an erf, then -He_{k-1}(u) exp(-u^2/2) / sqrt(2 pi). (cpu/spots.cc has the same recurrence for
// vectors.)
template <typename Use>
SPEXD_HOST_DEVICE inline void Antiderivatives(int degree, double u, const Use& use) {
  double value = 0.5 * std::erf(u * kInvSqrt2);
  double hermite = -kInvSqrt2Pi * std::exp(-0.5 * u * u), previous = 0;
  for (int k = 0; k <= degree; ++k) {
    use(k, value);
    value = hermite;  // the antiderivative of degree k + 1: -He_k times the Gaussian
    const double next = u * hermite - k * previous;
    previous = hermite;
    hermite = next;
  }
}

// u at a pixel's lower edge; the edge after the last pixel ends it. `offset` is the centre relative to the
// spot's middle pixel.
SPEXD_HOST_DEVICE inline double EdgeAt(int edge, int middle, double offset, double inverse_sigma) {
  return (edge - middle - 0.5 - offset) * inverse_sigma;
}

// Integrals over the pixels of an axis of He_k(u) exp(-u^2/2) / sqrt(2 pi), u = (pixel - offset) / sigma, for
// k = 0..degree: out[k * stride + pixel]. REQUIRES: sigma > 0.
SPEXD_HOST_DEVICE inline void PixelIntegrals(int degree, const StampAxis& axis, double offset, double sigma,
                                             double* out, int stride) {
  const double inverse_sigma = 1 / sigma;
  for (int edge = 0; edge <= axis.size; ++edge) {
    // The antiderivative at this edge ends pixel edge - 1 and begins pixel edge.
    Antiderivatives(degree, EdgeAt(edge, axis.middle, offset, inverse_sigma), [=](int k, double value) {
      if (edge > 0) out[k * stride + edge - 1] = value - out[k * stride + edge - 1];
      if (edge < axis.size) out[k * stride + edge] = value;
    });
  }
}

// The tail at scaled squared distance r2 = (dx scale_x)^2 + (dy scale_y)^2 is
// amplitude r2 / (core^2 + r2)^TailExponent(index).
SPEXD_HOST_DEVICE inline double TailExponent(double index) { return 1 + 0.5 * index; }
SPEXD_HOST_DEVICE inline double TailValue(double amplitude, double core, double index, double r2) {
  return amplitude * r2 / std::pow(core * core + r2, TailExponent(index));
}

// Whether a pixel whose centre is (dx, dy) pixels from the spot's lies within the core's cutoff, in sigma.
SPEXD_HOST_DEVICE inline bool IsWithinCutoff(double dx, double dy, double inverse_sigma_x,
                                             double inverse_sigma_y, double cutoff) {
  const double u = dx * inverse_sigma_x, v = dy * inverse_sigma_y;
  return u * u + v * v < cutoff * cutoff;
}

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_SPOTS_GAUSS_HERMITE_FORMULA_H_
