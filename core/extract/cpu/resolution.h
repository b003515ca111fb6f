// Stage "resolution": Q = P^(1/2) of each fibre, as far as it is reported: its diagonals near the main one,
// its row sums and Q f.
#ifndef SPEXD_CORE_EXTRACT_CPU_RESOLUTION_H_
#define SPEXD_CORE_EXTRACT_CPU_RESOLUTION_H_

#include <vector>

#include "core/base/aligned_buffer.h"
#include "core/extract/cpu/covariance.h"
#include "core/extract/cpu/precision.h"
#include "core/model/frame.h"

namespace spexd::cpu {

struct SquareRoot {
  // diagonal[k][j] = Q[j + k, j]; 0 behind the last bin.
  std::vector<double> diagonal[kResolutionHalfWidth + 1];
  std::vector<double> row_sum;  // Q 1
  std::vector<double> applied;  // Q f
};

// Enclose the spectrum of P: Gershgorin's bound of P above, a quarter of the reciprocal of that of C's band
// below.
struct SpectrumBounds {
  double least, most;
};
SpectrumBounds BoundSpectrum(const FibreCovariance& covariance, int fibre, const BandedPrecision& precision,
                             const std::vector<int>& widths);

class SquareRootSolver {
 public:
  // flux: f of the fibre, one value per bin. widths[j] + 1 >= widths[j - 1], and >= kResolutionHalfWidth but
  // at the end.
  void Solve(const BandedPrecision& precision, const std::vector<int>& widths, const SpectrumBounds& bounds,
             const double* flux, SquareRoot* root);

 private:
  AlignedBuffer<double> factor_, state_;
};

}  // namespace spexd::cpu

#endif  // SPEXD_CORE_EXTRACT_CPU_RESOLUTION_H_
