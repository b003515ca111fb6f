// Legendre polynomials L_0, L_1, ... at one position, their derivatives, and sums of them.
#ifndef SPEXD_CORE_MODEL_TRACES_LEGENDRE_H_
#define SPEXD_CORE_MODEL_TRACES_LEGENDRE_H_

#include "absl/types/span.h"
#include "core/base/host_device.h"

namespace spexd {

// value[k] = L_k(t) for k = 0 .. count - 1.
SPEXD_HOST_DEVICE inline void LegendreValues(double t, int count, double* value) {
  if (count > 0) value[0] = 1;
  if (count > 1) value[1] = t;
  for (int k = 2; k < count; ++k) {
    value[k] = ((2 * k - 1) * t * value[k - 1] - (k - 1) * value[k - 2]) / k;
  }
}

struct ValueAndSlope {
  double value = 0;
  double slope = 0;
};

// Sums coeff[k] L_k(t) over k, and its derivative with respect to t, by Clenshaw's recurrence and its
// derivative. Add takes the coefficients from the last one to that of k = 1; End takes coeff[0].
struct LegendreSum {
  double b1 = 0, b2 = 0, d1 = 0, d2 = 0;

  SPEXD_HOST_DEVICE void Add(int k, double coeff, double t) {
    const double rise = (2.0 * k + 1) / (k + 1), fall = (k + 1.0) / (k + 2);
    const double b0 = coeff + rise * t * b1 - fall * b2;
    const double d0 = rise * (b1 + t * d1) - fall * d2;
    b2 = b1;
    b1 = b0;
    d2 = d1;
    d1 = d0;
  }
  SPEXD_HOST_DEVICE ValueAndSlope End(double coeff, double t) const {
    return {coeff + t * b1 - 0.5 * b2, b1 + t * d1 - 0.5 * d2};
  }
};

// The sum of coeff[k] L_k(t) and its slope. REQUIRES: count > 0.
SPEXD_HOST_DEVICE inline ValueAndSlope EvaluateLegendre(const double* coeff, int count, double t) {
  LegendreSum sum;
  for (int k = count - 1; k > 0; --k) sum.Add(k, coeff[k], t);
  return sum.End(coeff[0], t);
}
inline ValueAndSlope EvaluateLegendre(absl::Span<const double> coeff, double t) {
  return EvaluateLegendre(coeff.data(), static_cast<int>(coeff.size()), t);
}

// The amount that a series of shifts c [rows, columns] adds to coefficient b of a fibre's trace: sum_a c(a,
// b) L_a(u). `basis`: L_a at the fibre's u.
SPEXD_HOST_DEVICE inline double ShiftOfCoefficient(const double* series, int rows, int columns, int b,
                                                   const double* basis) {
  double shift = 0;
  for (int a = 0; a < rows; ++a) shift += series[a * columns + b] * basis[a];
  return shift;
}

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_TRACES_LEGENDRE_H_
