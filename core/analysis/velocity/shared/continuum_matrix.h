// The normal matrix of a continuum's coefficients, for CPUs and devices.
#ifndef SPEXD_CORE_ANALYSIS_VELOCITY_SHARED_CONTINUUM_MATRIX_H_
#define SPEXD_CORE_ANALYSIS_VELOCITY_SHARED_CONTINUUM_MATRIX_H_

#include "core/base/host_device.h"

namespace spexd {

// Element A [k, l] = (M[k + l] + M[|k - l|]) / 2 for M_n = sum of w m^2 T_n, with `prior` times A_00 added on
// the diagonal. `moments`: M_0 .. M_2p.
SPEXD_HOST_DEVICE inline double ContinuumElement(const double* moments, double prior, int k, int l) {
  const double value = 0.5 * (moments[k + l] + moments[k > l ? k - l : l - k]);
  return k == l ? value + prior * moments[0] : value;
}
// Fills in the whole matrix, with rows `stride` apart.
SPEXD_HOST_DEVICE inline void ContinuumMatrix(const double* moments, int degree, double prior, double* a,
                                              int stride) {
  for (int k = 0; k <= degree; ++k) {
    for (int l = 0; l <= degree; ++l) a[k * stride + l] = ContinuumElement(moments, prior, k, l);
  }
}

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_VELOCITY_SHARED_CONTINUUM_MATRIX_H_
