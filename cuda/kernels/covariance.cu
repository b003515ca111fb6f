// Stage "covariance": entries of C = A^-1 near the diagonal by Takahashi's recurrence on tiles,
//   C_ij = -sum_k C_ik Y_kj (i > j),   C_jj = D_j^-1 - sum_k Y_kj^T C_kj,   k over the band below j.
//
// A block takes a chunk of a group, last tile column first, with the window of C that the recurrence reads in
// shared memory. The diagonal tile of a column is made by the first warp while the others are at the next
// column, so a step has one barrier. Beside holes C is kept further than shared memory reaches; tiles in rows
// so far down go through a ring in device memory.
//
// Floor for a frame (band 82, 12 bins of covariance): factor read 1.3 GB, 0.31 ms; 100 x 21150 columns x 108
// x 82 multiply-adds, 37 Gflop, 0.6 ms on the matrix units.
#include "core/model/tolerances.h"
#include "cuda/kernels/chunk.cuh"
#include "cuda/kernels/kernels.h"

namespace spexd::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;
constexpr int kRows = 4;     // tile rows that a warp takes at once
constexpr int kColumns = 3;  // of the factor in shared memory: in use, its diagonal's, on its way
constexpr int kMostShared = 200 * 1024;

// Of shared memory, in doubles. The window has `slots` tile rows, as many as the widths usually ask for, or
// as fit.
struct InverseMemory {
  int slots, window, factor, total;
  __host__ __device__ InverseMemory(int wanted_slots, int band_tiles) {
    const int columns = kColumns * (band_tiles + 1) * kTileSize;
    slots = wanted_slots;
    while (slots > 3 && (TriangleRing::Tiles(slots) * kTileSize + columns) * 8LL > kMostShared) --slots;
    window = 0;
    factor = TriangleRing::Tiles(slots) * kTileSize;
    total = factor + columns;
  }
  __host__ __device__ bool fits() const { return total * 8LL <= kMostShared; }
};

// Tile rows that `width` bins of `fibres` reach below a tile's diagonal.
__host__ __device__ inline int TilesDown(int width, int fibres) { return (width * fibres + kTile - 1) / kTile; }

struct Inverter {
  const JobView& job;
  const Chunk& chunk;
  const TriangleRing ring;
  double* window;
  double* far;  // [band + 1 slot of tile column][ring row slot]
  const int band;
  const LanePlaces at;

  __device__ double* Far(int column, int row) const {
    return far + (static_cast<int64_t>(column % (band + 1)) * job.ring_rows + row % job.ring_rows) * kTileSize;
  }

  // Adds -C(i, k) Y_k of column `column` to the sums of `count` tile rows from `first` on (offsets).
  template <int kCount>
  __device__ void Multiply(const double* factor, int column, int first, int below,
                           double (&sum)[kRows][4]) const {
    const int base = column % ring.slots;
#pragma unroll 1
    for (int k = 1; k <= below; ++k) {
      const double* y = factor + k * kTileSize;
      const double b0 = y[at.straight[0]], b1 = y[at.straight[1]];
      const int slot_k = ring.Slot(base, k);
#pragma unroll
      for (int r = 0; r < kCount; ++r) {
        const int p = first + r;
        const bool down = p >= k;
        const double* tile;
        if (max(p, k) < ring.slots) {
          tile = window + TriangleRing::At(ring.Slot(base, p), slot_k);
        } else {
          tile = down ? Far(column + k, column + p) : Far(column + p, column + k);
        }
        const double a0 = tile[down ? at.straight[0] : at.transposed[0]];
        const double a1 = tile[down ? at.straight[1] : at.transposed[1]];
        MultiplyAdd(a0, b0, sum[r][0], sum[r][1]);
        MultiplyAdd(a1, b1, sum[r][2], sum[r][3]);
      }
    }
  }

  // Rows first..first + kCount - 1 of a column, kept where later columns and the result want them.
  template <int kCount>
  __device__ void Rows(const double* factor, int column, int first, int below, bool wide) const {
    double sum[kRows][4];
#pragma unroll
    for (int r = 0; r < kRows; ++r) sum[r][0] = sum[r][1] = sum[r][2] = sum[r][3] = 0;
    Multiply<kCount>(factor, column, first, below, sum);
    const int base = column % ring.slots;
#pragma unroll
    for (int r = 0; r < kCount; ++r) {
      const int p = first + r;
      const double c0 = -(sum[r][0] + sum[r][2]), c1 = -(sum[r][1] + sum[r][3]);
      if (p < ring.slots) {
        double* tile = window + TriangleRing::At(ring.Slot(base, p), base);
        tile[at.pair] = c0;
        tile[at.pair + 1] = c1;
      }
      if (wide) {
        double* tile = Far(column, column + p);
        tile[at.pair] = c0;
        tile[at.pair + 1] = c1;
      }
      Keep(column, p, at.column, c0);
      Keep(column, p, at.column + 1, c1);
    }
  }

  // The entry in row at.row of tile row column + p, if it is of one fibre and wanted.
  __device__ void Keep(int column, int p, int c, double value) const {
    const GroupPlan& g = chunk.group;
    const int apart = p * kTile + at.row - c;
    if (apart < 0 || apart % g.solved != 0) return;
    const int b = column * kTile + c, bin = chunk.bins.first + b / g.solved;
    const int fibre = g.first_solved + b % g.solved, k = apart / g.solved;
    if (bin < chunk.bins.core || bin >= chunk.bins.core_end || fibre < g.first_kept ||
        fibre >= g.first_kept + g.kept) {
      return;
    }
    const int bins = job.psf.shape.bins;
    if (k > job.widths[static_cast<int64_t>(blockIdx.y) * bins + bin]) return;
    job.covariance[(static_cast<int64_t>(fibre - job.first_fibre) * (job.most_width + 1) + k) * bins + bin] =
        value;
  }

  // The diagonal tile of a column whose other tiles are there; by one warp.
  __device__ void Diagonal(const double* factor, int column, int below) const {
    const int slot = column % ring.slots;
    double even[2] = {0, 0}, odd[2] = {0, 0};
#pragma unroll 1
    for (int k = 1; k <= below; ++k) {
      const double* y = factor + k * kTileSize;
      // The window's last row makes way for the next column meanwhile.
      const double* c = k < ring.slots - 1 ? window + TriangleRing::At(ring.Slot(slot, k), slot)
                                           : Far(column, column + k);
      MultiplyAdd(y[at.straight[0]], c[at.transposed[0]], even[0], even[1]);
      MultiplyAdd(y[at.straight[1]], c[at.transposed[1]], odd[0], odd[1]);
    }
    double* tile = window + TriangleRing::At(slot, slot);
    const double d0 = factor[at.pair] - (even[0] + odd[0]), d1 = factor[at.pair + 1] - (even[1] + odd[1]);
    tile[at.pair] = d0;
    tile[at.pair + 1] = d1;
    __syncwarp();
    // Rounding leaves the tile a little unsymmetric, and the recurrence would amplify that.
    const double s0 = 0.5 * (d0 + tile[TileIndex(at.column, at.row)]);
    const double s1 = 0.5 * (d1 + tile[TileIndex(at.column + 1, at.row)]);
    __syncwarp();
    tile[at.pair] = s0;
    tile[at.pair + 1] = s1;
    Keep(column, 0, at.column, s0);
    Keep(column, 0, at.column + 1, s1);
    __syncwarp();
  }
};

// Tile rows below column `column` that are computed: the band's, and as far as the widths of its bins reach.
__device__ int DownOf(const JobView& job, const Chunk& chunk, int column) {
  const int nf = chunk.group.solved;
  const int32_t* widths =
      job.widths + static_cast<int64_t>(blockIdx.y) * job.psf.shape.bins + chunk.bins.first;
  const int last = min((column + 1) * kTile, chunk.unknowns) - 1, bin = last / nf;
  int farthest = last + nf * widths[bin];
  // Bins reach ever further, but at an equal end the last fibre of an earlier bin lies behind.
  if (bin * nf > column * kTile) farthest = max(farthest, bin * nf - 1 + nf * widths[bin - 1]);
  return min(max(chunk.band_tiles(), farthest / kTile - column), chunk.tiles - 1 - column);
}

template <bool kShared>
__global__ void __launch_bounds__(kThreads) Invert(JobView job, int pass) {
  extern __shared__ double shared[];
  const Chunk chunk(job, blockIdx.y, blockIdx.x);
  if (job.again[(pass * job.groups + blockIdx.y) * job.chunks + blockIdx.x] == 0) return;
  const int band = chunk.band_tiles(), tiles = chunk.tiles, warp = threadIdx.x / kWarp;
  const InverseMemory memory(job.window_slots, job.band_tiles);
  const int64_t ring_tiles = static_cast<int64_t>(job.band_tiles + 1) * job.ring_rows * kTileSize;
  const Inverter inverter = {job,  chunk,        {memory.slots}, shared, job.ring + chunk.block * ring_tiles,
                             band, LanePlaces()};

  // Whether any column reaches beyond the window.
  bool beyond = band + 1 >= memory.slots;
  for (int c = threadIdx.x; c < tiles; c += kThreads) beyond |= DownOf(job, chunk, c) >= memory.slots;
  const bool wide = __syncthreads_or(beyond);

  const auto factor_of = [&](int column) -> const double* {
    if constexpr (kShared) return shared + memory.factor + column % kColumns * (band + 1) * kTileSize;
    return job.factor + FactorAt(job, chunk.block, column);
  };
  const auto fetch = [&](int column) {
    if constexpr (kShared) {
      if (column >= 0) {
        const double* from = job.factor + FactorAt(job, chunk.block, column);
        double* to = const_cast<double*>(factor_of(column));
        const int count = (min(band, tiles - 1 - column) + 1) * kTileSize;
        for (int i = 2 * threadIdx.x; i < count; i += 2 * kThreads) CopyAsync16(to + i, from + i);
      }
      CopyAsyncCommit();
    }
  };

  fetch(tiles - 1);
  for (int column = tiles - 1; column >= -1; --column) {
    CopyAsyncWait<0>();
    __syncthreads();
    fetch(column - 1);
    const int below = min(band, tiles - 1 - column);
    if (warp == 0 && column + 1 < tiles) {
      inverter.Diagonal(factor_of(column + 1), column + 1, min(band, tiles - 2 - column));
    }
    if (column >= 0) {
      const int down = DownOf(job, chunk, column);
      const double* factor = factor_of(column);
      if (warp == 0 && down >= 1) inverter.Rows<1>(factor, column, 1, below, wide);
      // The other rows, by fours, to the other warps first.
      for (int group = (warp + kWarps - 1) % kWarps; 2 + group * kRows <= down; group += kWarps) {
        const int first = 2 + group * kRows;
        switch (min(kRows, down + 1 - first)) {
          case 1:
            inverter.Rows<1>(factor, column, first, below, wide);
            break;
          case 2:
            inverter.Rows<2>(factor, column, first, below, wide);
            break;
          case 3:
            inverter.Rows<3>(factor, column, first, below, wide);
            break;
          default:
            inverter.Rows<kRows>(factor, column, first, below, wide);
        }
      }
    }
  }
}

}  // namespace

int CovarianceRingRows(int most_width, int solved_fibres, int band_tiles) {
  return max(TilesDown(most_width, solved_fibres), band_tiles) + 3;
}

int CovarianceWindowSlots(int usual_width, int solved_fibres, int band_tiles) {
  return max(TilesDown(usual_width, solved_fibres), band_tiles + 1) + 2;
}

cudaError_t ConfigureCovariance() {
  cudaError_t error = cudaFuncSetAttribute(Invert<true>, cudaFuncAttributeMaxDynamicSharedMemorySize, kMostShared);
  if (error != cudaSuccess) return error;
  return cudaFuncSetAttribute(Invert<false>, cudaFuncAttributeMaxDynamicSharedMemorySize, kMostShared);
}

cudaError_t InvertSelected(const JobView& job, int pass, cudaStream_t stream) {
  const dim3 grid(job.chunks, job.groups);
  const InverseMemory memory(job.window_slots, job.band_tiles);
  if (memory.fits()) {
    Invert<true><<<grid, kThreads, memory.total * sizeof(double), stream>>>(job, pass);
  } else {
    Invert<false><<<grid, kThreads, memory.factor * sizeof(double), stream>>>(job, pass);
  }
  return cudaGetLastError();
}

}  // namespace spexd::cuda
