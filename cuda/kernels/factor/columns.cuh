// Columns of X = L^-1 B: L is the Cholesky factor of a neighbour's matrix, and B couples the neighbour to the
// columns' block.
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

// A ring of at least two slots for the latest steps.
struct Ring {
  int slots;
  uint32_t inverse;  // 2^32 / slots, rounded up

  __host__ explicit Ring(int count) : slots(count), inverse(UINT32_MAX / count + 1) {}
  // Returns step % slots for step * slots < 2^32. The operator % makes elimination 3 % slower.
  __device__ int Slot(int step) const {
    const int quotient = static_cast<int>(uint64_t{inverse} * static_cast<uint32_t>(step) >> 32);
    return step - quotient * slots;
  }
};

// Memory for X of the latest steps, a ring: for each step `rows` tile rows in scratch memory, except that the
// first near_rows of them are in shared memory. Steps further apart than near_ring reaches have no near rows
// in common.
struct ColumnMemory {
  Ring ring, near_ring;
  int rows, near_rows;
  int history_rows;  // tile rows of W that a warp keeps

  __host__ __device__ int64_t scratch() const { return int64_t{ring.slots} * rows * kStepTiles; }
  __host__ __device__ int64_t shared() const { return int64_t{near_ring.slots} * near_rows * kStepTiles; }
};

// X of the latest steps: [tile row, half, pair of a lane] of each.
struct Columns {
  ColumnMemory memory;
  int reach;
  double *near, *far;
  int* ends;  // [slot]: end of a step's tile rows, counted in the factor

  __device__ int& End(int step) const { return ends[memory.ring.Slot(step)]; }
  // The first tile row that a step's columns touch. Those before the matrix are left out.
  __device__ int FirstRow(int step) const { return step * (kStep / kTile) - TilesOf(reach); }
};

// The tile rows of a step.
struct StepRows {
  double *near, *far;  // where row 0 would be in each
  int near_end;

  __device__ StepRows(const Columns& of, int step) {
    const int first = of.FirstRow(step);
    const ColumnMemory& memory = of.memory;
    near = of.near + (memory.near_ring.Slot(step) * memory.near_rows - first) * kStepTiles;
    far = of.far + (int64_t{memory.ring.Slot(step)} * memory.rows - first) * kStepTiles;
    near_end = first + memory.near_rows;
  }
  __device__ double* At(int row) const { return (row < near_end ? near : far) + int64_t{row} * kStepTiles; }
};

// What is eliminated: a factor, and its coupling to the columns. The coupling of unknown a and column c, at
// most `reach` apart, is coupling[k * size + j], where j is the unknown of the earlier block and j + k that
// of the later one.
struct Neighbour {
  const double* tiles;  // one matrix's values in FactorArrays; null: there is none
  const int32_t* starts;
  const double* coupling;
  int max_tiles;   // below the diagonal one
  bool earlier;    // whether the factor is that of the earlier block
  int reach, size;
};

// Earlier tile rows of -W: kKept of them in registers or, if kKept is 0, any number in memory.
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
  __device__ __forceinline__ void Load(int slot, double (&top)[2], double (&bottom)[2]) const {
    const double* const from = memory + static_cast<int64_t>(slot) * kStepTiles;
    LoadPair(from, top);
    LoadPair(from + kTileSize, bottom);
  }
  // sum -= W y^T, where W is that of k tile rows before, in registers.
  __device__ __forceinline__ void SubtractProduct(int k, const double (&y)[2], double (&sum)[4]) const {
    MultiplyAdd16({w[k - 1][0], w[k - 1][1]}, {w[k - 1][2], w[k - 1][3]}, y, sum);
  }
};

// Solves for the columns of a step, by a warp. kKept: most tiles of the factor before the diagonal one; 0:
// any number, with W in memory.
template <int kKept>
class ColumnSolver {
 public:
  // `tail`: columns end where they are below this times the square root of `diagonal`, that of their block.
  // `history`: memory for W, history_rows tile rows, if kKept is 0.
  __device__ ColumnSolver(const Neighbour& of, const double* diagonal, double tail, double* history)
      : of_(of), diagonal_(diagonal), tail_(tail), history_(history) {}

  // Columns are cut where the memory ends.
  __device__ void Solve(const Columns& columns, int step) const {
    const int first = max(columns.FirstRow(step), 0), size = of_.size;
    const int last = min(columns.FirstRow(step) + columns.memory.rows, TilesOf(size));
    const int touched = min(step * kStep + kStep - 1 + of_.reach, size - 1) / kTile;
    KeptRows<kKept> kept = {};
    kept.memory = history_;
    kept.rows = columns.memory.history_rows;
    const StepRows to(columns, step);
    RowTiles next = {};
    LoadRow(first, first, touched, step, &next);
    double tail[2];
#pragma unroll
    for (int h = 0; h < 2; ++h)
      tail[h] = tail_ * sqrt(diagonal_[min(step * kStep + h * kTile + at_.row, size - 1)]);
    int depth = 0, negligible_rows = 0, end = first;
    for (int row = first; row < last && (row <= touched || negligible_rows < depth); ++row) {
      const RowTiles now = next;
      LoadRow(first, row + 1, touched, step, &next);
      depth = kKept > 0 ? kKept : row - of_.starts[row];
      double x[4];
      SolveRow(first, row, depth, now, &kept, x);
      const bool significant = __any_sync(kAllLanes, fabs(x[0]) > tail[0] || fabs(x[1]) > tail[0] ||
                                                         fabs(x[2]) > tail[1] || fabs(x[3]) > tail[1]);
      negligible_rows = significant ? 0 : negligible_rows + 1;
      StorePair(to.At(row), x[0], x[1]);
      StorePair(to.At(row) + kTileSize, x[2], x[3]);
      if (significant) end = row + 1;
    }
    columns.End(step) = end;
  }

 private:
  // A lane's values of a tile row. Of the factor: L^-1 and, if W is in registers, Y of the tiles before. Of
  // the couplings: columns step * 16 + lane / 4 and the same + 8, unknowns 2 (lane % 4) and the next of the
  // tile row.
  struct RowTiles {
    double inverse[2], y[kKept == 0 ? 1 : kKept][2], coupling[4];
  };

  __device__ const double* Tile(int column, int k) const {
    return of_.tiles + (int64_t{column} * (1 + of_.max_tiles) + k) * kTileSize;
  }
  // Rows are loaded in order, from `first` on.
  __device__ __forceinline__ void LoadRow(int first, int row, int touched, int step, RowTiles* to) const {
    if (row * kTile >= of_.size) return;
#pragma unroll
    for (double& of : to->coupling) of = 0;
#pragma unroll
    for (int e = 0; row <= touched && e < 4; ++e) {
      const int a = row * kTile + at_.column + e % 2, c = step * kStep + at_.row + e / 2 * kTile;
      const int ahead = of_.earlier ? c - a : a - c;
      if (abs(ahead) <= of_.reach && max(a, c) < of_.size)
        to->coupling[e] = of_.coupling[ahead * of_.size + (of_.earlier ? a : c)];
    }
    LoadPair(Tile(row, 0), to->inverse);
#pragma unroll
    for (int k = 1; k <= kKept; ++k) {
      to->y[k - 1][0] = to->y[k - 1][1] = 0;
      if (row - k >= first && k <= of_.max_tiles) LoadPair(Tile(row - k, k), to->y[k - 1]);
    }
  }
  // Computes a tile row of X and keeps its W. `depth`: tiles before the diagonal one.
  __device__ __forceinline__ void SolveRow(int first, int row, int depth, const RowTiles& tiles,
                                           KeptRows<kKept>* kept, double (&x)[4]) const {
    double w[4] = {tiles.coupling[0], tiles.coupling[1], tiles.coupling[2], tiles.coupling[3]};
    if constexpr (kKept > 0) {
#pragma unroll
      for (int k = kKept; k >= 1; --k) kept->SubtractProduct(k, tiles.y[k - 1], w);
    } else {
      // Tiles of a batch arrive together.
      constexpr int kBatch = 4;
      const int most = min(depth, row - first);
      int slot = (row - most) % kept->rows;
#pragma unroll 1
      for (int k = most; k >= 1; k -= kBatch) {
        double y[kBatch][2] = {}, top[kBatch][2] = {}, bottom[kBatch][2] = {};
#pragma unroll
        for (int q = 0; q < kBatch; ++q) {
          if (k - q < 1) continue;
          LoadPair(Tile(row - k + q, k - q), y[q]);
          kept->Load(slot, top[q], bottom[q]);
          slot = slot + 1 == kept->rows ? 0 : slot + 1;
        }
#pragma unroll
        for (int q = 0; q < kBatch; ++q) MultiplyAdd16(top[q], bottom[q], y[q], w);
      }
    }
    kept->Push(row, w);
#pragma unroll
    for (double& of : x) of = 0;
    MultiplyAdd16({w[0], w[1]}, {w[2], w[3]}, tiles.inverse, x);
  }

  const LanePositions at_;
  const Neighbour& of_;
  const double* const diagonal_;
  const double tail_;
  double* const history_;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_FACTOR_COLUMNS_CUH_
