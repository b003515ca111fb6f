// Square roots of bands of a few tiles (root_tiles.cuh): a warp takes one recurrence, eight poles to a block,
// with the window in registers.
//
// Floor for a frame (500 fibres, 16 poles, all chunks with two tiles below the diagonal): the factor written
// and read, 2 x 3.1 GB, 1.5 ms; 14 products of 16 x 8 x 8 for 8 bins, 34 Gflop, 0.55 ms on the matrix units.
#include "cuda/kernels/device.cuh"
#include "cuda/kernels/factor_tile.cuh"
#include "cuda/kernels/fibre.cuh"
#include "cuda/kernels/root_tiles.cuh"
#include "cuda/kernels/roots.cuh"

namespace spexd::cuda {
namespace {

constexpr int kMostBlocks = 512;  // that loop over the recurrences: they have a scratch each
constexpr int kMostTiles = kMostTiled / kTile;

// Of shared memory, in doubles: what warps turn tiles in, and the sums' shares, by turns.
template <int kTiles>
struct TiledMemory {
  static constexpr int kTurn = 0, kShares = kPoleBlock * kTiles * kTurnSize, kTotal = kShares + kRootShares;
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

// The band of P + shift of one fibre and chunk, and both right-hand sides, by tiles.
struct TiledBand {
  const LanePlaces& at;
  const double *p, *flux;
  const int32_t* widths;
  int64_t stride;  // of diagonals
  int bins;
  double shift;

  // Tiles [row, row - kTiles .. row], the diagonal one last; beyond the chunk's end the identity.
  template <int kTiles>
  __device__ __forceinline__ void LoadRow(int row, double (&tiles)[kTiles + 1][2], double (&right)[2]) const {
#pragma unroll
    for (int k = 0; k <= kTiles; ++k) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const int i = row * kTile + at.row, j = (row - kTiles + k) * kTile + at.column + c;
        const int low = k < kTiles ? j : min(i, j), high = k < kTiles ? i : max(i, j);
        double value = 0;
        if (low >= 0 && high < bins && high - low <= widths[low]) value = p[(high - low) * stride + low];
        if (k == kTiles && i == j) value = high < bins ? value + shift : 1;
        tiles[k][c] = value;
      }
    }
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int j = row * kTile + at.column + c;
      right[c] = 0;
      if (j < bins && at.row < 2) right[c] = at.row == 0 ? 1 : flux[j];
    }
  }
};

template <int kTiles>
__device__ __forceinline__ void FactorTiled(const TiledBand& band, int columns, double* turn, double* kept) {
  const LanePlaces& at = band.at;
  const int lane = threadIdx.x % kWarp;
  // Tile (k, l) of the window, and the right-hand sides beside the tile rows.
  double s[kTiles + 1][kTiles + 1][2], right[kTiles + 1][2];
#pragma unroll
  for (int k = 0; k <= kTiles; ++k) {
    double row[kTiles + 1][2];
    band.LoadRow<kTiles>(k, row, right[k]);
#pragma unroll
    for (int l = 0; l <= k; ++l) {
      s[k][l][0] = row[l + kTiles - k][0];
      s[k][l][1] = row[l + kTiles - k][1];
    }
  }
  for (int column = 0; column < columns; ++column, kept += KeptOf(kTiles)) {
    double coming[kTiles + 1][2], coming_right[2];
    band.LoadRow<kTiles>(column + kTiles + 1, coming, coming_right);

    double inverse[2], turned[2];
    InvertFactor(
        at, s[0][0], [&](int) { return band.shift; }, inverse);
    Put(turn, at, inverse);
    // X of the tiles below, and last of the right-hand sides.
    double rows[kTiles + 1][2], x[kTiles + 1][2] = {};
#pragma unroll
    for (int k = 0; k <= kTiles; ++k) {
      rows[k][0] = k < kTiles ? s[k + 1][0][0] : right[0][0];
      rows[k][1] = k < kTiles ? s[k + 1][0][1] : right[0][1];
    }
    AddProducts<kTiles + 1>(rows, inverse, x);
    __syncwarp();
    TakeTurned(turn, at, turned);
    __syncwarp();

    double ends[2][2] = {{turned[0], turned[1]}, {x[kTiles][0], x[kTiles][1]}}, kept_ends[2][2] = {};
    AddProducts<2>(ends, turned, kept_ends);
    auto* const out = reinterpret_cast<double2*>(kept);
    out[lane] = {kept_ends[0][0], kept_ends[0][1]};
    if (lane < kTile) out[(kTiles + 1) * kWarp + lane] = {kept_ends[1][0], kept_ends[1][1]};
#pragma unroll
    for (int k = 0; k < kTiles; ++k) {
      double z[2] = {0, 0};
      MultiplyAdd8(turned, x[k], z);
      out[(k + 1) * kWarp + lane] = {z[0], z[1]};
    }

    // The window moves on by a tile as it is updated.
#pragma unroll
    for (int l = 0; l < kTiles; ++l) {
      const double minus[2] = {-x[l][0], -x[l][1]};
      double from[kTiles + 1][2], to[kTiles + 1][2];  // rows l.. of the column, and the right-hand sides
#pragma unroll
      for (int k = l; k <= kTiles; ++k) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          from[k][c] = x[k][c];
          to[k][c] = k < kTiles ? s[k + 1][l + 1][c] : right[l + 1][c];
        }
      }
#pragma unroll
      for (int k = l; k <= kTiles; k += 2) {
        const int next = k + 1 <= kTiles ? k + 1 : k;
        double d[4] = {to[k][0], to[k][1], to[next][0], to[next][1]};
        MultiplyAdd16(from[k], from[next], minus, d);
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          if (k < kTiles) {
            s[k][l][c] = d[c];
          } else {
            right[l][c] = d[c];
          }
          if (next == k) continue;
          if (next < kTiles) {
            s[next][l][c] = d[2 + c];
          } else {
            right[l][c] = d[2 + c];
          }
        }
      }
    }
#pragma unroll
    for (int c = 0; c < 2; ++c) {
#pragma unroll
      for (int l = 0; l <= kTiles; ++l) s[kTiles][l][c] = coming[l][c];
      right[kTiles][c] = coming_right[c];
    }
  }
}

// What one column of the factor brings to the backward pass, with Z negated.
template <int kTiles>
struct KeptColumn {
  double inverse[2], minus_z[kTiles][2], w[2];

  __device__ __forceinline__ void Load(const double* kept) {
    const auto* const from = reinterpret_cast<const double2*>(kept);
    const int lane = threadIdx.x % kWarp;
    const auto take = [&](int k, double(&to)[2], double sign) {
      const double2 pair = from[k * kWarp + lane];
      to[0] = sign * pair.x;
      to[1] = sign * pair.y;
    };
    take(0, inverse, 1);
#pragma unroll
    for (int k = 0; k < kTiles; ++k) take(k + 1, minus_z[k], -1);
    w[0] = w[1] = 0;
    if (lane < kTile) take(kTiles + 1, w, 1);
  }
};

// Calls report(column, C_00, C_10, F_0) for tile columns from the last to `first`.
template <int kTiles, typename Report>
__device__ __forceinline__ void InvertTiled(const LanePlaces& at, int columns, int first, double* turn,
                                            const double* kept, const Report& report) {
  // Tile (k, l) of the inverse behind the column, both triangles; and rows of the solutions.
  double c[kTiles][kTiles][2] = {}, f[kTiles][2] = {};
  KeptColumn<kTiles> next;
  next.Load(kept + static_cast<int64_t>(columns - 1) * KeptOf(kTiles));
  for (int column = columns - 1; column >= first; --column) {
    const KeptColumn<kTiles> now = next;
    if (column > first) next.Load(kept + static_cast<int64_t>(column - 1) * KeptOf(kTiles));
    double made[kTiles + 1][2] = {};  // C_k0, and last F_0
    made[kTiles][0] = now.w[0];
    made[kTiles][1] = now.w[1];
#pragma unroll
    for (int l = 0; l < kTiles; ++l) {
      double rows[kTiles + 1][2];
#pragma unroll
      for (int k = 0; k <= kTiles; ++k) {
        rows[k][0] = k < kTiles ? c[k][l][0] : f[l][0];
        rows[k][1] = k < kTiles ? c[k][l][1] : f[l][1];
      }
      AddProducts<kTiles + 1>(rows, now.minus_z[l], made);
    }
    double turned[kTiles][2], diagonal[2] = {now.inverse[0], now.inverse[1]}, other[2];
#pragma unroll
    for (int k = 0; k < kTiles; ++k) Put(turn + k * kTurnSize, at, made[k]);
    __syncwarp();
#pragma unroll
    for (int k = 0; k < kTiles; ++k) {
      TakeTurned(turn + k * kTurnSize, at, turned[k]);
      MultiplyAdd8(now.minus_z[k], turned[k], diagonal);
    }
    __syncwarp();
    // Rounding leaves the tile a little unsymmetric, and the recurrence would amplify that.
    Put(turn, at, diagonal);
    __syncwarp();
    TakeTurned(turn, at, other);
    __syncwarp();
    diagonal[0] = 0.5 * (diagonal[0] + other[0]);
    diagonal[1] = 0.5 * (diagonal[1] + other[1]);
    report(column, diagonal, made[0], made[kTiles]);
#pragma unroll
    for (int e = 0; e < 2; ++e) {
#pragma unroll
      for (int k = kTiles - 1; k >= 1; --k) {
#pragma unroll
        for (int l = kTiles - 1; l >= 1; --l) c[k][l][e] = c[k - 1][l - 1][e];
        c[k][0][e] = made[k - 1][e];
        f[k][e] = f[k - 1][e];
      }
#pragma unroll
      for (int l = 1; l < kTiles; ++l) c[0][l][e] = turned[l - 1][e];
      c[0][0][e] = diagonal[e];
      f[0][e] = made[kTiles][e];
    }
  }
}

// Takes the chunks of so many tiles below the diagonal, the least also those of fewer.
template <int kTiles, bool kLeast>
__global__ void __launch_bounds__(kRootThreads, kTiles == 2 ? 2 : 1) Tiled(JobView job, int above) {
  double* const shared = DynamicShared();
  const int warp = threadIdx.x / kWarp;
  const LanePlaces at;
  double* const turn = shared + TiledMemory<kTiles>::kTurn + warp * kTiles * kTurnSize;
  double* const shares = shared + TiledMemory<kTiles>::kShares;
  double* const kept = job.pole_scratch + (static_cast<int64_t>(blockIdx.x) * kPoleBlock + warp) *
                                              TileColumns(job.roots.extended) * KeptOf(kTiles);
  const int64_t all = job.psf.shape.bins;
  for (int k = blockIdx.x; k < RootTasks(job.roots.count, job.fibres); k += gridDim.x) {
    const RootTask task(job, k);
    const int group = GroupOf(job, task.fibre), widest = job.wide[group * job.roots.count + task.chunk];
    const bool own = widest > max(above, kLeast ? -1 : (kTiles - 1) * kTile) && widest <= kTiles * kTile;
    if (task.pole_block >= job.pole_blocks[task.fibre] || !own) continue;
    const ChunkBins bins(job.roots, job.psf.shape.bins, task.chunk);
    const int pole = task.fibre * kMaxPoles + task.pole_block * kPoleBlock + warp;
    const int columns = TileColumns(bins.count());
    const TiledBand band = {at,
                            job.precision + task.fibre * (job.most_width + 1) * all + bins.first,
                            job.flux + task.fibre * all + bins.first,
                            job.widths + group * all + bins.first,
                            all,
                            bins.count(),
                            job.pole_shift[pole]};
    FactorTiled<kTiles>(band, columns, turn, kept);
    const RootReport report = {job, task, bins, at, job.pole_weight[pole], shares};
    InvertTiled<kTiles>(at, columns, (bins.core - bins.first) / kTile, turn, kept, report);
    __syncthreads();
  }
}

int64_t ScratchOfBlock(const ChunkPlan& roots) {
  return int64_t{kPoleBlock} * TileColumns(roots.extended) * KeptOf(kMostTiles);
}
int Blocks(const ChunkPlan& roots, int fibres) {
  return RootBlocks(RootTasks(roots.count, fibres), kMostBlocks, ScratchOfBlock(roots));
}

template <int kTiles, bool kLeast>
cudaError_t LaunchTiled(const JobView& job, int above, cudaStream_t stream) {
  if ((kTiles - 1) * kTile >= job.most_width || kTiles * kTile <= above) return cudaSuccess;
  return Launch(Tiled<kTiles, kLeast>, Blocks(job.roots, job.fibres), kRootThreads,
                TiledMemory<kTiles>::kTotal * int64_t{sizeof(double)}, stream, job, above);
}

}  // namespace

int64_t TiledRootScratch(const RootShape& shape) {
  if (shape.most_width <= NarrowWidth(shape.usual_width)) return 0;
  return Blocks(shape.chunks, shape.fibres) * ScratchOfBlock(shape.chunks);
}

cudaError_t TiledRoots(const JobView& job, cudaStream_t stream) {
  const int above = NarrowWidth(job.usual_width);
  return FirstError({LaunchTiled<2, true>(job, above, stream), LaunchTiled<3, false>(job, above, stream),
                     LaunchTiled<4, false>(job, above, stream)});
}

}  // namespace spexd::cuda
