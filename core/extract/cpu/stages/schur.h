// The update of both sweeps: S = D - B^T (L L^T)^-1 B, where L L^T is eliminated and B is its coupling.
//
// X = L^-1 B is computed by columns, and X^T X is subtracted, a sum of squares that cannot cancel. Column c
// begins at the first row that B touches and ends where it has decayed. Neighbouring columns lie side by side
// in vector lanes and read neighbouring entries of L and B.
#ifndef SPEXD_CORE_EXTRACT_CPU_STAGES_SCHUR_H_
#define SPEXD_CORE_EXTRACT_CPU_STAGES_SCHUR_H_

#include <cstdint>
#include <stop_token>
#include <vector>

#include "core/extract/cpu/stages/band.h"
#include "core/extract/cpu/stages/factor.h"

namespace spexd::cpu {

// The coupling B. Row(t)[c] is its entry in row c - reach + t and column c, for t = 0..2 reach. It can be
// read up to kTileColumns columns behind the last, and is 0 where row or column is outside the matrix.
struct Coupling {
  const double* first = nullptr;
  int64_t step = 0;
  int reach = 0;

  const double* Row(int t) const { return first + t * step; }
};

// The limits by which entries of a band are kept (band_rule.h).
struct BandLimits {
  int usual, most;          // half-widths: those always kept, and the most to keep
  // Columns of X end where they are below this, relative to the square root of the diagonal.
  double tail;
  const double* diagonal;   // diagonal of D
  const double* threshold;  // thresholds of entries beyond `usual` (IsKept)
};

struct SchurTask;

class SchurUpdate {
 public:
  // Computes X^T X as far as it may exceed the thresholds. Returns false if stopped.
  bool Compute(const BandFactor& factor, const Coupling& coupling, const BandLimits& limits,
               const std::stop_token& stop);
  // out = base - X^T X, cut by the band rule.
  void Subtract(const BandView& base, const BandLimits& limits, SymmetricBand* out);
  // out = base, cut by the band rule.
  void Copy(const BandView& base, const BandLimits& limits, SymmetricBand* out);

 private:
  void SetScales(int size, const BandLimits& limits);
  SchurTask Task(const BandFactor* factor, const Coupling* coupling, double tail);
  bool ComputeColumns(const BandFactor& factor, const Coupling& coupling, double tail,
                      const std::stop_token& stop);
  bool ComputeProducts(const BandLimits& limits, const std::stop_token& stop);
  // Row k of X^T X; null if the tile has none.
  const double* Product(int k, int tile) const { return k <= extent_[tile] ? products_.rows()[k] : nullptr; }
  void ChooseWidths(const BandView& base, const BandLimits& limits, SymmetricBand* out);

  int size_ = 0;
  int side_ = 1;  // number of columns in a tile
  // Square roots of D's diagonal, and 1 / threshold. Both are 0 behind the last unknown.
  std::vector<double> scale_, inverse_threshold_;
  std::vector<double> lumped_;
  // squares_: the sums of a tile's columns from each row on (SumSquares). largest_: the largest such sum of
  // each tile.
  std::vector<double> squares_, largest_;
  GrowingRows columns_;      // X, [t, column]
  std::vector<int> length_;  // [tile]: length of its columns
  GrowingRows products_;     // entry (column + k, column) of X^T X, [k, column]
  std::vector<int> extent_;  // [tile]: the last k; -1: none
};

}  // namespace spexd::cpu

#endif  // SPEXD_CORE_EXTRACT_CPU_STAGES_SCHUR_H_
