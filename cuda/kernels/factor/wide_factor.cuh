// The Cholesky factor of a band too wide for registers (tiled_factor.cuh), computed by a block of threads,
// with the moving window in shared memory if it fits.
//
// A step takes a tile column: X of the tiles below the diagonal one, then their products from the window.
// Meanwhile one warp inverts the factor of the next diagonal tile; these inversions are a chain, and the
// limit.
#ifndef SPEXD_CUDA_KERNELS_FACTOR_WIDE_FACTOR_CUH_
#define SPEXD_CUDA_KERNELS_FACTOR_WIDE_FACTOR_CUH_

#include "core/model/tolerances.h"
#include "cuda/kernels/factor/band.cuh"
#include "cuda/kernels/factor/factor_tile.cuh"
#include "cuda/kernels/factor/tiled_factor.cuh"
#include "cuda/kernels/factor/wide_kinds.cuh"

namespace spexd::cuda {

inline constexpr int kWideWarps = 8;
inline constexpr int kWideThreads = kWideWarps * kWarp;
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
  __device__ int Before(int base) const { return Slot(base, slots - 1); }
  __device__ static int At(int slot, int other) {
    const int high = max(slot, other), low = min(slot, other);
    return (high * (high + 1) / 2 + low) * kTileSize;
  }
};

// Memory of a block, in doubles. The window has a slot for each tile that a step uses, and for two rows that
// come. `columns`: tile columns that are factored.
struct WideMemory {
  int slots, right, original, ends, near, window;
  __host__ __device__ WideMemory(int tiles, int columns) {
    slots = tiles + 3;
    right = 2 * kTileSize;                          // behind L^-1 of this and the next diagonal tile
    original = right + slots * kRightSize;          // the diagonal as it was loaded
    ends = original + slots * kTile;                // one int32 for each column
    near = (ends + (columns + 1) / 2 + 1) / 2 * 2;  // always in shared memory, unlike the window
    window = TriangleRing::Tiles(slots) * kTileSize;
  }
};

// kInside: the window lies in shared memory. All threads of a block call the public functions.
template <bool kInside, typename Rows>
class WideFactor {
 public:
  __device__ WideFactor(const Rows& of, int tiles_below, int columns, double* near, double* window)
      : rows(of),
        ring{tiles_below + 3},
        tiles(tiles_below),
        columns_(columns),
        warp_(threadIdx.x / kWarp),
        inverses_(near),
        right_(near + WideMemory(tiles_below, columns).right),
        original_(near + WideMemory(tiles_below, columns).original),
        ends_(reinterpret_cast<int32_t*>(near + WideMemory(tiles_below, columns).ends)),
        window_(window) {
    // Later bins reach at least as far as earlier ones.
    for (int column = threadIdx.x; column < columns; column += kWideThreads) {
      const int last = min((column + 1) * kTile, rows.count) - 1;
      ends_[column] =
          min(min(last + rows.band.WidthOf(rows.first + last), rows.count - 1) / kTile, column + tiles);
    }
    __syncthreads();
  }

  const Rows& rows;
  const TriangleRing ring;
  const int tiles;  // most tiles below the diagonal one

  __device__ double* Tile(int base, int row, int column) const {
    return window_ + TriangleRing::At(ring.Slot(base, row), ring.Slot(base, column));
  }
  // This lane's pair of a right-hand tile, whose other rows are zero.
  __device__ void LoadRight(int base, int tile, double (&own)[2]) const {
    const double* from = right_ + ring.Slot(base, tile) * kRightSize + rows.at.row * kTile + rows.at.column;
    own[0] = rows.at.row < 2 ? from[0] : 0;
    own[1] = rows.at.row < 2 ? from[1] : 0;
  }
  __device__ void StoreRight(int base, int tile, double own0, double own1) const {
    if (rows.at.row >= 2) return;
    double* to = right_ + ring.Slot(base, tile) * kRightSize + rows.at.row * kTile + rows.at.column;
    to[0] = own0;
    to[1] = own1;
  }
  // Number of tiles below the diagonal one that a column's band reaches. Tiles further down are zero, also in
  // the factor.
  __device__ int Down(int column) const { return ends_[column] - column; }

  // Calls keep.Diagonal, keep.Right and, for each tile below, keep.Below, for each tile column; a warp each.
  template <typename Keep>
  __device__ void Factor(const Keep& keep) const {
    for (int row = 0; row <= tiles + 1; ++row) LoadRow(0, 0, row);
    CopyAsyncCommit();
    CopyAsyncWait<0>();
    __syncthreads();
    if (warp_ == 0) InvertDiagonal(0, 0);
    __syncthreads();
    for (int column = 0, base = 0; column < columns_; ++column, base = ring.Slot(base, 1)) {
      SolveColumn(base, column, keep);
      __syncthreads();
      Update(base, column);
      LoadRow(base, column, tiles + 2);  // into the slot of the column before
      CopyAsyncCommit();
      CopyAsyncWait<1>();  // the row loaded a step before is complete
      __syncthreads();
    }
    CopyAsyncWait<0>();
    __syncthreads();
  }

 private:
  // Loads tile row first + count and its right-hand sides; tile column `first` is at slot `base`. Rows beyond
  // the end are those of the identity. Asynchronous if kInside, except for constants. The first warp has
  // other work.
  __device__ void LoadRow(int base, int first, int count) const {
    const int row = first + count;
    if (row * kTile >= rows.count) return;
    for (int k = warp_ - 1; k >= 0 && k <= count; k += kWideWarps - 1) {
      const int column = first + k;
      if (column < columns_ && (k == count || ends_[column] >= row)) LoadTile(base, row, column, count, k);
    }
    if (!Rows::kRight || warp_ != kWideWarps - 1) return;
    double own[2];
    rows.LoadRight(row, own);
    StoreRight(base, count, own[0], own[1]);
  }
  __device__ void LoadTile(int base, int row, int column, int count, int k) const {
    const LanePlaces& at = rows.at;
    double* const tile = Tile(base, count, k);
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int i = row * kTile + at.row, j = column * kTile + at.column + c;
      const int low = rows.first + min(i, j), high = rows.first + max(i, j);
      if (max(i, j) < rows.count && high - low <= rows.band.WidthOf(low)) {
        const double* from = rows.band.values + static_cast<int64_t>(high - low) * rows.band.size + low;
        if constexpr (kInside) {
          CopyAsync8(tile + at.pair + c, from);
        } else {
          tile[at.pair + c] = *from;
        }
      } else {
        tile[at.pair + c] = i == j ? 1 : 0;
      }
      if (!Rows::kRight && i == j)
        original_[ring.Slot(base, count) * kTile + at.row] = i < rows.count ? rows.band.At(low, low) : 1;
    }
  }

  // L^-1 of the diagonal tile of a column.
  __device__ __forceinline__ void InvertDiagonal(int base, int column) const {
    const LanePlaces& at = rows.at;
    double diagonal[2], inverse[2];
    at.Load(Tile(base, 0, 0), diagonal);
    diagonal[0] += at.row == at.column ? rows.shift : 0;
    diagonal[1] += at.row == at.column + 1 ? rows.shift : 0;
    const double* const original = original_ + base * kTile;
    InvertFactor(
        at, diagonal, [&](int p) { return Rows::kRight ? rows.shift : kLeastPivot * original[p]; }, inverse);
    at.Store(inverse[0], inverse[1], inverses_ + column % 2 * kTileSize);
  }

  // X of the tiles below takes the place of S.
  template <typename Keep>
  __device__ __forceinline__ void SolveColumn(int base, int column, const Keep& keep) const {
    const LanePlaces& at = rows.at;
    const double* const inverse_tile = inverses_ + column % 2 * kTileSize;
    double inverse[2], turned[2];
    at.Load(inverse_tile, inverse);
    at.LoadTransposed(inverse_tile, turned);
    const int down = Down(column);
    for (int k = 1 + warp_; k <= down; k += kWideWarps) {
      double* const tile = Tile(base, k, 0);
      double s[2], x[2] = {0, 0};
      at.Load(tile, s);
      MultiplyAdd8(s, inverse, x);
      at.Store(x[0], x[1], tile);
      keep.Below(column, k, turned, x);
    }
    if (warp_ != kWideWarps - 1) return;
    if constexpr (Rows::kRight) {
      double u[2], x[2] = {0, 0};
      LoadRight(base, 0, u);
      MultiplyAdd8(u, inverse, x);
      StoreRight(base, 0, x[0], x[1]);
      keep.Right(column, turned, x);
    }
    keep.Diagonal(column, inverse, turned);
    keep.Beyond(column, down, tiles);
  }

  // The products of a column's tiles, row by row in pairs of rows; the right-hand sides are the row behind
  // the last. The first warp takes the next diagonal tile's and goes on with that tile.
  __device__ __forceinline__ void Update(int base, int column) const {
    const ColumnX x = {base, Down(column), min(Down(column), columns_ - 1 - column)};
    if (warp_ == 0) {
      MultiplyPairs(x, 0, 1);
      __syncwarp();
      if (column + 1 < columns_) InvertDiagonal(ring.Slot(base, 1), column + 1);
      return;
    }
    int count = 0;
    for (int row = 1; row <= x.last(); row += 2) count += min(row + 1, x.products);
    const int left = max(count - 1, 0), others = kWideWarps - 1;
    MultiplyPairs(x, 1 + left * (warp_ - 1) / others, 1 + left * warp_ / others);
  }

  // X of a column: its slot, its tiles below the diagonal one, and how many later columns its products are
  // for.
  struct ColumnX {
    int base, down, products;
    __device__ int last() const { return down + (Rows::kRight ? 1 : 0); }
    __device__ bool IsRight(int row) const { return Rows::kRight && row > down; }
  };

  // This lane's pairs of X of a row, and of the window where its product with row l goes.
  __device__ __forceinline__ void LoadX(const ColumnX& x, int row, double (&own)[2]) const {
    if (x.IsRight(row)) {
      LoadRight(x.base, 0, own);
    } else {
      rows.at.Load(Tile(x.base, row, 0), own);
    }
  }
  __device__ __forceinline__ void LoadS(const ColumnX& x, int row, int l, double* s) const {
    double own[2];
    if (x.IsRight(row)) {
      LoadRight(x.base, l, own);
    } else {
      rows.at.Load(Tile(x.base, row, l), own);
    }
    s[0] = own[0];
    s[1] = own[1];
  }
  __device__ __forceinline__ void StoreS(const ColumnX& x, int row, int l, const double* s) const {
    if (x.IsRight(row)) {
      StoreRight(x.base, l, s[0], s[1]);
    } else {
      rows.at.Store(s[0], s[1], Tile(x.base, row, l));
    }
  }

  // Products [begin, end), counted over pairs of rows (1, 2), (3, 4) .. and over l.
  __device__ __forceinline__ void MultiplyPairs(const ColumnX& x, int begin, int end) const {
    int first = 0;
    for (int row = 1; row <= x.last() && first < end; row += 2) {
      const int most = min(row + 1, x.products), from = max(begin - first, 0), to = min(end - first, most);
      first += most;
      if (from >= to) continue;
      const bool two = row < x.last();
      double a[2], b[2] = {0, 0};
      LoadX(x, row, a);
      if (two) LoadX(x, row + 1, b);
      for (int l = from + 1; l <= to; ++l) {
        double other[2], d[4] = {};
        rows.at.Load(Tile(x.base, l, 0), other);
        const double minus[2] = {-other[0], -other[1]};
        if (l <= row) LoadS(x, row, l, d);
        if (two) LoadS(x, row + 1, l, d + 2);
        MultiplyAdd16(a, b, minus, d);
        if (l <= row) StoreS(x, row, l, d);
        if (two) StoreS(x, row + 1, l, d + 2);
      }
    }
  }

  const int columns_, warp_;
  double *inverses_, *right_, *original_;
  int32_t* ends_;
  double* window_;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_FACTOR_WIDE_FACTOR_CUH_
