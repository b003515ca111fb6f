// Columns of X = L^-1 B: L is the Cholesky factor of a neighbour's matrix, B couples it to the columns'
// block.
//
// A warp solves for sixteen columns (a *step*) at once, transposed: with W = X^T L^T, tile row a of the
// factor gives
//   W_a = B_a^T - sum_k W_(a-k) Y_(a,a-k)^T,   X_a^T = W_a L_aa^-T,
// so that all values stay in the lanes that computed them. Rows end where the columns have died away.
#ifndef SPEXD_CUDA_KERNELS_FACTOR_COLUMNS_CUH_
#define SPEXD_CUDA_KERNELS_FACTOR_COLUMNS_CUH_

#include "cuda/kernels/factor/band.cuh"

namespace spexd::cuda {

inline constexpr int kStep = kStepColumns;
static_assert(kStep == 2 * kTile);
inline constexpr int kStepTiles = 2 * kTileSize;  // doubles per tile row of a step
// Columns at a step's end, from which is judged whether the next step may have large products, too.
inline constexpr int kLastColumns = 2;

// Memory for the columns of several steps: a slot for each, of `rows` tile rows.
struct ColumnMemory {
  int slots, rows;

  __host__ __device__ int64_t columns() const { return int64_t{slots} * rows * kStepTiles; }
  // The count includes two numbers for each slot, in whole pairs.
  __host__ __device__ int64_t doubles() const { return columns() + (slots + 1) / 2 * 2; }
};

// X of the steps from `first_step` on, each [tile row, half, pair of a lane]. Its rows are counted from the
// first one that the step touches.
struct Columns {
  double* memory;
  int* ends;             // [slot]: end of its tile rows, counted in the factor
  int* ends_negligible;  // [slot]: whether one of its last columns is negligible, as are those without data
  ColumnMemory size;
  int first_step, reach;

  __device__ int Slot(int step) const { return step - first_step; }
  // The first tile row that a step's columns touch.
  __device__ int FirstRow(int step) const { return max(step * kStep - reach, 0) / kTile; }
  __device__ double* At(int step, int row) const {
    return memory + (Slot(step) * size.rows + row - FirstRow(step)) * int64_t{kStepTiles};
  }
};

// What is eliminated.
struct Neighbour {
  FactorArrays factors;
  int matrix;
  // Entry (unknown a of the neighbour, column c) of B is at coupling[(k + reach) * size + from], where
  // k = c - a and from = a if the neighbour comes before, k = a - c and from = c otherwise.
  const double* coupling;
  bool before;
  int reach, size;
};

// This lane's entries of B^T, tile row after tile row: columns step * 16 + lane / 4 and the same + 8,
// unknowns 2 (lane % 4) and the next of the tile row.
class CouplingRows {
 public:
  __device__ CouplingRows(const Neighbour& of, const LanePlaces& at, int step, int first_row)
      : of_(of), column_(step * kStep + at.row), sign_(of.before ? 1 : -1) {
    unknown_ = first_row * kTile + at.column;
    apart_ = sign_ * (column_ - unknown_) + of.reach;
    entry_ = of.coupling + int64_t{apart_} * of.size + (of.before ? unknown_ : column_);
  }
  // Fetches the entries of the current tile row, and goes on to the next.
  __device__ __forceinline__ void Next(double (&to)[4]) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int half = e / 2 * kTile, apart = sign_ * (half - e % 2);
      const bool inside = static_cast<unsigned>(apart_ + apart) <= 2u * of_.reach &&
                          unknown_ + e % 2 < of_.size && column_ + half < of_.size;
      to[e] = inside ? entry_[apart * of_.size + (of_.before ? e % 2 : half)] : 0;
    }
    unknown_ += kTile;
    apart_ -= sign_ * kTile;
    entry_ += (of_.before ? kTile : 0) - int64_t{sign_} * kTile * of_.size;
  }

 private:
  const Neighbour& of_;
  const int column_, sign_;
  int unknown_, apart_;
  const double* entry_;
};

// Earlier tile rows of W, negative: kKept of them in registers, or any number in memory if that is 0.
template <int kKept>
struct KeptRows {
  double w[kKept == 0 ? 1 : kKept][4];
  double* memory;  // ring of `rows` tile rows
  int rows;

  __device__ __forceinline__ void Push(int row, const double (&of)[4]) {
    if constexpr (kKept > 0) {
#pragma unroll
      for (int k = kKept - 1; k > 0; --k) {
#pragma unroll
        for (int e = 0; e < 4; ++e) w[k][e] = w[k - 1][e];
      }
#pragma unroll
      for (int e = 0; e < 4; ++e) w[0][e] = -of[e];
    } else {
      double* const to = memory + static_cast<int64_t>(row % rows) * kStepTiles;
      StorePair(to, -of[0], -of[1]);
      StorePair(to + kTileSize, -of[2], -of[3]);
    }
  }
  // sum -= W_(row - k) y^T.
  __device__ __forceinline__ void SubtractProduct(int row, int k, const double (&y)[2],
                                                  double (&sum)[4]) const {
    if constexpr (kKept > 0) {
      MultiplyAdd16({w[k - 1][0], w[k - 1][1]}, {w[k - 1][2], w[k - 1][3]}, y, sum);
    } else {
      const double* const from = memory + static_cast<int64_t>((row - k) % rows) * kStepTiles;
      double top[2], bottom[2];
      LoadPair(from, top);
      LoadPair(from + kTileSize, bottom);
      MultiplyAdd16(top, bottom, y, sum);
    }
  }
};

// Solves for the columns of a step, by a warp. kKept: most tiles of the factor before the diagonal one; 0:
// any number, with W in memory.
template <int kKept>
class ColumnSolver {
 public:
  // `tail`: columns end where they are below this times the square root of `diagonal`, that of their block.
  // `history`: memory for W, size.rows tile rows, if kKept is 0.
  __device__ ColumnSolver(const Neighbour& of, const double* diagonal, double tail, double* history)
      : of_(of),
        diagonal_(diagonal),
        tail_(tail),
        history_(history),
        starts_(of.factors.starts + of.matrix * of.factors.columns),
        column_size_(int64_t{1 + of.factors.tiles} * kTileSize),
        tiles_(of.factors.values + int64_t{of.matrix} * of.factors.columns * column_size_) {}

  // Returns false if the memory has too few rows; the columns are then cut.
  __device__ bool Solve(const Columns& columns, int step) const {
    const int first = columns.FirstRow(step), rows = of_.factors.columns;
    const int touched = min(step * kStep + kStep - 1 + of_.reach, of_.size - 1) / kTile;
    double tail[2];
#pragma unroll
    for (int h = 0; h < 2; ++h)
      tail[h] = tail_ * sqrt(diagonal_[min(step * kStep + h * kTile + at_.row, of_.size - 1)]);
    KeptRows<kKept> kept = {};
    kept.memory = history_;
    kept.rows = columns.size.rows;
    CouplingRows coupling(of_, at_, step, first);
    RowTiles next = {};
    LoadRow(first, first, touched, &coupling, &next);
    double* to = columns.At(step, first);
    int negligible_rows = 0, row = first, end = first;
    // seen: whether this lane saw a significant entry of the second half
    bool seen = false, fits = true, done = false;
    while (!done) {
      const RowTiles now = next;
      LoadRow(first, row + 1, touched, &coupling, &next);
      const int depth = kKept > 0 ? kKept : row - starts_[row];
      double x[4];
      SolveRow(first, row, depth, now, &kept, x);
      const bool second = fabs(x[2]) > tail[1] || fabs(x[3]) > tail[1];
      const bool significant =
          __ballot_sync(kAllLanes, second || fabs(x[0]) > tail[0] || fabs(x[1]) > tail[0]) != 0;
      seen |= second;
      negligible_rows = significant ? 0 : negligible_rows + 1;
      if (row - first < columns.size.rows) {
        StorePair(to, x[0], x[1]);
        StorePair(to + kTileSize, x[2], x[3]);
        to += kStepTiles;
      } else {
        fits &= !significant;
      }
      ++row;
      if (significant) end = row;
      done = row >= rows || !fits || (row > touched && negligible_rows >= depth);
    }
    const unsigned lanes = __ballot_sync(kAllLanes, seen);  // four to a column
    columns.ends[columns.Slot(step)] = min(end, first + columns.size.rows);
    bool negligible = false;
#pragma unroll
    for (int c = kTile - kLastColumns; c < kTile; ++c) negligible |= (lanes >> 4 * c & 0xf) == 0;
    columns.ends_negligible[columns.Slot(step)] = negligible;
    return fits;
  }

 private:
  // A tile row of the factor: L^-1, and Y of the tiles before if W is in registers; and of the couplings.
  struct RowTiles {
    double inverse[2], y[kKept == 0 ? 1 : kKept][2], coupling[4];
  };

  __device__ const double* Tile(int column, int k) const {
    return tiles_ + column * column_size_ + k * kTileSize;
  }
  // Rows are loaded in order, from `first` on.
  __device__ __forceinline__ void LoadRow(int first, int row, int touched, CouplingRows* coupling,
                                          RowTiles* to) const {
    if (row >= of_.factors.columns) return;
    const double* const tiles = Tile(row, 0);
    if (row <= touched) {
      coupling->Next(to->coupling);
    } else {
#pragma unroll
      for (double& entry : to->coupling) entry = 0;
    }
    LoadPair(tiles, to->inverse);
#pragma unroll
    for (int k = 1; k <= kKept; ++k) {
      to->y[k - 1][0] = to->y[k - 1][1] = 0;
      if (row - k >= first && k <= of_.factors.tiles)
        LoadPair(tiles + k * (kTileSize - column_size_), to->y[k - 1]);
    }
  }
  // Computes a tile row of X and keeps its W. `depth`: tiles before the diagonal one.
  __device__ __forceinline__ void SolveRow(int first, int row, int depth, const RowTiles& tiles,
                                           KeptRows<kKept>* kept, double (&x)[4]) const {
    double w[4] = {tiles.coupling[0], tiles.coupling[1], tiles.coupling[2], tiles.coupling[3]};
    if constexpr (kKept > 0) {
#pragma unroll
      for (int k = kKept; k >= 1; --k) kept->SubtractProduct(row, k, tiles.y[k - 1], w);
    } else {
#pragma unroll 1
      for (int k = min(depth, row - first); k >= 1; --k) {
        double y[2];
        LoadPair(Tile(row - k, k), y);
        kept->SubtractProduct(row, k, y, w);
      }
    }
    kept->Push(row, w);
#pragma unroll
    for (double& of : x) of = 0;
    MultiplyAdd16({w[0], w[1]}, {w[2], w[3]}, tiles.inverse, x);
  }

  const LanePlaces at_;
  const Neighbour& of_;
  const double* const diagonal_;
  const double tail_;
  double* const history_;
  const int32_t* const starts_;
  const int64_t column_size_;
  const double* const tiles_;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_FACTOR_COLUMNS_CUH_
