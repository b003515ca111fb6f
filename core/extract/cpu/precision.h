// Stage "precision": each fibre's marginal precision P from the band of its covariance.
//
// P = sum_j u_j u_j^T / v_j, where u_j = (1, -beta), beta regresses bin j on the q_j bins behind it and v_j
// is what variance is left: the precision of the chain whose bins depend on their next q_j alone. With one q
// it equals the sum of inverted cliques less that of inverted separators (algorithm.md, step 5), but q may
// follow the data.
#ifndef SPEXD_CORE_EXTRACT_CPU_PRECISION_H_
#define SPEXD_CORE_EXTRACT_CPU_PRECISION_H_

#include <cstdint>
#include <vector>

#include "core/base/aligned_buffer.h"
#include "core/extract/cpu/covariance.h"

namespace spexd::cpu {

// Lower band by diagonals: row j + k of column j is Diagonal(k)[j], k <= widths[j]. What lies behind the last
// bin is of no use.
struct BandedPrecision {
  int bins = 0, most = 0;
  AlignedBuffer<double> values;
  std::vector<double>
      last_correlation;  // |partial correlation| of bin j with bin j + q_j, given those between

  int64_t stride() const { return bins + most + kTile; }
  const double* Diagonal(int k) const { return values.data() + k * stride(); }
};

class PrecisionSolver {
 public:
  void Solve(const FibreCovariance& covariance, int fibre, const std::vector<int>& widths,
             BandedPrecision* precision);

 private:
  AlignedBuffer<double> scratch_;
};

}  // namespace spexd::cpu

#endif  // SPEXD_CORE_EXTRACT_CPU_PRECISION_H_
