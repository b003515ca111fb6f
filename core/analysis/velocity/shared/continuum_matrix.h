// The normal matrix of a continuum's coefficients, on processors and devices alike.
#ifndef SPEXD_CORE_ANALYSIS_VELOCITY_SHARED_CONTINUUM_MATRIX_H_
#define SPEXD_CORE_ANALYSIS_VELOCITY_SHARED_CONTINUUM_MATRIX_H_

#include "core/base/host_device.h"

namespace spexd {

// A [k, l] = (M[k + l] + M[|k - l|]) / 2 for M_n = sum of w m^2 T_n, with `prior` times A_00 added to its
// diagonal; rows `stride` apart. `moments`: M_0 .. M_2p.
SPEXD_HOST_DEVICE inline void ContinuumMatrix(const double* moments, int degree, double prior, double* a,
                                              int stride) {
  for (int k = 0; k <= degree; ++k) {
    for (int l = 0; l <= degree; ++l) {
      a[k * stride + l] = 0.5 * (moments[k + l] + moments[k > l ? k - l : l - k]);
    }
  }
  const double added = prior * a[0];
  for (int k = 0; k <= degree; ++k) a[k * stride + k] += added;
}

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_VELOCITY_SHARED_CONTINUUM_MATRIX_H_
