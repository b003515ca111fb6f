// The Cholesky factor of a band too wide for registers (tiled_factor.cuh), computed by a warp, with the
// moving window in shared memory if it fits.
#ifndef SPEXD_CUDA_KERNELS_WIDE_FACTOR_CUH_
#define SPEXD_CUDA_KERNELS_WIDE_FACTOR_CUH_

#include "core/model/tolerances.h"
#include "cuda/kernels/band.cuh"
#include "cuda/kernels/factor_tile.cuh"
#include "cuda/kernels/tiled_factor.cuh"

namespace spexd::cuda {

inline constexpr int kRightSize = 2 * kTile;  // both right-hand sides of a tile

// Places in memory of the tiles of a moving window of tile rows and columns: a triangle of slots. A tile lies
// at the unordered pair of its row's and column's slots. It keeps its place while both are in the window.
struct TriangleRing {
  int slots;
  __host__ __device__ static int Tiles(int slots) { return slots * (slots + 1) / 2; }
  __device__ int Slot(int base, int offset) const {  // slot of tile base + offset, where base is reduced
    const int slot = base + offset;
    return slot >= slots ? slot - slots : slot;
  }
  __device__ static int At(int slot, int other) {
    const int high = max(slot, other), low = min(slot, other);
    return (high * (high + 1) / 2 + low) * kTileSize;
  }
};

// Memory of one warp, in doubles: a triangle of tiles (`tiles` + 2 each way), the right-hand sides, and the
// diagonal as it was loaded.
struct WideWindow {
  int slots, right, original, total;
  __host__ __device__ explicit WideWindow(int tiles) {
    slots = tiles + 2;
    right = TriangleRing::Tiles(slots) * kTileSize;
    original = right + slots * kRightSize;
    total = original + slots * kTile;
  }
};

// kInside: the window lies in shared memory.
template <bool kInside, typename Rows>
struct WideFactor {
  const Rows& rows;
  const TriangleRing ring;
  const int tiles;  // most tiles below the diagonal one
  double *window, *right, *original, *turn;

  __device__ WideFactor(const Rows& of, int tiles_below, double* memory, double* turn_memory)
      : rows(of),
        ring{WideWindow(tiles_below).slots},
        tiles(tiles_below),
        window(memory),
        right(memory + WideWindow(tiles_below).right),
        original(memory + WideWindow(tiles_below).original),
        turn(turn_memory) {}

  __device__ double* Tile(int base, int row, int column) const {
    return window + TriangleRing::At(ring.Slot(base, row), ring.Slot(base, column));
  }
  // This lane's pair of a right-hand tile, whose other rows are zero.
  __device__ void LoadRight(int base, int tile, double (&own)[2]) const {
    const double* from = right + ring.Slot(base, tile) * kRightSize + rows.at.row * kTile + rows.at.column;
    own[0] = rows.at.row < 2 ? from[0] : 0;
    own[1] = rows.at.row < 2 ? from[1] : 0;
  }
  __device__ void StoreRight(int base, int tile, double own0, double own1) const {
    if (rows.at.row >= 2) return;
    double* to = right + ring.Slot(base, tile) * kRightSize + rows.at.row * kTile + rows.at.column;
    to[0] = own0;
    to[1] = own1;
  }

  // Number of tiles below the diagonal one that a column's band reaches. Tiles further down are zero, also in
  // the factor, since later bins reach at least as far.
  __device__ int Down(int column) const {
    const int last = min((column + 1) * kTile, rows.count) - 1;
    const int end = min(last + rows.band.WidthOf(rows.first + last), rows.count - 1);
    return min(end / kTile - column, tiles);
  }

  // Loads tile row first + count and its right-hand sides. Its tiles from column `first` (at slot `base`) to
  // the diagonal one lie in the window. Rows beyond the end are those of the identity. Asynchronous except
  // for constants.
  __device__ void Load(int base, int first, int count) const {
    const LanePlaces& at = rows.at;
    for (int k = 0; k <= count; ++k) {
      if (k < count && ((first + count) * kTile >= rows.count || Down(first + k) < count - k)) continue;
      double* const tile = Tile(base, count, k);
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const int i = (first + count) * kTile + at.row, j = (first + k) * kTile + at.column + c;
        const int low = rows.first + min(i, j), high = rows.first + max(i, j);
        if (max(i, j) < rows.count && high - low <= rows.band.WidthOf(low)) {
          const double* from = rows.band.values + static_cast<int64_t>(high - low) * rows.band.size + low;
          if constexpr (kInside) {
            CopyAsync8(tile + at.pair + c, from);
          } else {
            tile[at.pair + c] = *from;
          }
        } else {
          tile[at.pair + c] = i == j && i >= rows.count ? 1 : 0;
        }
        if (i == j)
          original[ring.Slot(base, count) * kTile + at.row] = i < rows.count ? rows.band.At(low, low) : 1;
      }
    }
    double own[2];
    rows.LoadRight(first + count, own);
    StoreRight(base, count, own[0], own[1]);
  }

  // Calls keep.Diagonal, keep.Right and, for each tile below, keep.Below, for each tile column.
  template <typename Keep>
  __device__ void Factor(int columns, const Keep& keep) const {
    for (int row = 0; row <= tiles; ++row) Load(0, 0, row);
    CopyAsyncCommit();
    for (int column = 0, base = 0; column < columns; ++column, base = ring.Slot(base, 1)) {
      CopyAsyncWait<0>();
      __syncwarp();
      Load(ring.Slot(base, 1), column + 1, tiles);  // into the slot of the previous column
      CopyAsyncCommit();
      const int down = Down(column);
      double x_right[2] = {0, 0};
      FactorColumn(base, column, down, keep, x_right);
      __syncwarp();
      Update(base, down, x_right);
      __syncwarp();
    }
    CopyAsyncWait<0>();
    __syncwarp();
  }

  template <typename Keep>
  __device__ void FactorColumn(int base, int column, int down, const Keep& keep, double (&x_right)[2]) const {
    const LanePlaces& at = rows.at;
    double diagonal[2], inverse[2], turned[2];
    at.Load(Tile(base, 0, 0), diagonal);
    diagonal[0] += at.row == at.column ? rows.shift : 0;
    diagonal[1] += at.row == at.column + 1 ? rows.shift : 0;
    const double* const least = original + base * kTile;
    InvertFactor(
        at, diagonal, [&](int p) { return Rows::kRight ? rows.shift : kLeastPivot * least[p]; }, inverse);
    Put(turn, at, inverse);
    __syncwarp();
    TakeTurned(turn, at, turned);
    if constexpr (Rows::kRight) {
      double u[2];
      LoadRight(base, 0, u);
      MultiplyAdd8(u, inverse, x_right);
      keep.Right(column, turned, x_right);
    }
    keep.Diagonal(column, inverse, turned);
    for (int k = 1; k <= down; ++k) {
      double* const tile = Tile(base, k, 0);
      double s[2], x[2] = {0, 0};
      at.Load(tile, s);
      MultiplyAdd8(s, inverse, x);
      at.Store(x[0], x[1], tile);  // X takes the place of S
      keep.Below(column, k, turned, x);
    }
    keep.Beyond(column, down, tiles);
  }

  __device__ void Update(int base, int down, const double (&x_right)[2]) const {
    const LanePlaces& at = rows.at;
    for (int l = 1; l <= down; ++l) {
      double x_l[2];
      at.Load(Tile(base, l, 0), x_l);
      const double minus[2] = {-x_l[0], -x_l[1]};
      if constexpr (Rows::kRight) {
        double of_right[2];
        LoadRight(base, l, of_right);
        MultiplyAdd8(x_right, minus, of_right);
        StoreRight(base, l, of_right[0], of_right[1]);
      }
      for (int k = l; k <= down; k += 2) {
        const int next = min(k + 1, down);
        double *top = Tile(base, k, l), *bottom = Tile(base, next, l);
        double a[2], b[2], t[2], s[2];
        at.Load(Tile(base, k, 0), a);
        at.Load(Tile(base, next, 0), b);
        at.Load(top, t);
        at.Load(bottom, s);
        double d[4] = {t[0], t[1], s[0], s[1]};
        MultiplyAdd16(a, b, minus, d);
        at.Store(d[0], d[1], top);
        if (next != k) at.Store(d[2], d[3], bottom);
      }
    }
  }
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_WIDE_FACTOR_CUH_
