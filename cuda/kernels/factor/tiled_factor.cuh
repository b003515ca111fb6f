// The Cholesky factor of a band of a few tiles, computed by a warp that keeps the moving window in registers.
// With L^-1 of a diagonal tile known, a step is
//   X_k = S_k L^-T,   S_kl -= X_k X_l^T
// and right-hand sides are rows below the band.
#ifndef SPEXD_CUDA_KERNELS_FACTOR_TILED_FACTOR_CUH_
#define SPEXD_CUDA_KERNELS_FACTOR_TILED_FACTOR_CUH_

#include "core/model/tolerances.h"
#include "cuda/kernels/factor/band.cuh"
#include "cuda/kernels/factor/factor_tile.cuh"

namespace spexd::cuda {

// A lane's share of the band's widths, in a tile row's columns and in the rows of its diagonal tile. They are
// loaded a tile row ahead of the entries, which depend on them.
template <int kTiles>
struct TileWidths {
  int columns[kTiles + 1][2], row;
};

// Rows [first, first + count) of a band matrix plus `shift`, without couplings to the other rows. Rows after
// them are those of the identity. kWithRight: there are two right-hand sides, ones and `right`.
template <bool kWithRight>
struct BandRows {
  static constexpr bool kRight = kWithRight;
  const LanePositions& at;
  Band band;
  int first, count;
  double shift;
  const double* right;

  __device__ __forceinline__ int WidthOf(int unknown) const {
    return unknown < count ? band.WidthOf(first + unknown) : -1;
  }
  // Turns the widths of the previous tile row into those of `row`.
  template <int kTiles>
  __device__ __forceinline__ void NextWidths(int row, TileWidths<kTiles>* widths) const {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
#pragma unroll
      for (int k = 0; k < kTiles; ++k) widths->columns[k][c] = widths->columns[k + 1][c];
      widths->columns[kTiles][c] = WidthOf(row * kTile + at.column + c);
    }
    widths->row = WidthOf(row * kTile + at.row);
  }
  // Loads tiles [row - kTiles .. row] of a tile row, the diagonal one last, without `shift`.
  template <int kTiles>
  __device__ __forceinline__ void Load(int row, const TileWidths<kTiles>& widths,
                                       double (&tiles)[kTiles + 1][2]) const {
#pragma unroll
    for (int k = 0; k <= kTiles; ++k) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const int i = row * kTile + at.row, j = (row - kTiles + k) * kTile + at.column + c;
        const int low = k < kTiles ? j : min(i, j), high = k < kTiles ? i : max(i, j);
        const int width = k < kTiles || j <= i ? widths.columns[k][c] : widths.row;
        tiles[k][c] =
            low >= 0 && high < count && high - low <= width ? band.Value(first + high, first + low) : 0;
      }
    }
  }
  // Adds `shift` to the diagonal tile of a tile row, once its entries have arrived.
  __device__ __forceinline__ void AddShift(int row, double (&diagonal)[2]) const {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      if (at.row == at.column + c) diagonal[c] = row * kTile + at.row < count ? diagonal[c] + shift : 1;
    }
  }
  __device__ __forceinline__ void LoadRight(int row, double (&own)[2]) const {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int j = row * kTile + at.column + c;
      own[c] = 0;
      if (kRight && j < count && at.row < 2) own[c] = at.row == 0 ? 1 : right[first + j];
    }
  }
};

// sum[k] += rows[k] other^T for kRows tiles one above the other.
template <int kRows>
__device__ __forceinline__ void AddProducts(const double (&rows)[kRows][2], const double (&other)[2],
                                            double (&sum)[kRows][2]) {
#pragma unroll
  for (int k = 0; k < kRows; k += 2) {
    const int next = k + 1 < kRows ? k + 1 : k;
    double d[4] = {sum[k][0], sum[k][1], sum[next][0], sum[next][1]};
    MultiplyAdd16(rows[k], rows[next], other, d);
    sum[k][0] = d[0];
    sum[k][1] = d[1];
    if (next != k) {
      sum[next][0] = d[2];
      sum[next][1] = d[3];
    }
  }
}

// The moving window: its tiles (k, l), the right-hand sides beside the tile rows, and the diagonal as loaded.
template <int kTiles, bool kRight>
struct FactorWindow {
  static constexpr int kLast = kRight ? kTiles : kTiles - 1;  // row of x that is used
  double s[kTiles + 1][kTiles + 1][2], right[kTiles + 1][2], diagonal[kTiles + 1];

  // Fills the window with the first tile rows, and makes `widths` those of the next one.
  template <typename Rows>
  __device__ __forceinline__ void Fill(const Rows& rows, TileWidths<kTiles>* widths) {
#pragma unroll
    for (int k = 0; k <= kTiles; ++k) widths->columns[k][0] = widths->columns[k][1] = -1;
    rows.NextWidths(0, widths);
#pragma unroll
    for (int k = 0; k <= kTiles; ++k) {
      double row[kTiles + 1][2];
      rows.Load(k, *widths, row);
      rows.NextWidths(k + 1, widths);
      rows.AddShift(k, row[kTiles]);
      rows.LoadRight(k, right[k]);
      diagonal[k] = rows.at.row % 2 == 0 ? row[kTiles][0] : row[kTiles][1];
#pragma unroll
      for (int l = 0; l <= k; ++l) {
        s[k][l][0] = row[l + kTiles - k][0];
        s[k][l][1] = row[l + kTiles - k][1];
      }
    }
  }

  // Subtracts the contribution of the first column (x and its right-hand sides), and moves on by a tile.
  // `coming` is the next tile row.
  __device__ __forceinline__ void Advance(const LanePositions& at, const double (&x)[kTiles][2],
                                          const double (&x_right)[2], const double (&coming)[kTiles + 1][2],
                                          const double (&coming_right)[2]) {
#pragma unroll
    for (int l = 0; l < kTiles; ++l) {
      const double minus[2] = {-x[l][0], -x[l][1]};
#pragma unroll
      for (int k = l; k <= kLast; k += 2) {
        const int next = k + 1 <= kLast ? k + 1 : k;
        const double(&top)[2] = k < kTiles ? s[k + 1][l + 1] : right[l + 1];
        const double(&bottom)[2] = next < kTiles ? s[next + 1][l + 1] : right[l + 1];
        double d[4] = {top[0], top[1], bottom[0], bottom[1]};
        MultiplyAdd16(k < kTiles ? x[k] : x_right, next < kTiles ? x[next] : x_right, minus, d);
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          (k < kTiles ? s[k][l] : right[l])[c] = d[c];
          if (next != k) (next < kTiles ? s[next][l] : right[l])[c] = d[2 + c];
        }
      }
    }
#pragma unroll
    for (int k = 0; k < kTiles; ++k) diagonal[k] = diagonal[k + 1];
    diagonal[kTiles] = at.row % 2 == 0 ? coming[kTiles][0] : coming[kTiles][1];
#pragma unroll
    for (int c = 0; c < 2; ++c) {
#pragma unroll
      for (int l = 0; l <= kTiles; ++l) s[kTiles][l][c] = coming[l][c];
      right[kTiles][c] = coming_right[c];
    }
  }
};

// Calls keep.Column(column, L^-1, L^-T, x, x_right) for each tile column, with X of the tiles below and of
// the right-hand sides. transpose: kTransposeSize doubles of this warp's shared memory.
template <int kTiles, typename Rows, typename Keep>
__device__ __forceinline__ void FactorTiled(const Rows& rows, int columns, double* transpose,
                                            const Keep& keep) {
  FactorWindow<kTiles, Rows::kRight> window;
  constexpr int kUsed = FactorWindow<kTiles, Rows::kRight>::kLast + 1;
  TileWidths<kTiles> widths;
  window.Fill(rows, &widths);
  for (int column = 0; column < columns; ++column) {
    const int next_row = column + kTiles + 1;
    double coming[kTiles + 1][2], coming_right[2];
    rows.Load(next_row, widths, coming);
    rows.NextWidths(next_row + 1, &widths);
    rows.LoadRight(next_row, coming_right);

    double inverse[2], transposed[2];
    const double original = window.diagonal[0];
    const auto least = [&](int p) {
      return Rows::kRight ? rows.shift : kMinPivot * Shuffle(original, p * 4 + p / 2);
    };
    InvertFactor(rows.at, window.s[0][0], least, inverse);
    Put(transpose, rows.at, inverse);
    double below[kUsed][2], made[kUsed][2] = {}, x[kTiles][2], x_right[2] = {0, 0};
#pragma unroll
    for (int k = 0; k < kUsed; ++k) {
      below[k][0] = k < kTiles ? window.s[k + 1][0][0] : window.right[0][0];
      below[k][1] = k < kTiles ? window.s[k + 1][0][1] : window.right[0][1];
    }
    AddProducts<kUsed>(below, inverse, made);
#pragma unroll
    for (int k = 0; k < kUsed; ++k) {
      (k < kTiles ? x[k] : x_right)[0] = made[k][0];
      (k < kTiles ? x[k] : x_right)[1] = made[k][1];
    }
    __syncwarp();
    TakeTransposed(transpose, rows.at, transposed);
    __syncwarp();
    keep.Column(column, inverse, transposed, x, x_right);
    rows.AddShift(next_row, coming[kTiles]);
    window.Advance(rows.at, x, x_right, coming, coming_right);
  }
}

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_FACTOR_TILED_FACTOR_CUH_
