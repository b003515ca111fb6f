// Stage "eliminate": each fibre's precision. This is the Schur complement of the normal matrix in which all
// other fibres of the bundle are eliminated.
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

// Unknowns of a block are interleaved: bin * block + fibre in the block. If the last block has fewer fibres,
// unknowns without couplings and with a unit diagonal take the place of the missing ones.
class Elimination {
 public:
  // Returns false if stopped.
  bool Compute(const BundlePlan& plan, const NormalEquations& normal, const std::stop_token& stop);

  const SymmetricBand& precision(int fibre) const { return precision_[fibre]; }
  // Factor of S_i of the left sweep.
  const BandFactor& left_factor(int block) const { return left_factor_[block]; }

 private:
  struct Separation;
  // A block's precision, split into one fibre's own part, the other fibres' part and the coupling between
  // them.
  struct Split {
    SymmetricBand others;
    int reach = 0;
    int64_t stride = 0;
    std::vector<double> own, coupling;  // [diagonal, unknown]
  };
  // Finds which entries of the block's matrices are kept (band_rule.h).
  bool SetThresholds(int block, const BandView& own, const std::stop_token& stop);
  BandLimits Limits(int block, const BandView& own) const;
  bool SweepLeft(const std::stop_token& stop);
  bool SweepRight(const std::stop_token& stop);
  bool SeparateFibres(const SymmetricBand& precision, int block, const std::stop_token& stop);
  // D of a block, and the block's coupling to the next one.
  BandView Own(int block);
  Coupling Next(int block, bool transposed);
  BandView AssembleOwn(int block);
  void AssembleNext(int block);
  // The precision of one of a block's fibres. The same update eliminates the others.
  bool SeparateFibre(const SymmetricBand& precision, int fibre, int in_block, const std::stop_token& stop);
  void SplitBlock(const SymmetricBand& precision, const Separation& to, Split* split);

  const BundlePlan* plan_ = nullptr;
  const NormalEquations* normal_ = nullptr;
  Array<double, 2> thresholds_;  // [block, unknown]
  std::vector<SymmetricBand> left_;
  std::vector<BandFactor> left_factor_;
  std::vector<SymmetricBand> precision_;  // [fibre]
  SymmetricBand right_, block_precision_, spread_;
  Split split_;
  BandFactor factor_;
  SchurUpdate update_;
  AlignedBuffer<double> factor_scratch_;
  AlignedBuffer<double> own_, next_;  // used for blocks of several fibres
};

}  // namespace spexd::cpu

#endif  // SPEXD_CORE_EXTRACT_CPU_STAGES_ELIMINATE_H_
