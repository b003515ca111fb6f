// Stage "resolution": Q = P^(1/2) of each fibre, as far as it is reported: the diagonals near the main one,
// the row sums and Q f.
#ifndef SPEXD_CORE_EXTRACT_CPU_STAGES_RESOLUTION_H_
#define SPEXD_CORE_EXTRACT_CPU_STAGES_RESOLUTION_H_

#include <stop_token>
#include <vector>

#include "core/base/memory/aligned_buffer.h"
#include "core/extract/cpu/stages/band.h"
#include "core/extract/cpu/stages/factor.h"
#include "core/extract/pole_formula.h"
#include "core/model/frame.h"

namespace spexd::cpu {

struct SquareRoot {
  // diagonal[k][j] is Q[j + k, j]; it is 0 behind the last bin.
  std::vector<double> diagonal[kResolutionHalfWidth + 1];
  std::vector<double> row_sum;  // Q 1
  std::vector<double> applied;  // Q f
};

class SquareRootSolver {
 public:
  // Takes the square root of a precision. conditioned: IsConditioned. flux: the fibre's f, one value for each
  // bin. REQUIRES: the precision's widths are at least kResolutionHalfWidth, except at the end. Returns false
  // if stopped.
  bool Solve(const SymmetricBand& precision, bool conditioned, const double* flux,
             const std::stop_token& stop, SquareRoot* root);

 private:
  bool BoundSpectrum(const SymmetricBand& precision, const std::stop_token& stop, SpectrumBounds* bounds);
  // The number of diagonals that a pole needs, at most `most`.
  int PoleWidth(const SymmetricBand& precision, double shift, int most) const;

  BandFactor factor_of_precision_;
  std::vector<double> alternating_;  // magnitudes of P^-1 s
  AlignedBuffer<double> factor_, state_, scratch_;
};

}  // namespace spexd::cpu

#endif  // SPEXD_CORE_EXTRACT_CPU_STAGES_RESOLUTION_H_
