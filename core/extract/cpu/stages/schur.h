// The update that both sweeps use: S = D - B^T (L L^T)^-1 B, where L L^T is eliminated and B is its coupling.
//
// X = L^-1 B is computed by columns, and X^T X is subtracted: a sum of squares that cannot cancel. Column c
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

// B: Row(t)[c] is the entry of row c - reach + t and column c, for t = 0..2 reach. Readable for kTileColumns
// columns behind the last, and 0 where row or column is outside the matrix.
struct Coupling {
  const double* first = nullptr;
  int64_t step = 0;
  int reach = 0;

  const double* Row(int t) const { return first + t * step; }
};

// Which entries of a band are kept (band_rule.h).
struct BandLimits {
  int usual, most;          // half-widths: always kept, and at most kept
  double tail;              // columns of X end below this, relative to the square root of the diagonal
  const double* diagonal;   // of D
  const double* threshold;  // entries beyond `usual` are kept if they exceed these
};

struct SchurTask;

class SchurUpdate {
 public:
  // Computes X^T X, as far as it may exceed the thresholds. Returns false if stopped.
  bool Compute(const BandFactor& factor, const Coupling& coupling, const BandLimits& limits,
               const std::stop_token& stop);
  // out = base - X^T X, cut by the rule of band_rule.h.
  void Subtract(const BandView& base, const BandLimits& limits, SymmetricBand* out);
  // The same with X = 0.
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
  int side_ = 1;  // columns per tile
  // Square roots of D's diagonal, and 1 / threshold; zeros behind the last.
  std::vector<double> scale_, inverse_threshold_;
  std::vector<double> lumped_;
  // squares_: of a tile's columns by row, see SumSquares. largest_: of each tile's columns.
  std::vector<double> squares_, largest_;
  GrowingRows columns_;      // [t, column]: X
  std::vector<int> length_;  // [tile]: length of its columns
  GrowingRows products_;     // [k, column]: (X^T X)(column + k, column)
  std::vector<int> extent_;  // the last k of each tile; -1: none
};

}  // namespace spexd::cpu

#endif  // SPEXD_CORE_EXTRACT_CPU_STAGES_SCHUR_H_
