#include "core/analysis/sky/symmetric_band.h"

#include <lapacke.h>

#include <algorithm>

namespace spexd {

bool BandCholesky::Factor(const SymmetricBand& matrix) {
  const int64_t diagonals = matrix.shape(0), size = matrix.shape(1);
  lower_.Assign({size, diagonals});
  for (int64_t j = 0; j < size; ++j) {
    for (int64_t o = 0; o < diagonals && j + o < size; ++o) lower_(j, o) = matrix(o, j);
  }
  return LAPACKE_dpbtrf_work(LAPACK_COL_MAJOR, 'L', static_cast<lapack_int>(size),
                             static_cast<lapack_int>(diagonals - 1), lower_.data(),
                             static_cast<lapack_int>(diagonals)) == 0;
}

void BandCholesky::Solve(std::vector<double>* b) const {
  const lapack_int size = static_cast<lapack_int>(lower_.shape(0)),
                   diagonals = static_cast<lapack_int>(lower_.shape(1));
  LAPACKE_dpbtrs_work(LAPACK_COL_MAJOR, 'L', size, diagonals - 1, 1, lower_.data(), diagonals, b->data(),
                      size);
}

// A = L D L^T with unit L. The rows of Z = A^-1 follow from those below: Z[j, later] = -Z[later, later] l_j
// and Z[j, j] = 1 / D_j - l_j . Z[j, later].
SymmetricBand BandCholesky::SelectedInverse() const {
  const int64_t size = lower_.shape(0), half_band = lower_.shape(1) - 1;
  SymmetricBand inverse({half_band + 1, size});
  const auto element = [&](int64_t row, int64_t column) {  // an element within the band, in either triangle
    return row < column ? inverse(column - row, row) : inverse(row - column, column);
  };
  std::vector<double> factor(half_band);
  for (int64_t j = size - 1; j >= 0; --j) {
    const int64_t later = std::min(half_band, size - 1 - j);
    const double diagonal = lower_(j, 0);
    for (int64_t o = 1; o <= later; ++o) factor[o - 1] = lower_(j, o) / diagonal;
    double sum = 1 / (diagonal * diagonal);
    for (int64_t o = 1; o <= later; ++o) {
      double value = 0;
      for (int64_t q = 1; q <= later; ++q) value -= element(j + o, j + q) * factor[q - 1];
      inverse(o, j) = value;
      sum -= factor[o - 1] * value;
    }
    inverse(0, j) = sum;
  }
  return inverse;
}

}  // namespace spexd
