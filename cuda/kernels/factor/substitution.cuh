// x = (L L^T)^-1 b for unknowns of a factored matrix, computed by a warp.
#ifndef SPEXD_CUDA_KERNELS_FACTOR_SUBSTITUTION_CUH_
#define SPEXD_CUDA_KERNELS_FACTOR_SUBSTITUTION_CUH_

#include "cuda/kernels/factor/band.cuh"

namespace spexd::cuda {

class Substitution {
 public:
  // The unknowns are [first, end), whole tiles except at the matrix's end; all others are left out. `values`:
  // buffer for x, whole tiles. Factorise documents what `factors` hold.
  __device__ Substitution(const FactorArrays& factors, int matrix, int first, int end, double* values)
      : first_(first),
        end_(end),
        first_tile_(first / kTile),
        tiles_(TilesOf(end - first)),
        near_(min(factors.tiles, kNear)),
        values_(values) {
    column_size_ = static_cast<int64_t>(1 + factors.tiles) * kTileSize;
    first_column_ =
        factors.values + (static_cast<int64_t>(matrix) * factors.columns + first_tile_) * column_size_;
    ends_ = factors.ends + matrix * factors.columns + first_tile_;
    starts_ = factors.starts + matrix * factors.columns + first_tile_;
  }

  // Computes x = F^T F b, where F is L^-1 without the rows before `core`, which begins a tile. right(unknown)
  // returns b, and is called once for each unknown. Returns this lane's share of |F b|^2.
  template <typename Right>
  __device__ double Solve(int core, const Right& right) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    for (int i = lane; i < tiles_ * kTile; i += kWarp) values_[i] = first_ + i < end_ ? right(first_ + i) : 0;
    __syncwarp();
    Forward();
    for (int i = lane; i < core - first_; i += kWarp) values_[i] = 0;
    __syncwarp();
    return Backward();
  }

  // Calls use(unknown, x) for unknowns [begin, end), one lane each in turn.
  template <typename Use>
  __device__ void ForEach(int begin, int end, const Use& use) const {
    for (int i = begin + static_cast<int>(threadIdx.x) % kWarp; i < end; i += kWarp)
      use(i, values_[i - first_]);
  }

 private:
  static constexpr int kNear = 2;   // tiles beside the diagonal one that are fetched ahead, like that one
  static constexpr int kBatch = 4;  // tiles further out (beside holes) that are fetched at once
  // Rows fetched ahead, because computing a row takes less time than fetching its tiles. With more, fewer
  // warps would share a multiprocessor.
  static constexpr int kAhead = 2;
  struct Tiles {
    double inverse[2], beside[kNear][2];
  };

  __device__ const double* Tile(int column, int k) const {
    return first_column_ + column * column_size_ + k * kTileSize;
  }

  // Always loads an existing tile, so that the load need not wait for the depth. The caller ignores unused
  // tiles.
  __device__ __forceinline__ Tiles RowTiles(int row) const {
    Tiles of;
#pragma unroll
    for (int k = 1; k <= kNear; ++k) LoadPair(Tile(InRange(row - k), min(k, near_)), of.beside[k - 1]);
    return of;
  }
  __device__ __forceinline__ Tiles ColumnTiles(int column) const {
    Tiles of;
    const double* const tiles = Tile(InRange(column), 0);
    LoadPair(tiles, of.inverse);
#pragma unroll
    for (int k = 1; k <= kNear; ++k) LoadPair(tiles + min(k, near_) * kTileSize, of.beside[k - 1]);
    return of;
  }
  // Numbers of tiles before the diagonal one of a row, and below that of a column.
  __device__ __forceinline__ int DepthBefore(int row) const { return first_tile_ + row - starts_[row]; }
  __device__ __forceinline__ int DepthAfter(int column) const { return ends_[column] - first_tile_ - column; }
  __device__ __forceinline__ int InRange(int column) const { return min(max(column, 0), tiles_ - 1); }

  // z = b minus the contributions of the tiles before.
  __device__ void Forward() const {
    Tiles ring[kAhead];
#pragma unroll
    for (int a = 0; a < kAhead; ++a) ring[a] = RowTiles(a);
    for (int base = 0; base < tiles_; base += kAhead) {
#pragma unroll
      for (int a = 0; a < kAhead; ++a) {
        const int row = base + a;
        if (row >= tiles_) break;
        const Tiles now = ring[a];
        ring[a] = RowTiles(row + kAhead);
        const int before = DepthBefore(row);
        double sum = 0;
#pragma unroll 1
        for (int far = min(row, before); far > kNear; far -= kBatch) {
          double y[kBatch][2];
#pragma unroll
          for (int q = 0; q < kBatch; ++q) LoadPair(Tile(row - max(far - q, 1), max(far - q, 1)), y[q]);
#pragma unroll
          for (int q = 0; q < kBatch; ++q) {
            const int k = far - q;
            if (k > kNear) sum = AddProduct(row - k, y[q], sum);
          }
        }
#pragma unroll
        for (int k = kNear; k > 0; --k) {
          if (row >= k && k <= near_) sum = AddProduct(row - k, now.beside[k - 1], sum);
        }
        sum += ShuffleXor(sum, 1);
        sum += ShuffleXor(sum, 2);
        if (at_.column == 0) values_[row * kTile + at_.row] -= sum;
        __syncwarp();
      }
    }
  }
  __device__ __forceinline__ double AddProduct(int row, const double (&y)[2], double sum) const {
    const double* const z = values_ + row * kTile + at_.column;
    return fma(y[0], z[0], fma(y[1], z[1], sum));
  }

  // x = L^-T L^-1 z minus the contributions of the tiles after. Returns this lane's share of |L^-1 z|^2.
  __device__ double Backward() const {
    Tiles ring[kAhead];
#pragma unroll
    for (int a = 0; a < kAhead; ++a) ring[a] = ColumnTiles(tiles_ - 1 - a);
    double own[2];
    double square = ApplyDiagonal(ring[0].inverse, tiles_ - 1, own);
    __syncwarp();
    for (int base = tiles_ - 1; base >= 0; base -= kAhead) {
#pragma unroll
      for (int a = 0; a < kAhead; ++a) {
        const int row = base - a;
        if (row < 0) break;
        const Tiles now = ring[a];
        ring[a] = ColumnTiles(row - kAhead);
        const int after = DepthAfter(row);
        double x[2] = {own[0], own[1]};
        if (row > 0) square += ApplyDiagonal(ring[(a + 1) % kAhead].inverse, row - 1, own);
#pragma unroll 1
        for (int far = min(tiles_ - 1 - row, after); far > kNear; far -= kBatch) {
          double y[kBatch][2];
#pragma unroll
          for (int q = 0; q < kBatch; ++q) LoadPair(Tile(row, max(far - q, 0)), y[q]);
#pragma unroll
          for (int q = 0; q < kBatch; ++q) {
            if (far - q > kNear) SubtractProduct(row + far - q, y[q], x);
          }
        }
#pragma unroll
        for (int k = kNear; k > 0; --k) {
          if (row + k < tiles_ && k <= near_) SubtractProduct(row + k, now.beside[k - 1], x);
        }
        // Sums over the tile's rows: half of the lanes go on with each column.
        const bool odd = at_.row % 2 != 0;
        const double keep = odd ? x[1] : x[0], give = odd ? x[0] : x[1];
        double sum = keep + ShuffleXor(give, 4);
        sum += ShuffleXor(sum, 8);
        sum += ShuffleXor(sum, 16);
        if (at_.row < 2) values_[row * kTile + at_.column + at_.row] = sum;
        __syncwarp();
      }
    }
    return square;
  }
  __device__ __forceinline__ double ApplyDiagonal(const double (&inverse)[2], int row, double (&x)[2]) const {
    double u = AddProduct(row, inverse, 0);
    u += ShuffleXor(u, 1);
    u += ShuffleXor(u, 2);
    x[0] = inverse[0] * u;
    x[1] = inverse[1] * u;
    return at_.column == 0 ? u * u : 0;
  }
  __device__ __forceinline__ void SubtractProduct(int row, const double (&y)[2], double (&x)[2]) const {
    const double other = values_[row * kTile + at_.row];
    x[0] = fma(-y[0], other, x[0]);
    x[1] = fma(-y[1], other, x[1]);
  }

  const LanePositions at_;
  const int first_, end_, first_tile_, tiles_, near_;
  double* const values_;
  const double* first_column_;
  int64_t column_size_;
  const int32_t *ends_, *starts_;  // from the first tile row on
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_FACTOR_SUBSTITUTION_CUH_
