// Stage "eliminate": each fibre's precision. It is the Schur complement of the normal matrix after all other
// fibres of the bundle are eliminated.
//
// Two sweeps go over blocks of fibres (BundlePlan::block, nearly always of one fibre). The blocks' normal
// matrix is block tridiagonal, except for couplings that FibresPerBlock found to be negligible:
//
//   from the left    S_i = D_i - O_(i-1)^T S_(i-1)^-1 O_(i-1)
//   from the right   T_i = D_i - O_i T_(i+1)^-1 O_i^T
//   precision        P_i = S_i - O_i T_(i+1)^-1 O_i^T
#ifndef SPEXD_CORE_EXTRACT_CPU_STAGES_ELIMINATE_H_
#define SPEXD_CORE_EXTRACT_CPU_STAGES_ELIMINATE_H_

#include <cstdint>
#include <stop_token>
#include <vector>

#include "core/base/array.h"
#include "core/extract/cpu/stages/band.h"
#include "core/extract/cpu/stages/factor.h"
#include "core/extract/cpu/stages/normal.h"
#include "core/extract/cpu/stages/schur.h"
#include "core/plan/bundle_plan.h"

namespace spexd::cpu {

class Elimination {
 public:
  // Computes the precision of every fibre. Returns false if stopped.
  bool Compute(const BundlePlan& plan, const NormalEquations& normal, const std::stop_token& stop);

  const SymmetricBand& precision(int fibre) const { return precision_[fibre]; }
  // The factor of S_i of the left sweep.
  const BandFactor& left_factor(int block) const { return left_factor_[block]; }

 private:
  // Sets the thresholds by which entries of the block's matrices are kept (band_rule.h). Returns false if
  // stopped.
  bool SetThresholds(int block, const BandView& own, const std::stop_token& stop);
  BandLimits Limits(int block, const BandView& own) const;
  bool SweepLeft(const std::stop_token& stop);
  bool SweepRight(const std::stop_token& stop);
  // D of a block, and the block's coupling to the next block.
  BandView Own(int block) const;
  Coupling Next(int block, bool transposed) const;
  // Computes the precision of one fibre from that of its block: the same update eliminates the block's other
  // fibres.
  bool SeparateFibre(const SymmetricBand& precision, int fibre, const std::stop_token& stop);

  const BundlePlan* plan_ = nullptr;
  const NormalEquations* normal_ = nullptr;
  Array<double, 2> thresholds_;  // [block, unknown]
  std::vector<SymmetricBand> left_;
  std::vector<BandFactor> left_factor_;
  std::vector<SymmetricBand> precision_;  // [fibre]
  SymmetricBand right_, block_precision_, spread_;
  SymmetricBand others_;                           // matrix of the block's other fibres (SeparateFibre)
  // The matrix of the fibre and its coupling to the others, [diagonal, unknown].
  std::vector<double> member_, member_to_others_;
  BandFactor factor_;
  SchurUpdate update_;
  AlignedBuffer<double> factor_scratch_;
};

}  // namespace spexd::cpu

#endif  // SPEXD_CORE_EXTRACT_CPU_STAGES_ELIMINATE_H_
