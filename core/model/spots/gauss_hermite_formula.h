// The formula of a Gauss-Hermite spot, defined once for all engines (core/extract/README.md).
#ifndef SPEXD_CORE_MODEL_SPOTS_GAUSS_HERMITE_FORMULA_H_
#define SPEXD_CORE_MODEL_SPOTS_GAUSS_HERMITE_FORMULA_H_

#include <cmath>

#include "core/base/host_device.h"
#include "core/model/spots/stamp.h"

namespace spexd {

inline constexpr double kInvSqrt2Pi = 0.39894228040143267794;

// 0.5 erf(u / sqrt 2) is 0.5 - gaussian p(s) for u >= 0, where gaussian = exp(-u^2 / 2), s = u / (u + 4). The
// polynomial p minimises the largest error times the gaussian for u <= 9: 2e-18. For larger u, gaussian <
// 3e-18.
struct HalfErfPolynomial {
  static constexpr int kTerms = 16;
  // clang-format off
  double coefficients[kTerms] = {
      0.5, -1.595769121605729, 2.4042308783939399, -2.1065377701455534,
      0.87192493178477082, 0.10515933255820362, -0.2090876274458339, -0.02438441433516652,
      0.053957392879976529, 0.018208339907601071, -0.011745209706512404, -0.0090571708835708482,
      -0.0013891526337687437, 0.0035230134454983936, 0.0033516561147434662, -0.0024089713401681946};
  // clang-format on
};
// 0.5 erf(u / sqrt 2), to within 1.3e-16; gaussian = exp(-u^2 / 2).
SPEXD_HOST_DEVICE inline double HalfErf(double u, double gaussian) {
  constexpr HalfErfPolynomial p;
  const double magnitude = std::abs(u), s = magnitude / (magnitude + 4);
  double sum = 0;
  for (int k = HalfErfPolynomial::kTerms - 1; k >= 0; --k) sum = sum * s + p.coefficients[k];
  return std::copysign(0.5 - gaussian * sum, u);
}

// Passes the antiderivatives of He_k(u) exp(-u^2/2) / sqrt(2 pi) at u to `use(k, value)`, for k = 0..degree
// in order. They are half an erf, then -He_{k-1}(u) exp(-u^2/2) / sqrt(2 pi). cpu/spots/gauss_hermite.cc has
// the same recurrence for vectors.
template <typename Use>
SPEXD_HOST_DEVICE inline void Antiderivatives(int degree, double u, const Use& use) {
  const double gaussian = std::exp(-0.5 * u * u);
  double value = HalfErf(u, gaussian), hermite = -kInvSqrt2Pi * gaussian, previous = 0;
  for (int k = 0; k <= degree; ++k) {
    use(k, value);
    value = hermite;  // the antiderivative of degree k + 1: -He_k times the Gaussian
    const double next = u * hermite - k * previous;
    previous = hermite;
    hermite = next;
  }
}

// u at the lower edge of pixel `edge`; the last edge is the upper edge of the last pixel. `offset`: the
// centre relative to the spot's middle pixel.
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

// The exponent of the tail, whose value at scaled squared distance r2 = (dx scale_x)^2 + (dy scale_y)^2 is
// amplitude r2 / (core^2 + r2)^TailExponent(index).
SPEXD_HOST_DEVICE inline double TailExponent(double index) { return 1 + 0.5 * index; }
SPEXD_HOST_DEVICE inline double TailValue(double amplitude, double core, double index, double r2) {
  return amplitude * r2 / std::pow(core * core + r2, TailExponent(index));
}

// Whether a pixel lies within the core's cutoff (in sigma). (dx, dy): its centre relative to the spot's,
// pixels.
SPEXD_HOST_DEVICE inline bool IsWithinCutoff(double dx, double dy, double inverse_sigma_x,
                                             double inverse_sigma_y, double cutoff) {
  const double u = dx * inverse_sigma_x, v = dy * inverse_sigma_y;
  return u * u + v * v < cutoff * cutoff;
}

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_SPOTS_GAUSS_HERMITE_FORMULA_H_
