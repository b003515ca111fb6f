// Stage "normal": the normal equations A^T W A and A^T W p, computed directly from spots; A is never formed.
//
// The unknowns of a block of m fibres (BundlePlan::block, nearly always 1) are interleaved: bin * m + fibre
// in the block. If the last block has fewer fibres, the unknowns of the missing ones couple with none. The
// matrix is stored for pairs of blocks, by diagonals, contiguous in unknowns. Every diagonal can be read from
// `reach` unknowns before its first one to kTileColumns behind its last one. It is 0 wherever one of the two
// unknowns is outside the block.
#ifndef SPEXD_CORE_EXTRACT_CPU_STAGES_NORMAL_H_
#define SPEXD_CORE_EXTRACT_CPU_STAGES_NORMAL_H_

#include <cstdint>
#include <stop_token>

#include "core/base/array.h"
#include "core/base/memory/aligned_buffer.h"
#include "core/extract/cpu/spots/spots.h"
#include "core/extract/cpu/stages/band.h"
#include "core/extract/cpu/stages/bundle_image.h"
#include "core/plan/bundle_plan.h"

namespace spexd::cpu {

struct NormalTask;

class NormalEquations {
 public:
  // Sets matrix and vectors to 0. Returns false if stopped.
  bool Begin(const BundlePlan& plan, const std::stop_token& stop);
  // Multiplies all spots whose partners are among the first `bins` bins: the number of bins evaluated so far.
  void Multiply(const BundlePlan& plan, const Spots& spots, const BundleImage& image, int bins);
  // Adds Lambda to the diagonal.
  void AddPrior(double regularize, bool fine_grid);

  int size() const { return size_; }                // number of unknowns of a block
  int reach() const { return reach_; }              // distance beyond which unknowns do not couple
  int block_reach() const { return block_reach_; }  // distance beyond which blocks do not couple
  int64_t stride() const { return stride_; }        // distance from a diagonal to the next
  // Couplings of unknowns j and j + k of a block, at [j], for k = 0..reach.
  const double* Own(int block, int k) const { return Diagonals(block, 0) + k * stride_; }
  // Couplings of unknown j of `block` with unknown j + offset of block + apart, at [j], for apart =
  // 1..block_reach and |offset| <= reach.
  const double* Pair(int block, int apart, int offset) const {
    return Diagonals(block, apart) + (offset + reach_) * stride_;
  }
  const double* data(int block) const { return data_.Row(block).data(); }  // A^T W p

  static int64_t Bytes(const BundlePlan& plan);

 private:
  const double* Diagonals(int block, int apart) const {
    const int64_t before = apart == 0 ? 0 : (reach_ + 1) + int64_t{apart - 1} * (2 * reach_ + 1);
    return values_.data() + (block * diagonals_ + before) * stride_ + front_;
  }
  double* MutableDiagonals(int block, int apart) { return const_cast<double*>(Diagonals(block, apart)); }
  void Shape(const BundlePlan& plan);
  void MultiplySpot(const BundlePlan& plan, const BundleImage& image, const NormalTask& task);

  int fibres_ = 1;      // number of fibres of a block
  int multiplied_ = 0;  // number of bins multiplied so far
  int size_ = 0, reach_ = 0, block_reach_ = 0, front_ = 0;
  int64_t stride_ = 0;
  int64_t diagonals_ = 0;             // number of diagonals of a block with itself and with later blocks
  AlignedBuffer<double> values_;      // [block, diagonal, unknown]
  AlignedBuffer<double> scratch_;     // one spot times ivar
  Array<double, 2> coverage_, data_;  // [block, unknown]; coverage as in formulas.h
};

}  // namespace spexd::cpu

#endif  // SPEXD_CORE_EXTRACT_CPU_STAGES_NORMAL_H_
