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
// Floor for a frame (100 groups of 7 to 9 fibres, 2350 bins, band of 82): pairs read 0.7 GB, factor written
// 1.3 GB and read once: 0.8 ms; 14 Gflop, 0.24 ms on the matrix units. What binds is the chain of pivots: 8
// for each tile, about 100 cycles each.
#include "core/extract/formulas.h"
#include "cuda/kernels/chunk.cuh"
#include "cuda/kernels/kernels.h"

namespace spexd::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;
constexpr int kMostShared = 200 * 1024;

// Of shared memory, in doubles: the window of band_tiles + 2 slots, X of a column, L^-1 and z of its diagonal
// tile, and what a slot's rows carry along.
struct FactorMemory {
  int slots, window, x, inverse, z, right, least, weight, total;
  __host__ __device__ explicit FactorMemory(int band_tiles) {
    slots = band_tiles + 2;
    window = 0;
    x = TriangleRing::Tiles(slots) * kTileSize;
    inverse = x + band_tiles * kTileSize;
    z = inverse + kTileSize;
    right = z + kTile;
    least = right + slots * kTile;
    weight = least + slots * kTile;
    total = weight + slots * kTile;
  }
  __host__ __device__ int64_t bytes() const { return int64_t{total} * sizeof(double); }
};

// The inverse of the Cholesky factor of a tile (its lower triangle counts), and z = L^-1 b, by one warp in
// registers: each pivot's elimination is done to the identity, too.
__device__ void FactorTile(const double* tile, const double* least, const double* b, const LanePlaces& at,
                           double* inverse, double* z) {
  const auto entry = [&](int r, int c) { return tile[TileIndex(max(r, c), min(r, c))]; };
  double a0 = entry(at.row, at.column), a1 = entry(at.row, at.column + 1);
  double w0 = at.row == at.column, w1 = at.row == at.column + 1;
  const int quarter = at.column / 2;
#pragma unroll
  for (int p = 0; p < kTile; ++p) {
    const double own = p % 2 == 0 ? a0 : a1;
    const double pivot = Shuffle(own, p * 4 + p / 2), left = Shuffle(own, at.row * 4 + p / 2);
    const double up0 = Shuffle(a0, p * 4 + quarter), up1 = Shuffle(a1, p * 4 + quarter);
    const double from0 = Shuffle(w0, p * 4 + quarter), from1 = Shuffle(w1, p * 4 + quarter);
    const double scale = ReciprocalRoot(fmax(pivot, least[p]));
    const double l = left * scale;
    if (at.row > p) {
      a0 = fma(-l, up0 * scale, a0);
      a1 = fma(-l, up1 * scale, a1);
      w0 = fma(-l, from0 * scale, w0);
      w1 = fma(-l, from1 * scale, w1);
    } else if (at.row == p) {
      w0 *= scale;
      w1 *= scale;
    }
  }
  inverse[at.pair] = w0;
  inverse[at.pair + 1] = w1;
  double sum = fma(w0, b[at.column], w1 * b[at.column + 1]);
  sum += ShuffleXor(sum, 1);
  sum += ShuffleXor(sum, 2);
  if (at.column == 0) z[at.row] = sum;
}

// d += a b^T; tiles as stored.
__device__ inline void MultiplyTiles(const double* a, const double* b, const LanePlaces& at, double& d0,
                                     double& d1) {
  MultiplyAdd(a[at.straight[0]], b[at.straight[0]], d0, d1);
  MultiplyAdd(a[at.straight[1]], b[at.straight[1]], d0, d1);
}

// D^-1 = L^-T L^-1 and w = L^-T z to the factor and the forward solution; by one warp.
__device__ void KeepDiagonal(const double* inverse, const double* z, const LanePlaces& at, double* factor,
                             double* forward) {
  double d0 = 0, d1 = 0;
  MultiplyAdd(inverse[at.transposed[0]], inverse[at.transposed[0]], d0, d1);
  MultiplyAdd(inverse[at.transposed[1]], inverse[at.transposed[1]], d0, d1);
  factor[at.pair] = d0;
  factor[at.pair + 1] = d1;
  double w0 = inverse[at.pair] * z[at.row], w1 = inverse[at.pair + 1] * z[at.row];
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
  double floor;

  __device__ static void Fetch(double* to, const double* from) {
    if constexpr (kShared) {
      CopyAsync8(to, from);
    } else {
      *to = *from;
    }
  }

  // Tile row `row` with the band_tiles() tiles before its diagonal one; entries outside the band are zero.
  // Asynchronous but for what is constant.
  __device__ void Load(int row, int columns_before) const {
    const GroupPlan& g = chunk.group;
    const int nf = g.solved, side_reach = job.pair_side / 2;
    const int first = max(row - columns_before, 0), width = (row - first + 1) * kTile;
    const int row_slot = row % ring.slots;
    for (int i = threadIdx.x; i < width * kTile; i += kThreads) {
      const int r = i % kTile, c = i / kTile;  // neighbours in a column share their fibre and bin
      const int a = row * kTile + r, b = first * kTile + c;
      double* to = window + TriangleRing::At(row_slot, (b / kTile) % ring.slots) + TileIndex(r, c % kTile);
      if (a >= chunk.unknowns || b > a) {
        *to = a == b ? 1 : 0;
        continue;
      }
      const int bin_a = a / nf, fibre_a = a - bin_a * nf, bin_b = b / nf, fibre_b = b - bin_b * nf;
      const int dbin = bin_a - bin_b, dfibre = fibre_a - fibre_b;
      if (dbin > g.reach || abs(dfibre) > g.fibre_reach) {
        *to = 0;
        continue;
      }
      const int64_t spot = static_cast<int64_t>(g.first_solved + fibre_b - job.first_fibre) * job.psf.shape.bins +
                           chunk.bins.first + bin_b;
      Fetch(to, job.pairs + spot * ((job.pair_reach + 1) * job.pair_side) + dbin * job.pair_side + dfibre +
                    side_reach);
    }
    if (threadIdx.x < kTile) {
      const int a = row * kTile + threadIdx.x, slot = row_slot * kTile + threadIdx.x;
      if (a < chunk.unknowns) {
        const int64_t at = static_cast<int64_t>(g.first_solved + a % nf - job.first_fibre) * job.psf.shape.bins +
                           chunk.bins.first + a / nf;
        Fetch(right + slot, job.data + at);
        Fetch(weight + slot, job.weight + at);
      } else {
        right[slot] = 0;
        weight[slot] = -1;
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
  extern __shared__ double shared[];
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
  const BandLoader<kShared> loader = {job, chunk, ring, window, right, least, base + memory.weight,
                             WeightFloor(job, chunk.group)};

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
    CopyAsyncCommit();

    double* out = job.factor + FactorAt(job, chunk.block, column);
    if (warp == kWarps - 1) {
      KeepDiagonal(inverse, z, at, out, job.forward + ForwardAt(job, chunk.block, column));
    }
    for (int k = 1 + warp; k <= below; k += kWarps) {
      const int row_slot = ring.Slot(slot, k);
      double x0 = 0, x1 = 0, y0 = 0, y1 = 0;
      MultiplyTiles(window + TriangleRing::At(row_slot, slot), inverse, at, x0, x1);
      double* xk = x + (k - 1) * kTileSize;
      xk[at.pair] = x0;
      xk[at.pair + 1] = x1;
      double sum = fma(x0, z[at.column], x1 * z[at.column + 1]);
      sum += ShuffleXor(sum, 1);
      sum += ShuffleXor(sum, 2);
      if (at.column == 0) right[row_slot * kTile + at.row] -= sum;
      __syncwarp();
      // Y^T = L^-T X^T.
      MultiplyAdd(inverse[at.transposed[0]], xk[at.straight[0]], y0, y1);
      MultiplyAdd(inverse[at.transposed[1]], xk[at.straight[1]], y0, y1);
      out[k * kTileSize + at.pair] = y0;
      out[k * kTileSize + at.pair + 1] = y1;
    }
    __syncthreads();

    const auto update = [&](int k, int l) {
      double* tile = window + TriangleRing::At(ring.Slot(slot, k), ring.Slot(slot, l));
      double d0 = -tile[at.pair], d1 = -tile[at.pair + 1];
      MultiplyTiles(x + (k - 1) * kTileSize, x + (l - 1) * kTileSize, at, d0, d1);
      tile[at.pair] = -d0;
      tile[at.pair + 1] = -d1;
    };
    if (warp == 0) {
      if (below >= 1) {
        update(1, 1);
        __syncwarp();
        const int next = ring.Slot(slot, 1);
        FactorTile(window + TriangleRing::At(next, next), least + next * kTile, right + next * kTile, at, inverse, z);
      }
    } else {
      for (int k = 2; k <= below; ++k) {
        for (int l = 1 + (warp - 1 + k) % (kWarps - 1); l <= k; l += kWarps - 1) update(k, l);
      }
    }
    CopyAsyncWait<0>();
    __syncthreads();
    if (incoming < tiles && warp == kWarps - 1) loader.AddPrior(incoming);
  }
}

// f = w - Y^T f, last tile column first; a warp to a chunk.
__global__ void __launch_bounds__(kWarp) Backward(JobView job) {
  extern __shared__ double solution[];  // ring of band_tiles + 1 slots
  const Chunk chunk(job, blockIdx.y, blockIdx.x);
  const int band = chunk.band_tiles(), slots = band + 1, lane = threadIdx.x;
  const LanePlaces at;
  const GroupPlan& g = chunk.group;
  const double floor = WeightFloor(job, g);
  int slot = (chunk.tiles - 1) % slots;
  for (int column = chunk.tiles - 1; column >= 0; --column) {
    const double* factor = job.factor + FactorAt(job, chunk.block, column);
    const int below = min(band, chunk.tiles - 1 - column);
    double sum = at.column == 0 ? job.forward[ForwardAt(job, chunk.block, column) + at.row] : 0.0;
#pragma unroll 4
    for (int k = 1; k <= below; ++k) {
      const double2 entries = *reinterpret_cast<const double2*>(factor + k * kTileSize + at.pair);
      const int other = slot + k >= slots ? slot + k - slots : slot + k;
      const double2 x = *reinterpret_cast<const double2*>(solution + other * kTile + at.column);
      sum -= fma(entries.x, x.x, entries.y * x.y);
    }
    sum += ShuffleXor(sum, 1);
    sum += ShuffleXor(sum, 2);
    if (lane % 4 == 0) {
      solution[slot * kTile + at.row] = sum;
      const int a = column * kTile + at.row, bin = chunk.bins.first + a / g.solved;
      const int fibre = g.first_solved + a % g.solved;
      if (a < chunk.unknowns && bin >= chunk.bins.core && bin < chunk.bins.core_end &&
          fibre >= g.first_kept && fibre < g.first_kept + g.kept) {
        const int64_t out = static_cast<int64_t>(fibre - job.first_fibre) * job.psf.shape.bins + bin;
        job.flux[out] = sum;
        job.weak[out] = IsWeak(job.weight[out], floor);
      }
    }
    __syncwarp();
    slot = slot == 0 ? slots - 1 : slot - 1;
  }
}

}  // namespace

int64_t FactorWindowScratch(int band_tiles) {
  const FactorMemory memory(band_tiles);
  return memory.bytes() <= kMostShared ? 0 : memory.total;
}

cudaError_t ConfigureSolve() {
  return cudaFuncSetAttribute(Factor<true>, cudaFuncAttributeMaxDynamicSharedMemorySize, kMostShared);
}

cudaError_t FactorAndSolve(const JobView& job, cudaStream_t stream) {
  const dim3 grid(job.chunks, job.groups);
  const FactorMemory memory(job.band_tiles);
  if (memory.bytes() <= kMostShared) {
    Factor<true><<<grid, kThreads, memory.bytes(), stream>>>(job);
  } else {
    Factor<false><<<grid, kThreads, 0, stream>>>(job);
  }
  Backward<<<grid, kWarp, (job.band_tiles + 1) * kTile * sizeof(double), stream>>>(job);
  return cudaGetLastError();
}

}  // namespace spexd::cuda
