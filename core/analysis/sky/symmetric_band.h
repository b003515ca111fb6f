// A symmetric positive definite band matrix: its Cholesky factor, solutions with it, and the band of its
// inverse.
#ifndef SPEXD_CORE_ANALYSIS_SKY_SYMMETRIC_BAND_H_
#define SPEXD_CORE_ANALYSIS_SKY_SYMMETRIC_BAND_H_

#include <cstdint>
#include <vector>

#include "core/base/array.h"

namespace spexd {

// A band matrix: [o, j] is A[j, j + o], o = 0..half_band. Entries beyond the matrix are 0.
using SymmetricBand = Array<double, 2>;

class BandCholesky {
 public:
  // Factors a matrix. Returns false if it is not positive definite; then no other function may be called.
  bool Factor(const SymmetricBand& matrix);

  // Replaces b by A^-1 b. REQUIRES: b has as many elements as A has rows.
  void Solve(std::vector<double>* b) const;
  // The elements of A^-1 in the same band (Takahashi et al. 1973; Erisman & Tinney 1975, CACM 18, 177).
  SymmetricBand SelectedInverse() const;

 private:
  // The factor in the layout of LAPACK's dpbtrf: column j has L[j, j], L[j + 1, j] .. L[j + half_band, j].
  Array<double, 2> lower_;  // [column, 1 + half_band]
};

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_SKY_SYMMETRIC_BAND_H_
