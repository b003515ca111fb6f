// Stages "eliminate" and "solve": banded Cholesky factors. A warp takes a chunk of a matrix; where the band
// is wide, a block of threads does.
//
// Floor for 500 matrices of 2350 unknowns with two tiles below the diagonal one: 0.23 GB written and as much
// read, 0.1 ms; 0.6 Gflop. In this implementation, the chain of tile columns is the limit.
#include "cuda/kernels/factor/factor.h"
#include "cuda/kernels/factor/tiled_factor.cuh"
#include "cuda/kernels/factor/wide_factor.cuh"

namespace spexd::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kMinDepth = 2, kMaxTiled = 4;  // tiles below the diagonal one, in registers
constexpr int kMaxAlike = 3;
constexpr int kMaxWideBlocks = 528;  // most blocks that loop over chunks; each may have a window in scratch

__device__ int DepthOf(const FactorArgs& args, int matrix, int chunk) {
  return args.factors.depths[matrix * args.chunks.count + chunk];
}

__device__ bool HasChanged(const FactorArgs& args, int matrix) {
  return args.changed == nullptr || args.changed[matrix] >= args.least;
}

// Destination of a tile column's factor, if the chunk keeps that column.
struct KeptFactor {
  const FactorArgs& args;
  int matrix, first_column, core_column;

  __device__ double* At(int column) const {
    const int64_t at = static_cast<int64_t>(matrix) * args.factors.columns + first_column + column;
    return args.factors.values + at * (1 + args.factors.tiles) * kTileSize;
  }
  __device__ bool Keeps(int column) const { return first_column + column >= core_column; }

  template <int kTiles>
  __device__ __forceinline__ void Column(int column, const double (&inverse)[2],
                                         const double (&transposed)[2], const double (&x)[kTiles][2],
                                         const double (&)[2]) const {
    if (!Keeps(column)) return;
    double* const to = At(column);
    double y[kTiles][2] = {};
    AddProducts<kTiles>(x, transposed, y);
    StorePair(to, inverse[0], inverse[1]);
#pragma unroll
    for (int k = 0; k < kTiles; ++k) StorePair(to + (k + 1) * kTileSize, y[k][0], y[k][1]);
  }
  __device__ void Diagonal(int column, const double (&inverse)[2], const double (&)[2]) const {
    if (Keeps(column)) StorePair(At(column), inverse[0], inverse[1]);
  }
  __device__ void Below(int column, int k, const double (&transposed)[2], const double (&x)[2]) const {
    if (!Keeps(column)) return;
    double y[2] = {0, 0};
    MultiplyAdd8(x, transposed, y);
    StorePair(At(column) + k * kTileSize, y[0], y[1]);
  }
  __device__ void Beyond(int column, int down, int tiles) const {
    for (int k = down + 1; Keeps(column) && k <= tiles; ++k) StorePair(At(column) + k * kTileSize, 0, 0);
  }
};

struct FactorTask {
  int matrix, chunk;
  ChunkRange range;
  __device__ FactorTask(const FactorArgs& args, int task)
      : matrix(task / args.chunks.count),
        chunk(task % args.chunks.count),
        range(args.chunks, args.matrices.size, chunk) {}
  // A factor depends on what comes before a chunk, not on what comes after it.
  __device__ int columns() const { return TilesOf(range.core_end - range.first); }
};

template <int kTiles>
__global__ void __launch_bounds__(kWarps* kWarp) FactorInRegisters(FactorArgs args) {
  __shared__ __align__(16) double transpose[kWarps][kTransposeSize];
  const int warp = threadIdx.x / kWarp, number = blockIdx.x * kWarps + warp;
  if (number >= args.count * args.chunks.count) return;
  const FactorTask task(args, number);
  if (!HasChanged(args, task.matrix) || DepthOf(args, task.matrix, task.chunk) != kTiles) return;
  const LanePositions at;
  const BandRows<false> rows = {
      at,     Band(args.matrices, task.matrix), task.range.first, args.matrices.size - task.range.first, 0,
      nullptr};
  FactorTiled<kTiles>(rows, task.columns(), transpose[warp],
                      KeptFactor{args, task.matrix, task.range.first / kTile, task.range.core / kTile});
}

// Factors the chunks of depths (above, tiles], a block of threads each.
template <bool kInside, int kBlockWarps>
__global__ void __launch_bounds__(kBlockWarps* kWarp)
    FactorInWindow(FactorArgs args, int above, int tiles, double* scratch) {
  double* const shared = DynamicShared();
  const WideMemory memory(tiles, args.factors.columns);
  double* const window = kInside ? shared + memory.near : scratch + int64_t{blockIdx.x} * memory.window;
  const LanePositions at;
  for (int k = blockIdx.x; k < args.count * args.chunks.count; k += gridDim.x) {
    const FactorTask task(args, k);
    if (!HasChanged(args, task.matrix)) continue;
    const int depth = DepthOf(args, task.matrix, task.chunk);
    if (depth <= above || depth > tiles) continue;
    const BandRows<false> rows = {
        at,     Band(args.matrices, task.matrix), task.range.first, args.matrices.size - task.range.first, 0,
        nullptr};
    const WideFactor<kInside, kBlockWarps, BandRows<false>> factor(rows, depth, task.columns(), shared,
                                                                   window);
    factor.Factor(KeptFactor{args, task.matrix, task.range.first / kTile, task.range.core / kTile});
  }
}

// The kernel for the chunks of one kind of depths.
struct WideLaunch {
  int above, tiles, warps;
  void (*kernel)(FactorArgs, int, int, double*);
  int64_t bytes, scratch;  // shared memory; doubles of scratch of a block

  WideLaunch(int kind, int max_tiles, int columns, int shared_bytes)
      : above(kind == 0 ? kMaxTiled : WideTiles(kind - 1)), tiles(std::min(WideTiles(kind), max_tiles)) {
    const WideMemory memory(tiles, columns);
    bytes = (memory.near + memory.window) * static_cast<int64_t>(sizeof(double));
    const bool inside = bytes <= shared_bytes;
    if (!inside) bytes = memory.near * static_cast<int64_t>(sizeof(double));
    scratch = inside ? 0 : memory.window;
    warps = inside && kind < 2 ? 8 : 16;  // many where few blocks share a multiprocessor
    kernel = !inside     ? FactorInWindow<false, 16>
             : warps > 8 ? FactorInWindow<true, 16>
                         : FactorInWindow<true, 8>;
  }
};

template <int kTiles>
cudaError_t LaunchTiled(const FactorArgs& args, cudaStream_t stream) {
  if (kTiles > args.factors.tiles || (args.factors.tiles <= kMaxAlike && kTiles < args.factors.tiles))
    return cudaSuccess;
  const int tasks = args.count * args.chunks.count;
  return Launch(FactorInRegisters<kTiles>, (tasks + kWarps - 1) / kWarps, kWarps * kWarp, 0, stream, args);
}

cudaError_t LaunchWide(const FactorArgs& args, double* scratch, int shared_bytes, cudaStream_t stream) {
  cudaError_t error = cudaSuccess;
  for (int kind = kWideKinds - 1; kind >= 0 && error == cudaSuccess; --kind) {
    const WideLaunch launch(kind, args.factors.tiles, args.factors.columns, shared_bytes);
    if (launch.above >= args.factors.tiles) continue;
    error = Launch(launch.kernel, std::min(args.count * args.chunks.count, kMaxWideBlocks),
                   launch.warps * kWarp, launch.bytes, stream, args, launch.above, launch.tiles, scratch);
  }
  return error;
}

// Closes widths: closed(j) = max over i <= j of widths(i) + i, less j. A warp calls it.
__device__ void CloseWidths(int32_t* widths, int size) {
  const int lane = threadIdx.x;
  int reached = 0, next = lane < size ? widths[lane] : 0;
  for (int first = 0; first < size; first += kWarp) {
    const int j = first + lane;
    int end = j < size ? next + j : 0;
    if (j + kWarp < size) next = widths[j + kWarp];  // arrives during the steps
    for (int step = 1; step < kWarp; step *= 2) {
      const int before = __shfl_sync(kAllLanes, end, max(lane - step, 0));
      if (lane >= step) end = max(end, before);
    }
    end = max(end, reached);
    if (j < size) widths[j] = min(end, size - 1) - j;
    reached = __shfl_sync(kAllLanes, end, kWarp - 1);
  }
  __syncwarp();
}

// Finds where the tile columns of each matrix end, and the depths of its chunks; one warp per matrix.
__global__ void __launch_bounds__(kWarp) FindProfiles(FactorArgs args) {
  const int matrix = blockIdx.x, lane = threadIdx.x, size = args.matrices.size,
            columns = args.factors.columns;
  if (!HasChanged(args, matrix)) return;
  if (args.matrices.widths != nullptr)
    CloseWidths(args.matrices.widths + static_cast<int64_t>(matrix) * size, size);
  const Band band(args.matrices, matrix);
  // Widths fall by at most one from bin to bin, so that a column's last bin reaches furthest.
  const auto end_of = [&](int column) {
    const int last = min((column + 1) * kTile, size) - 1;
    return min(last + band.WidthOf(last), size - 1) / kTile;
  };
  int32_t* const ends = args.factors.ends + matrix * columns;
  int32_t* const starts = args.factors.starts + matrix * columns;
  for (int column = lane; column < columns; column += kWarp) {
    ends[column] = end_of(column);
    for (int row = column == 0 ? 0 : end_of(column - 1) + 1; row <= ends[column]; ++row) starts[row] = column;
  }
  __syncwarp();
  // If few tiles are enough everywhere, one kernel handles all chunks.
  const int least = args.factors.tiles <= kMaxAlike ? args.factors.tiles : kMinDepth;
  for (int chunk = 0; chunk < args.chunks.count; ++chunk) {
    const ChunkRange range(args.chunks, size, chunk);
    int depth = least;
    for (int column = range.first / kTile + lane; column < TilesOf(range.end); column += kWarp)
      depth = max(depth, ends[column] - column);
    depth = __reduce_max_sync(kAllLanes, depth);
    DeviceCheck(depth <= args.factors.tiles);
    if (lane == 0) args.factors.depths[matrix * args.chunks.count + chunk] = depth;
  }
}

}  // namespace

cudaError_t FindDepths(const FactorArgs& args, cudaStream_t stream) {
  return Launch(FindProfiles, args.count, kWarp, 0, stream, args);
}

cudaError_t Factorise(const FactorArgs& args, double* scratch, int shared_bytes, cudaStream_t stream,
                      const SideStreams& side) {
  if (args.factors.tiles <= kMaxAlike)
    return FirstError({LaunchTiled<2>(args, stream), LaunchTiled<3>(args, stream)});
  const cudaError_t error =
      FirstError({side.Fork(stream), LaunchTiled<2>(args, stream),
                  LaunchWide(args, scratch, shared_bytes, side.streams[0]),
                  LaunchTiled<3>(args, side.streams[1]), LaunchTiled<4>(args, side.streams[2])});
  return FirstError({error, side.Join(stream)});
}

int64_t FactorScratch(int tiles, int columns, int shared_bytes) {
  int64_t most = 0;
  for (int kind = 0; kind < kWideKinds; ++kind) {
    const WideLaunch launch(kind, tiles, columns, shared_bytes);
    if (launch.above < tiles) most = std::max(most, kMaxWideBlocks * launch.scratch);
  }
  return most;
}

cudaError_t ConfigureFactor(int shared_bytes) {
  return FirstError({AllowShared(FactorInWindow<true, 8>, shared_bytes),
                     AllowShared(FactorInWindow<true, 16>, shared_bytes),
                     AllowShared(FactorInWindow<false, 16>, shared_bytes)});
}

}  // namespace spexd::cuda
