// The one update of the sweeps: S = D - B^T (L L^T)^-1 B, where L L^T is what is eliminated and B couples it.
//
// X = L^-1 B is computed by columns and X^T X subtracted: a sum of squares that cannot cancel. Column c
// begins at the first row that B touches and ends where it has died away. Neighbouring columns stand side by
// side in vector lanes and read neighbouring entries of L and B.
#ifndef SPEXD_CORE_EXTRACT_CPU_SCHUR_H_
#define SPEXD_CORE_EXTRACT_CPU_SCHUR_H_

#include <cstdint>
#include <stop_token>
#include <vector>

#include "core/extract/cpu/band.h"
#include "core/extract/cpu/factor.h"

namespace spexd::cpu {

// B: Row(t)[c] is the entry of row c - reach + t and column c, for t = 0..2 reach. Readable for kTileColumns
// columns behind the last, and 0 where row or column is outside the matrix.
struct Coupling {
  const double* first = nullptr;
  int64_t step = 0;
  int reach = 0;

  const double* Row(int t) const { return first + t * step; }
};

// What of a band is kept (band_rule.h).
struct BandLimits {
  int usual, most;  // half-widths: in any case, and at most
  double cut;        // entries beyond `usual` are kept where they exceed this,
  double tail;       // columns of X end below this, of the square root of the diagonal
};

struct SchurTask;

class SchurUpdate {
 public:
  // X^T X, as far as it may exceed the cut. `diagonal`: D's. False: stopped.
  bool Compute(const BandFactor& factor, const Coupling& coupling, const double* diagonal,
               const BandLimits& limits, const std::stop_token& stop);
  // out = base - X^T X, cut by the rule of band_rule.h.
  void Subtract(const BandView& base, const BandLimits& limits, SymmetricBand* out);
  // The same with X = 0. `diagonal` as above.
  void Copy(const BandView& base, const double* diagonal, const BandLimits& limits, SymmetricBand* out);

 private:
  void SetDiagonal(int size, const double* diagonal);
  SchurTask Task(const BandFactor* factor, const Coupling* coupling, double tail);
  bool ComputeColumns(const BandFactor& factor, const Coupling& coupling, double tail,
                      const std::stop_token& stop);
  bool ComputeProducts(const BandLimits& limits, const std::stop_token& stop);
  // Entry (j + k, j) of base - X^T X.
  double Entry(const BandView& base, int k, int j) const;
  void ChooseWidths(const BandView& base, const BandLimits& limits, SymmetricBand* out);

  int size_ = 0;
  int side_ = 1;               // columns of a tile
  std::vector<double> scale_, inverse_diagonal_;  // square roots of D's diagonal, and 1 / D; zeros behind the last
  std::vector<double> diagonal_, lumped_;
  std::vector<double> squares_, largest_;  // of a tile's columns by row, see SumSquares; of each tile's columns
  GrowingRows columns_;      // [t, column]: X
  std::vector<int> length_;  // of the columns of each tile
  GrowingRows products_;     // [k, column]: (X^T X)(column + k, column)
  std::vector<int> extent_;  // the last k of each tile; -1: none
};

}  // namespace spexd::cpu

#endif  // SPEXD_CORE_EXTRACT_CPU_SCHUR_H_
