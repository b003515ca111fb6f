// Stage "eliminate": each fibre's precision, that is the Schur complement of the normal matrix in which all
// other fibres of the bundle are eliminated.
//
// Two sweeps over blocks of fibres (BundlePlan::block, nearly always of one fibre), whose normal matrix is
// block tridiagonal but for couplings that FibresPerBlock found to be negligible:
//
//   from the left    S_i = D_i - O_(i-1)^T S_(i-1)^-1 O_(i-1)
//   from the right   T_i = D_i - O_i T_(i+1)^-1 O_i^T
//   precision        P_i = S_i - O_i T_(i+1)^-1 O_i^T
#ifndef SPEXD_CORE_EXTRACT_CPU_ELIMINATE_H_
#define SPEXD_CORE_EXTRACT_CPU_ELIMINATE_H_

#include <cstdint>
#include <stop_token>
#include <vector>

#include "core/extract/cpu/band.h"
#include "core/extract/cpu/factor.h"
#include "core/extract/cpu/normal.h"
#include "core/extract/cpu/schur.h"
#include "core/plan/bundle_plan.h"

namespace spexd::cpu {

// Unknowns of a block are interleaved: bin * block + fibre in the block. Where the last block has fewer
// fibres, unknowns without couplings and with a unit diagonal stand for those missing.
class Elimination {
 public:
  // False: stopped.
  bool Compute(const BundlePlan& plan, const NormalEquations& normal, const std::stop_token& stop);

  const SymmetricBand& precision(int fibre) const { return precision_[fibre]; }
  // Of S_i of the left sweep.
  const BandFactor& left_factor(int block) const { return left_factor_[block]; }

 private:
  struct Separation;
  // A block's precision by what of it is a fibre's own, its partners' and between them.
  struct Split {
    SymmetricBand partners;
    int reach = 0;
    int64_t stride = 0;
    std::vector<double> own, coupling;  // [diagonal, unknown]
  };
  bool SweepLeft(const std::stop_token& stop);
  bool SweepRight(const std::stop_token& stop);
  bool SeparateFibres(const SymmetricBand& precision, int block, const std::stop_token& stop);
  // D of a block, and how it couples to the block after it.
  BandView Own(int block);
  Coupling Next(int block, bool transposed);
  BandView AssembleOwn(int block);
  void AssembleNext(int block);
  // The precision of one of a block's fibres, its partners eliminated by the same update.
  bool SeparateFibre(const SymmetricBand& precision, int fibre, int in_block, const std::stop_token& stop);
  void SplitBlock(const SymmetricBand& precision, const Separation& to, Split* split);

  const BundlePlan* plan_ = nullptr;
  const NormalEquations* normal_ = nullptr;
  BandLimits limits_ = {};  // of a block
  std::vector<SymmetricBand> left_;
  std::vector<BandFactor> left_factor_;
  std::vector<SymmetricBand> precision_;  // of fibres
  SymmetricBand right_, block_precision_, spread_;
  Split split_;
  BandFactor factor_;
  SchurUpdate update_;
  AlignedBuffer<double> factor_scratch_;
  AlignedBuffer<double> own_, next_;  // of blocks of several fibres
};

}  // namespace spexd::cpu

#endif  // SPEXD_CORE_EXTRACT_CPU_ELIMINATE_H_
