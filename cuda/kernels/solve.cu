// Stage "solve": A + Lambda = L L^T by tiles of 8 x 8, and the flux.
//
// A block of threads takes a chunk of a group and moves a window of the band through shared memory. A step
// takes one tile column c, with the inverse of the diagonal tile's factor at hand:
//   X_k = S_k L^-T,   S_kl -= X_k X_l^T,   b_k -= X_k z,   z = L^-1 b_c.
// While the other warps update the window, the first one updates and factors the next diagonal tile, which is
// what a step waits for. The band's entries come straight from the pairs of the normal equations. Kept are
//   D^-1 = L^-T L^-1,   Y_k = X_k L^-1 (transposed),   w = L^-T z,
// in which the solution and the covariance read: f = w - Y^T f.
//
// Floor for a frame (100 groups of 7 to 9 fibres, 2350 bins, band of 82): products read 0.34 GB, factor
// written 1.04 GB: 0.33 ms; 9.4 Gflop, 0.16 ms on the matrix units. As laid out here the factor is read again
// for the flux. What is thought to bind is the chain of
// pivots, 8 for each tile.
#include "core/extract/formulas.h"
#include "cuda/kernels/chunk.cuh"
#include "cuda/kernels/factor_tile.cuh"
#include "cuda/kernels/kernels.h"

namespace spexd::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;

// Of shared memory, in doubles: the window of band_tiles + 2 slots, X of a column, L^-1 and z of its diagonal
// tile, and what a slot's rows carry along.
struct FactorMemory {
  int slots, window, x, inverse, z, right, least, weight, place, total;
  __host__ __device__ explicit FactorMemory(int band_tiles) {
    slots = band_tiles + 2;
    window = 0;
    x = TriangleRing::Tiles(slots) * kTileSize;
    inverse = x + band_tiles * kTileSize;
    z = inverse + kTileSize;
    right = z + kTile;
    least = right + slots * kTile;
    weight = least + slots * kTile;
    place = weight + slots * kTile;
    total = place + slots * kTile;  // an int2 takes a double's room
  }
  __host__ __device__ int64_t bytes() const { return int64_t{total} * sizeof(double); }
};

// L^-1 of a tile's Cholesky factor (the tile's lower triangle counts), and z = L^-1 b, by one warp.
__device__ void FactorTile(const double* tile, const double* least, const double* b, const LanePlaces& at,
                           double* inverse, double* z) {
  const auto entry = [&](int r, int c) { return tile[TileIndex(max(r, c), min(r, c))]; };
  double a[2] = {entry(at.row, at.column), entry(at.row, at.column + 1)}, w[2];
  InvertFactor(
      at, a, [&](int p) { return least[p]; }, w);
  at.Store(w[0], w[1], inverse);
  double sum = fma(w[0], b[at.column], w[1] * b[at.column + 1]);
  sum += ShuffleXor(sum, 1);
  sum += ShuffleXor(sum, 2);
  if (at.column == 0) z[at.row] = sum;
}

// D^-1 = L^-T L^-1 and w = L^-T z to the factor and the forward solution; by one warp, from pairs of L^-1 and
// of its transpose.
__device__ void KeepDiagonal(const double (&inverse)[2], const double (&turned)[2], const double* z,
                             const LanePlaces& at, double* factor, double* forward) {
  double d[2] = {0, 0};
  MultiplyAdd8(turned, turned, d);
  at.Store(d[0], d[1], factor);
  double w0 = inverse[0] * z[at.row], w1 = inverse[1] * z[at.row];
  for (int mask = 4; mask < kWarp; mask *= 2) {
    w0 += ShuffleXor(w0, mask);
    w1 += ShuffleXor(w1, mask);
  }
  if (at.row == 0) {
    forward[at.column] = w0;
    forward[at.column + 1] = w1;
  }
}

// What loads the band of a chunk, tile row by tile row, into a window in shared memory or not.
template <bool kShared>
struct BandLoader {
  const JobView& job;
  const Chunk& chunk;
  const TriangleRing ring;
  double *window, *right, *least, *weight;
  int2* place;  // bin of the chunk and fibre of the group, of a slot's rows
  double floor;

  __device__ static void Fetch(double* to, const double* from) {
    if constexpr (kShared) {
      CopyAsync8(to, from);
    } else {
      *to = *from;
    }
  }

  // The unknowns of a tile row, which Load asks for.
  __device__ void Place(int row) const {
    if (threadIdx.x >= kTile) return;
    const int a = row * kTile + threadIdx.x, bin = a / chunk.group.solved;
    place[row % ring.slots * kTile + threadIdx.x] = {bin, a - bin * chunk.group.solved};
  }

  // Tile row `row` with the `before` tiles before its diagonal one; entries outside the band are zero.
  // Asynchronous but for what is constant. REQUIRES: Place of all these rows.
  __device__ void Load(int row, int before) const {
    const GroupPlan& g = chunk.group;
    const int side_reach = job.pair_side / 2, pairs = (job.pair_reach + 1) * job.pair_side;
    const int first = max(row - before, 0), row_slot = row % ring.slots, r = threadIdx.x % kTile;
    const int a = row * kTile + r;
    const int2 own = place[row_slot * kTile + r];
    const int first_slot = first % ring.slots, columns = (row - first + 1) * kTile;
    // A thread keeps to a row of the tiles.
    for (int c = threadIdx.x / kTile; c < columns; c += kThreads / kTile) {
      const int slot = ring.Slot(first_slot, c / kTile), b = first * kTile + c;
      double* to = window + TriangleRing::At(row_slot, slot) + TileIndex(r, c % kTile);
      if (a >= chunk.unknowns || b > a) {
        *to = a == b ? 1 : 0;
        continue;
      }
      const int2 other = place[slot * kTile + c % kTile];
      const int dbin = own.x - other.x, dfibre = own.y - other.y;
      if (dbin > g.reach || abs(dfibre) > g.fibre_reach) {
        *to = 0;
        continue;
      }
      const int spot =
          (g.first_solved + other.y - job.first_fibre) * job.psf.shape.bins + chunk.bins.first + other.x;
      Fetch(to, job.pairs + static_cast<int64_t>(spot) * pairs + dbin * job.pair_side + dfibre + side_reach);
    }
    if (threadIdx.x < kTile) {
      const int to = row_slot * kTile + r;
      if (a < chunk.unknowns) {
        const int spot =
            (g.first_solved + own.y - job.first_fibre) * job.psf.shape.bins + chunk.bins.first + own.x;
        Fetch(right + to, job.data + spot);
        Fetch(weight + to, job.weight + spot);
      } else {
        right[to] = 0;
        weight[to] = -1;
      }
    }
  }

  // Once a row has arrived, and before it is touched: its prior and least pivots. By one warp.
  __device__ void AddPrior(int row) const {
    const int r = threadIdx.x % kWarp, slot = row % ring.slots;
    if (r >= kTile) return;
    double* diagonal = window + TriangleRing::At(slot, slot) + TileIndex(r, r);
    const double w = weight[slot * kTile + r];
    if (w >= 0) *diagonal += Prior(w, floor, job.regularize, job.psf.shape.fine_grid, *diagonal);
    least[slot * kTile + r] = kLeastPivot * *diagonal;
  }
};

template <bool kShared>
__global__ void __launch_bounds__(kThreads) Factor(JobView job) {
  double* const shared = DynamicShared();
  const Chunk chunk(job, blockIdx.y, blockIdx.x);
  const int band = chunk.band_tiles(), tiles = chunk.tiles;
  const FactorMemory memory(band);
  const TriangleRing ring = {memory.slots};
  const int warp = threadIdx.x / kWarp;
  const LanePlaces at;
  // The window is in shared memory unless the band is too wide for it.
  double* base = shared;
  if constexpr (!kShared) {
    base = job.factor_window + static_cast<int64_t>(chunk.block) * FactorMemory(job.band_tiles).total;
  }
  double *window = base + memory.window, *x = base + memory.x, *inverse = base + memory.inverse,
         *z = base + memory.z, *right = base + memory.right, *least = base + memory.least;
  const BandLoader<kShared> loader = {job,
                                      chunk,
                                      ring,
                                      window,
                                      right,
                                      least,
                                      base + memory.weight,
                                      reinterpret_cast<int2*>(base + memory.place),
                                      WeightFloor(job, chunk.group)};

  for (int row = 0; row <= min(band + 1, tiles - 1); ++row) loader.Place(row);
  __syncthreads();
  for (int row = 0; row <= min(band, tiles - 1); ++row) loader.Load(row, band);
  CopyAsyncCommit();
  CopyAsyncWait<0>();
  __syncthreads();
  if (warp == 0) {
    for (int row = 0; row <= min(band, tiles - 1); ++row) loader.AddPrior(row);
    __syncwarp();
    FactorTile(window, least, right, at, inverse, z);
  }
  __syncthreads();

  for (int column = 0; column < tiles; ++column) {
    const int below = min(band, tiles - 1 - column), slot = column % ring.slots;
    const int incoming = column + band + 1;
    if (incoming < tiles) loader.Load(incoming, band);
    if (incoming + 1 < tiles)
      loader.Place(incoming + 1);  // in the slot of this column, which Load is done with
    CopyAsyncCommit();

    double* out = job.factor + FactorAt(job, chunk.block, column);
    double own[2], turned[2];  // L^-1 and its transpose
    at.Load(inverse, own);
    at.LoadTransposed(inverse, turned);
    if (warp == kWarps - 1) {
      KeepDiagonal(own, turned, z, at, out, job.forward + ForwardAt(job, chunk.block, column));
    }
    const double z0 = z[at.column], z1 = z[at.column + 1];
    for (int k = 1 + warp; k <= below; k += kWarps) {
      const int row_slot = ring.Slot(slot, k);
      double s_k[2], x_k[2] = {0, 0}, y_k[2] = {0, 0};
      at.Load(window + TriangleRing::At(row_slot, slot), s_k);
      MultiplyAdd8(s_k, own, x_k);
      at.Store(x_k[0], x_k[1], x + (k - 1) * kTileSize);
      // Y^T = L^-T X^T.
      MultiplyAdd8(turned, x_k, y_k);
      at.Store(y_k[0], y_k[1], out + k * kTileSize);
      double sum = fma(x_k[0], z0, x_k[1] * z1);
      sum += ShuffleXor(sum, 1);
      sum += ShuffleXor(sum, 2);
      if (at.column == 0) right[row_slot * kTile + at.row] -= sum;
    }
    __syncthreads();

    const auto x_of = [&](int k, double(&of)[2]) { at.Load(x + (k - 1) * kTileSize, of); };
    if (warp == 0) {
      if (below >= 1) {
        const int next = ring.Slot(slot, 1);
        double* tile = window + TriangleRing::At(next, next);
        double x_1[2], t[2];
        x_of(1, x_1);
        at.Load(tile, t);
        double d[2] = {-t[0], -t[1]};
        MultiplyAdd8(x_1, x_1, d);
        at.Store(-d[0], -d[1], tile);
        __syncwarp();
        FactorTile(tile, least + next * kTile, right + next * kTile, at, inverse, z);
      }
    } else {
      // Two rows of tiles at a time, below the tile that the first warp takes; the warps take turns at
      // columns.
      for (int k = 2; k <= below; k += 2) {
        const bool two = k + 1 <= below;
        const int row_slot = ring.Slot(slot, k), next_slot = ring.Slot(slot, k + 1);
        double upper[2], lower[2] = {0, 0};
        x_of(k, upper);
        if (two) x_of(k + 1, lower);
#pragma unroll 1
        for (int l = 1 + (warp - 1 + k / 2) % (kWarps - 1); l <= (two ? k + 1 : k); l += kWarps - 1) {
          const int column_slot = ring.Slot(slot, l);
          double* top = window + TriangleRing::At(row_slot, column_slot);
          double* bottom = window + TriangleRing::At(next_slot, column_slot);
          double x_l[2], t[2] = {0, 0}, u[2] = {0, 0};
          x_of(l, x_l);
          if (l <= k) at.Load(top, t);
          if (two) at.Load(bottom, u);
          double d[4] = {-t[0], -t[1], -u[0], -u[1]};
          MultiplyAdd16(upper, lower, x_l, d);
          if (l <= k) at.Store(-d[0], -d[1], top);
          if (two) at.Store(-d[2], -d[3], bottom);
        }
      }
    }
    CopyAsyncWait<0>();
    __syncthreads();
    if (incoming < tiles && warp == kWarps - 1) loader.AddPrior(incoming);
  }
}

constexpr int kStages = 4;  // tile columns of the factor on their way to the backward pass

// Of the backward pass, in doubles: the factor's columns with w, and a ring of the solution.
struct BackwardMemory {
  int column, solution, total;
  __host__ __device__ explicit BackwardMemory(int band_tiles) {
    column = band_tiles * kTileSize + kTile;
    solution = kStages * column;
    total = solution + (band_tiles + 1) * kTile;
  }
  __host__ __device__ int64_t bytes() const { return int64_t{total} * sizeof(double); }
};

// f = w - Y^T f, last tile column first; a warp to a chunk.
template <bool kShared>
__global__ void __launch_bounds__(kWarp) Backward(JobView job) {
  double* const shared = DynamicShared();
  const Chunk chunk(job, blockIdx.y, blockIdx.x);
  const int band = chunk.band_tiles(), slots = band + 1, lane = threadIdx.x, tiles = chunk.tiles;
  const int end = chunk.first_kept_tile();
  const LanePlaces at;
  const GroupPlan& g = chunk.group;
  const double floor = WeightFloor(job, g);
  const BackwardMemory memory(band);
  double* solution = shared + (kShared ? memory.solution : 0);

  const auto fetch = [&](int column) {
    if (column >= end) {
      double* to = shared + column % kStages * memory.column;
      const double* from = job.factor + FactorAt(job, chunk.block, column) + kTileSize;
      const int count = min(band, tiles - 1 - column) * kTileSize;
      for (int i = 2 * lane; i < count; i += 2 * kWarp) CopyAsync16(to + i, from + i);
      if (lane < kTile / 2) {
        CopyAsync16(to + memory.column - kTile + 2 * lane,
                    job.forward + ForwardAt(job, chunk.block, column) + 2 * lane);
      }
    }
    CopyAsyncCommit();
  };
  if constexpr (kShared) {
    for (int k = 1; k < kStages; ++k) fetch(tiles - k);
  }
  int slot = (tiles - 1) % slots;
  for (int column = tiles - 1; column >= end; --column) {
    const double *y, *w;  // of the tiles below, and of this column
    if constexpr (kShared) {
      CopyAsyncWait<kStages - 2>();
      __syncwarp();
      fetch(column - kStages + 1);
      y = shared + column % kStages * memory.column;
      w = y + memory.column - kTile;
    } else {
      y = job.factor + FactorAt(job, chunk.block, column) + kTileSize;
      w = job.forward + ForwardAt(job, chunk.block, column);
    }
    const int below = min(band, tiles - 1 - column);
    double even = 0, odd = 0;
    int other = slot;
    // Unrolled by nvcc 13.0, it was seen to run on where no whole round is left.
#pragma unroll 1
    for (int k = 0; k < below; ++k) {
      other = other + 1 == slots ? 0 : other + 1;
      const double2 entries = *reinterpret_cast<const double2*>(y + k * kTileSize + at.pair);
      const double2 f = *reinterpret_cast<const double2*>(solution + other * kTile + at.column);
      even = fma(entries.x, f.x, even);
      odd = fma(entries.y, f.y, odd);
    }
    double sum = even + odd;
    sum += ShuffleXor(sum, 1);
    sum += ShuffleXor(sum, 2);
    if (at.column == 0) {
      const double f = w[at.row] - sum;
      solution[slot * kTile + at.row] = f;
      const int a = column * kTile + at.row, bin = chunk.bins.first + a / g.solved;
      const int fibre = g.first_solved + a % g.solved;
      if (a < chunk.unknowns && bin >= chunk.bins.core && bin < chunk.bins.core_end &&
          fibre >= g.first_kept && fibre < g.first_kept + g.kept) {
        const int64_t out = static_cast<int64_t>(fibre - job.first_fibre) * job.psf.shape.bins + bin;
        job.flux[out] = f;
        job.weak[out] = IsWeak(job.weight[out], floor);
      }
    }
    __syncwarp();
    slot = slot == 0 ? slots - 1 : slot - 1;
  }
}

}  // namespace

int64_t FactorWindowScratch(const ExtractPlan& plan) {
  const FactorMemory memory(plan.most_band_tiles);
  return memory.bytes() <= plan.shared_bytes ? 0 : memory.total;
}

cudaError_t ConfigureSolve(int shared_bytes) {
  return FirstError({AllowShared(Factor<true>, shared_bytes), AllowShared(Backward<true>, shared_bytes),
                     AllowShared(Backward<false>, shared_bytes)});
}

cudaError_t FactorAndSolve(const JobView& job, cudaStream_t stream) {
  const dim3 grid(job.solve.count, job.groups);
  const int64_t factor = FactorMemory(job.band_tiles).bytes(),
                backward = BackwardMemory(job.band_tiles).bytes();
  const int64_t solution = (job.band_tiles + 1) * kTile * int64_t{sizeof(double)};
  return FirstError({
      factor <= job.shared_bytes ? Launch(Factor<true>, grid, kThreads, factor, stream, job)
                                 : Launch(Factor<false>, grid, kThreads, 0, stream, job),
      backward <= job.shared_bytes ? Launch(Backward<true>, grid, kWarp, backward, stream, job)
                                   : Launch(Backward<false>, grid, kWarp, solution, stream, job),
  });
}

}  // namespace spexd::cuda
