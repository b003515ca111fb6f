// Inverses of small symmetric positive definite matrices.
#ifndef SPEXD_CORE_TRACES_SHIFTS_SMALL_CHOLESKY_H_
#define SPEXD_CORE_TRACES_SHIFTS_SMALL_CHOLESKY_H_

#include <cmath>
#include <cstddef>
#include <vector>

#include "core/base/host_device.h"

namespace spexd {

// A diagonal entry of the factor. `left`: what remains of the matrix's own entry. If rounding has made it
// less than 1e-14 of that entry, it is raised to this.
SPEXD_HOST_DEVICE inline double PositivePivot(double left, double diagonal) {
  return std::sqrt(left > 1e-14 * diagonal ? left : diagonal > 0 ? 1e-14 * diagonal : 1);
}

// Inverts `matrix` [n, n] in place. Its lower triangle is read; the whole inverse is written.
SPEXD_HOST_DEVICE inline void InvertPositive(double* matrix, size_t n) {
  for (size_t k = 0; k < n; ++k) {
    const double diagonal = matrix[k * n + k];
    for (size_t l = 0; l <= k; ++l) {
      double sum = matrix[k * n + l];
      for (size_t m = 0; m < l; ++m) sum -= matrix[k * n + m] * matrix[l * n + m];
      if (l < k) {
        matrix[k * n + l] = sum / matrix[l * n + l];
      } else {
        matrix[k * n + k] = PositivePivot(sum, diagonal);
      }
    }
  }
  // Inverts the factor row by row, then the matrix: the transpose of that inverse times itself.
  for (size_t k = 0; k < n; ++k) {
    const double scale = 1 / matrix[k * n + k];
    for (size_t l = 0; l < k; ++l) {
      double sum = 0;
      for (size_t m = l; m < k; ++m) sum += matrix[k * n + m] * matrix[m * n + l];
      matrix[k * n + l] = -sum * scale;
    }
    matrix[k * n + k] = scale;
  }
  for (size_t k = 0; k < n; ++k) {
    for (size_t l = 0; l <= k; ++l) {
      double sum = 0;
      for (size_t m = k; m < n; ++m) sum += matrix[m * n + k] * matrix[m * n + l];
      matrix[k * n + l] = sum;  // rows below still hold the inverse of the factor
    }
  }
  for (size_t k = 0; k < n; ++k) {
    for (size_t l = k + 1; l < n; ++l) matrix[k * n + l] = matrix[l * n + k];
  }
}

inline std::vector<double> InverseOfPositive(std::vector<double> matrix, size_t n) {
  InvertPositive(matrix.data(), n);
  return matrix;
}

}  // namespace spexd

#endif  // SPEXD_CORE_TRACES_SHIFTS_SMALL_CHOLESKY_H_
