// The Cholesky factor of a band too wide for registers (tiled_factor.cuh), computed by a block of threads,
// with the moving window in shared memory if it fits.
//
// A step takes a tile column: it computes X of the tiles below the diagonal one, then subtracts their
// products from the window. Meanwhile one warp inverts the factor of the next diagonal tile. These inversions
// form a chain, which is the limit.
#ifndef SPEXD_CUDA_KERNELS_FACTOR_WIDE_FACTOR_CUH_
#define SPEXD_CUDA_KERNELS_FACTOR_WIDE_FACTOR_CUH_

#include "core/model/tolerances.h"
#include "cuda/kernels/factor/band.cuh"
#include "cuda/kernels/factor/factor_tile.cuh"
#include "cuda/kernels/factor/tiled_factor.cuh"
#include "cuda/kernels/factor/wide_kinds.cuh"

namespace spexd::cuda {

inline constexpr int kRightSize = 2 * kTile;  // both right-hand sides of a tile

// The positions in memory of a moving window's tiles: a triangle of slots. A tile lies at the unordered pair
// of its row's and column's slots. It keeps its place while both are in the window.
struct TriangleRing {
  int slots;
  __host__ __device__ static int Tiles(int slots) { return slots * (slots + 1) / 2; }
  __device__ int Slot(int base, int offset) const {  // slot of tile base + offset; base < slots
    const int slot = base + offset;
    return slot >= slots ? slot - slots : slot;
  }
  __device__ int Before(int base) const { return Slot(base, slots - 1); }
};

// A slot of the window, the start of its line in the triangle, and the end of the slots, all in doubles.
struct RingSlot {
  unsigned at, line, end;
  __device__ RingSlot(const TriangleRing& ring, int slot)
      : at(slot * kTileSize), line(TriangleRing::Tiles(slot) * kTileSize), end(ring.slots * kTileSize) {}
  __device__ void Next() {
    at += kTileSize;
    line += at;
    if (at == end) at = line = 0;
  }
  // Offset in the window of the tile of two slots. It lies in the line of the higher slot, so it is the
  // larger of both positions.
  __device__ int TileWith(const RingSlot& other) const { return max(line + other.at, other.line + at); }
};

__device__ __forceinline__ void LoadTwo(const double* from, double* own) {
  const double2 two = *reinterpret_cast<const double2*>(from);
  own[0] = two.x;
  own[1] = two.y;
}
__device__ __forceinline__ void StoreTwo(const double* own, double* to) {
  *reinterpret_cast<double2*>(to) = {own[0], own[1]};
}

// Memory of a block, in doubles. The window has a slot for each tile row that a step uses, and for the next
// two. `columns`: tile columns that are factored.
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
template <bool kInside, int kBlockWarps, typename Rows>
class WideFactor {
 public:
  static constexpr int kWarps = kBlockWarps;
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
    for (int column = threadIdx.x; column < columns; column += kWarps * kWarp) {
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
    return window_ + SlotOf(base, row).TileWith(SlotOf(base, column));
  }
  __device__ const double* window() const { return window_; }
  __device__ RingSlot SlotOf(int base, int offset) const { return {ring, ring.Slot(base, offset)}; }
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
  // This lane's pairs of a row of tiles: a tile row below the diagonal tile of a column or, behind the last
  // of these, the right-hand sides. A row further behind is the last one again, and may only be read.
  struct Row {
    RingSlot slot;
    double* first;     // this lane's pair of the window's first tile, or of the first right-hand sides
    bool right, mine;  // mine: this lane may write its pairs
    int shift;         // 2, as right-hand sides are a quarter of a tile
    __device__ __forceinline__ double* At(const RingSlot& column) const {
      return first + (right ? column.at >> shift : slot.TileWith(column));
    }
  };
  __device__ Row RowOf(int base, int row, int down) const {
    static_assert(kTileSize == kRightSize << 2);
    // Lanes of rows 2 to 7 have no right-hand sides. They read two doubles that are not in use, at any
    // column.
    const LanePositions& at = rows.at;
    const int last = down + (Rows::kRight ? 1 : 0);
    const bool right = Rows::kRight && row > down, there = !right || at.row < 2;
    double* const solution = there ? right_ + at.row * kTile + at.column : original_;
    return {SlotOf(base, min(row, last)), right ? solution : window_ + at.pair, right, row <= last && there,
            there ? 2 : 31};
  }
  // Number of tiles below the diagonal one that a column's band reaches. Tiles further down are zero, also in
  // the factor.
  __device__ int Down(int column) const { return ends_[column] - column; }

  // For each tile column, calls keep.Diagonal, keep.Right and, for each tile below, keep.Below; a warp each.
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
    for (int k = warp_ - 1; k >= 0 && k <= count; k += kWarps - 1) {
      const int column = first + k;
      if (column < columns_ && (k == count || ends_[column] >= row)) LoadTile(base, row, column, count, k);
    }
    if (!Rows::kRight || warp_ != kWarps - 1) return;
    double own[2];
    rows.LoadRight(row, own);
    StoreRight(base, count, own[0], own[1]);
  }
  __device__ void LoadTile(int base, int row, int column, int count, int k) const {
    const LanePositions& at = rows.at;
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

  // Computes L^-1 of the diagonal tile of a column.
  __device__ __forceinline__ void InvertDiagonal(int base, int column) const {
    const LanePositions& at = rows.at;
    double diagonal[2], inverse[2];
    at.Load(Tile(base, 0, 0), diagonal);
    diagonal[0] += at.row == at.column ? rows.shift : 0;
    diagonal[1] += at.row == at.column + 1 ? rows.shift : 0;
    const double* const original = original_ + base * kTile;
    InvertFactor(
        at, diagonal, [&](int p) { return Rows::kRight ? rows.shift : kMinPivot * original[p]; }, inverse);
    at.Store(inverse[0], inverse[1], inverses_ + column % 2 * kTileSize);
  }

  // Computes X of the tiles below the diagonal one, in the place of S.
  template <typename Keep>
  __device__ __forceinline__ void SolveColumn(int base, int column, const Keep& keep) const {
    const LanePositions& at = rows.at;
    const double* const inverse_tile = inverses_ + column % 2 * kTileSize;
    double inverse[2], transposed[2];
    at.Load(inverse_tile, inverse);
    at.LoadTransposed(inverse_tile, transposed);
    const int down = Down(column);
    for (int k = 1 + warp_; k <= down; k += kWarps) {
      double* const tile = Tile(base, k, 0);
      double s[2], x[2] = {0, 0};
      at.Load(tile, s);
      MultiplyAdd8(s, inverse, x);
      at.Store(x[0], x[1], tile);
      keep.Below(column, k, transposed, x);
    }
    if (warp_ != kWarps - 1) return;
    if constexpr (Rows::kRight) {
      double u[2], x[2] = {0, 0};
      LoadRight(base, 0, u);
      MultiplyAdd8(u, inverse, x);
      StoreRight(base, 0, x[0], x[1]);
      keep.Right(column, transposed, x);
    }
    keep.Diagonal(column, inverse, transposed);
    keep.Beyond(column, down, tiles);
  }

  // Subtracts the products of a column's tiles, by pairs of rows; the right-hand sides are the row behind the
  // last. The first warp takes the product of the next diagonal tile, and goes on with that tile.
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
    const int left = max(count - 1, 0), others = kWarps - 1;
    MultiplyPairs(x, 1 + left * (warp_ - 1) / others, 1 + left * warp_ / others);
  }

  // X of a column: its slot, its tiles below the diagonal one, and how many later columns its products are
  // for.
  struct ColumnX {
    int base, down, products;
    __device__ int last() const { return down + (Rows::kRight ? 1 : 0); }
  };

  // The two tiles from which products of two rows of X with another row are subtracted, and that other row.
  struct Product {
    double *top, *bottom;
    double other[2], d[4];

    __device__ __forceinline__ Product(const Row& above, const Row& below, const double* x,
                                       const RingSlot& column)
        : top(above.At(column)), bottom(below.At(column)) {
      LoadTwo(x, other);
      LoadTwo(top, d);
      LoadTwo(bottom, d + 2);
    }
  };

  // Subtracts products [begin, end), counted over pairs of rows (1, 2), (3, 4) .. and over l.
  __device__ __forceinline__ void MultiplyPairs(const ColumnX& x, int begin, int end) const {
    const RingSlot own(ring, x.base);
    const double* const pairs = window_ + rows.at.pair;
    int first = 0;
    for (int row = 1; row <= x.last() && first < end; row += 2) {
      const int most = min(row + 1, x.products), from = max(begin - first, 0), to = min(end - first, most);
      first += most;
      if (from >= to) continue;
      const Row top = RowOf(x.base, row, x.down), bottom = RowOf(x.base, row + 1, x.down);
      double a[2], b[2];
      LoadTwo(top.At(own), a);
      LoadTwo(bottom.At(own), b);
      const double minus_a[2] = {-a[0], -a[1]}, minus_b[2] = {-b[0], -b[1]};
      RingSlot column = SlotOf(x.base, from + 1);
      const int both = min(to, row);
      int l = from + 1;
      // Two products at a time do not wait for each other.
      for (; l < both; l += 2) {
        Product even(top, bottom, pairs + own.TileWith(column), column);
        column.Next();
        Product odd(top, bottom, pairs + own.TileWith(column), column);
        column.Next();
        MultiplyAdd16(minus_a, minus_b, even.other, even.d);
        MultiplyAdd16(minus_a, minus_b, odd.other, odd.d);
        if (top.mine) StoreTwo(even.d, even.top);
        if (bottom.mine) StoreTwo(even.d + 2, even.bottom);
        if (top.mine) StoreTwo(odd.d, odd.top);
        if (bottom.mine) StoreTwo(odd.d + 2, odd.bottom);
      }
      const auto add_one = [&](const Row& above, bool writes) {
        Product one(above, bottom, pairs + own.TileWith(column), column);
        column.Next();
        MultiplyAdd16(minus_a, minus_b, one.other, one.d);
        if (writes) StoreTwo(one.d, one.top);
        if (bottom.mine) StoreTwo(one.d + 2, one.bottom);
      };
      if (l <= both) {
        add_one(top, top.mine);
        ++l;
      }
      if (l <= to) add_one(bottom, false);  // on the lower row's diagonal
    }
  }

  const int columns_, warp_;
  double *inverses_, *right_, *original_;
  int32_t* ends_;
  double* window_;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_FACTOR_WIDE_FACTOR_CUH_
