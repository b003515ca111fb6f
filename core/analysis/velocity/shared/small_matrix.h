// Small dense systems for the fit of a star, on CPUs and devices. Matrices are symmetric [size, size], with
// rows `stride` apart.
#ifndef SPEXD_CORE_ANALYSIS_VELOCITY_SHARED_SMALL_MATRIX_H_
#define SPEXD_CORE_ANALYSIS_VELOCITY_SHARED_SMALL_MATRIX_H_

#include <cmath>

#include "core/base/host_device.h"

namespace spexd {

// Solves A x = b for a positive definite A. Its Cholesky factor L replaces the lower triangle of A, and x
// replaces b. Returns false if A is not positive definite. Millions of 4 x 4 systems are solved, for which
// calls of LAPACK would take longer than the arithmetic.
SPEXD_HOST_DEVICE inline bool SolvePositive(double* a, int stride, int size, double* b) {
  for (int k = 0; k < size; ++k) {
    const double pivot = a[k * stride + k];
    if (!(pivot > 0)) return false;
    const double root = sqrt(pivot), inverse = 1 / root;
    a[k * stride + k] = root;
    b[k] *= inverse;
    for (int l = k + 1; l < size; ++l) {
      const double value = a[l * stride + k] *= inverse;
      b[l] -= value * b[k];
      for (int m = k + 1; m <= l; ++m) a[l * stride + m] -= value * a[m * stride + k];
    }
  }
  for (int k = size - 1; k >= 0; --k) {
    for (int m = k + 1; m < size; ++m) b[k] -= a[m * stride + k] * b[m];
    b[k] /= a[k * stride + k];
  }
  return true;
}

// Diagonalises A by Jacobi's rotations. The diagonal becomes the eigenvalues, and the columns of `vectors`
// the eigenvectors.
SPEXD_HOST_DEVICE inline void Diagonalize(double* a, double* vectors, int stride, int size) {
  constexpr int kMaxSweeps = 30;
  for (int q = 0; q < size; ++q) {
    for (int p = 0; p < size; ++p) vectors[q * stride + p] = q == p ? 1 : 0;
  }
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    bool changed = false;
    for (int p = 0; p < size; ++p) {
      for (int q = p + 1; q < size; ++q) {
        const double off = a[p * stride + q], at_p = a[p * stride + p], at_q = a[q * stride + q];
        if (!(fabs(off) > 1e-17 * sqrt(fabs(at_p) * fabs(at_q)))) continue;
        changed = true;
        const double theta = (at_q - at_p) / (2 * off);
        const double t = (theta >= 0 ? 1 : -1) / (fabs(theta) + sqrt(theta * theta + 1));
        const double c = 1 / sqrt(t * t + 1), s = t * c;
        for (int k = 0; k < size; ++k) {
          const double kp = a[k * stride + p], kq = a[k * stride + q];
          a[k * stride + p] = c * kp - s * kq;
          a[k * stride + q] = s * kp + c * kq;
        }
        for (int k = 0; k < size; ++k) {
          const double pk = a[p * stride + k], qk = a[q * stride + k];
          a[p * stride + k] = c * pk - s * qk;
          a[q * stride + k] = s * pk + c * qk;
          const double kp = vectors[k * stride + p], kq = vectors[k * stride + q];
          vectors[k * stride + p] = c * kp - s * kq;
          vectors[k * stride + q] = s * kp + c * kq;
        }
      }
    }
    if (!changed) return;
  }
}

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_VELOCITY_SHARED_SMALL_MATRIX_H_
