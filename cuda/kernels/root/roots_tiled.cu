// Square roots of bands of a few tiles (root_tiles.cuh). A warp takes one recurrence and a block eight poles,
// with the window in registers.
//
// Floor for a frame (500 fibres, 16 poles, all chunks with two tiles below the diagonal): the factor written
// and read, 2 x 3.1 GB, 1.5 ms; 14 products of 16 x 8 x 8 for 8 bins, 34 Gflop, 0.55 ms on the matrix units.
#include "cuda/kernels/factor/tiled_factor.cuh"
#include "cuda/kernels/root/root_tiles.cuh"

namespace spexd::cuda {
namespace {

constexpr int kMaxTiles = kMaxTiled / kTile;
// Maximum number of blocks by tiles. They loop over the recurrences, and each has its own scratch. All fit on
// a large device at once: if some had to wait for others, the last ones would keep the device half idle.
constexpr int kMaxBlocks[kMaxTiles + 1] = {0, 0, 198, 132, 104};
constexpr int64_t kMaxBytes = int64_t{1} << 31;  // scratch limit of a kernel

// Shared memory of a block, in doubles: buffers in which warps transpose tiles, and the shares of the sums.
template <int kTiles>
struct TiledMemory {
  static constexpr int kTranspose = 0, kShares = kPoleGroup * kTiles * kTransposeSize,
                       kTotal = kShares + kRootShares;
};

// Values of one column of the factor that the backward pass reads.
template <int kTiles>
struct KeptColumn {
  double inverse[2], z[kTiles][2], w[2];

  __device__ __forceinline__ void Load(const double* kept) {
    LoadPair(kept, inverse);
#pragma unroll
    for (int k = 0; k < kTiles; ++k) LoadPair(kept + (k + 1) * kTileSize, z[k]);
    w[0] = w[1] = 0;
    if (threadIdx.x % kWarp < kTile) LoadPair(kept + (kTiles + 1) * kTileSize, w);
  }
};

// Calls report(column, C_00, C_10, F_0) for tile columns from the last to `first`.
template <int kTiles, typename Report>
__device__ __forceinline__ void InvertTiled(const LanePositions& at, int columns, int first,
                                            double* transpose, const double* kept, const Report& report) {
  // Tiles (k, l) of the inverse behind the column, in both triangles, and rows of the solutions.
  double c[kTiles][kTiles][2] = {}, f[kTiles][2] = {};
  KeptColumn<kTiles> next;
  next.Load(kept + int64_t{columns - 1 - first} * KeptOf(kTiles));
  for (int column = columns - 1; column >= first; --column) {
    const KeptColumn<kTiles> now = next;
    double minus_z[kTiles][2];
#pragma unroll
    for (int k = 0; k < kTiles; ++k) {
      minus_z[k][0] = -now.z[k][0];
      minus_z[k][1] = -now.z[k][1];
    }
    if (column > first) next.Load(kept + int64_t{column - 1 - first} * KeptOf(kTiles));
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
      AddProducts<kTiles + 1>(rows, minus_z[l], made);
    }
    double transposed[kTiles][2], diagonal[2] = {now.inverse[0], now.inverse[1]}, other[2];
#pragma unroll
    for (int k = 0; k < kTiles; ++k) Put(transpose + k * kTransposeSize, at, made[k]);
    __syncwarp();
#pragma unroll
    for (int k = 0; k < kTiles; ++k) {
      TakeTransposed(transpose + k * kTransposeSize, at, transposed[k]);
      MultiplyAdd8(minus_z[k], transposed[k], diagonal);
    }
    __syncwarp();
    // Rounding leaves the tile a little unsymmetric, and the recurrence would amplify that.
    Put(transpose, at, diagonal);
    __syncwarp();
    TakeTransposed(transpose, at, other);
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
      for (int l = 1; l < kTiles; ++l) c[0][l][e] = transposed[l - 1][e];
      c[0][0][e] = diagonal[e];
      f[0][e] = made[kTiles][e];
    }
  }
}

// Solves the tasks with kTiles tiles below the diagonal one.
template <int kTiles>
__global__ void __launch_bounds__(kRootThreads, kTiles == 2 ? 2 : 1) Tiled(RootArgs args) {
  double* const shared = DynamicShared();
  const int warp = threadIdx.x / kWarp;
  const LanePositions at;
  double* const transpose = shared + TiledMemory<kTiles>::kTranspose + warp * kTiles * kTransposeSize;
  double* const shares = shared + TiledMemory<kTiles>::kShares;
  double* const kept = args.resolution.scratch + (static_cast<int64_t>(blockIdx.x) * kPoleGroup + warp) *
                                                     TilesOf(args.chunks.behind()) * KeptOf(kTiles);
  constexpr RootKind kKind = static_cast<RootKind>(kTwoTileRoot + kTiles - 2);
  for (int k = blockIdx.x; k < args.resolution.task_count[kKind]; k += gridDim.x) {
    const RootTask task(args, TasksOf(args, kKind)[k]);
    const ChunkRange bins(args.chunks, args.precision.size, task.chunk);
    const int columns = TilesOf(bins.count()), core = (bins.core - bins.first) / kTile;
    for (int group = task.group; group < task.end; ++group) {
      const int pole = task.FirstPole(args, group) + warp;
      const BandRows<true> rows = {at,
                                   Band(args.precision, task.fibre),
                                   bins.first,
                                   bins.count(),
                                   args.resolution.pole_shift[pole],
                                   args.flux + static_cast<int64_t>(task.fibre) * args.precision.size};
      FactorTiled<kTiles>(rows, columns, transpose, KeptRoot{kept, kTiles, core});
      const RootReport report = {
          args, task, bins, at, args.resolution.pole_weight[pole], group == task.group, shares};
      InvertTiled<kTiles>(at, columns, core, transpose, kept, report);
      __syncthreads();
    }
  }
}

int64_t ScratchOfBlock(const ChunkPlan& roots, int tiles) {
  return int64_t{kPoleGroup} * TilesOf(roots.behind()) * KeptOf(tiles);
}
int Blocks(const ChunkPlan& roots, int fibres, int tiles) {
  return RootBlocks(RootTasks(roots.count, fibres), kMaxBlocks[tiles], ScratchOfBlock(roots, tiles),
                    kMaxBytes);
}

int64_t ScratchOf(const ChunkPlan& roots, int fibres, int tiles) {
  return Blocks(roots, fibres, tiles) * ScratchOfBlock(roots, tiles);
}
// Kernels for more than two tiles follow each other and share their scratch.
int64_t DeepScratch(const ChunkPlan& roots, int fibres) {
  int64_t most = 0;
  for (int tiles = 3; tiles <= kMaxTiles; ++tiles) most = std::max(most, ScratchOf(roots, fibres, tiles));
  return most;
}

template <int kTiles>
cudaError_t LaunchTiled(const RootArgs& args, cudaStream_t stream) {
  const int least = kTiles == 2 ? 0 : (kTiles - 1) * kTile;
  if (args.precision.diagonals - 1 <= least) return cudaSuccess;
  return Launch(Tiled<kTiles>, Blocks(args.chunks, args.fibres, kTiles), kRootThreads,
                TiledMemory<kTiles>::kTotal * int64_t{sizeof(double)}, stream, args);
}

}  // namespace

int64_t TiledRootScratch(const RootShape& shape) {
  if (HasNarrow(shape.usual_width) && shape.max_width <= kMaxNarrow) return 0;
  return ScratchOf(shape.chunks, shape.fibres, 2) + DeepScratch(shape.chunks, shape.fibres);
}

cudaError_t TiledRoots(const RootArgs& args, cudaStream_t stream, cudaStream_t deep) {
  RootArgs deeper = args;
  deeper.resolution.scratch += ScratchOf(args.chunks, args.fibres, 2);
  return FirstError(
      {LaunchTiled<4>(deeper, deep), LaunchTiled<3>(deeper, deep), LaunchTiled<2>(args, stream)});
}

}  // namespace spexd::cuda
