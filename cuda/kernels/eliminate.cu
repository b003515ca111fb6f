// Stage "eliminate": S = D - X^T X, X = L^-1 B. A block of threads walks along a matrix by steps of sixteen
// columns (columns.cuh). Its warps solve for the columns of a few steps. Then they subtract from the matrix
// the products of these steps with each other and with all earlier steps whose columns still overlap.
//
// Floor for a frame (500 fibres of 2350 bins), both sides: factors read, 0.45 GB, couplings 0.36 GB, D read
// and P written, 0.5 GB: 0.3 ms; 3.5 Gflop, 0.06 ms. The matrix units do 21 Gflop here, 0.35 ms.
#include <algorithm>

#include "core/extract/band_rule.h"
#include "core/model/tolerances.h"
#include "cuda/kernels/eliminate.h"
#include "cuda/kernels/factor/columns.cuh"
#include "cuda/kernels/factor/substitution.cuh"
#include "cuda/kernels/factor/wide_kinds.cuh"

namespace spexd::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kMaxKept = 3;                              // tiles of a factor that registers hold
constexpr int kNearRows = 8;                              // tile rows of a step in shared memory
constexpr int64_t kMaxScratch = int64_t{32} << 20;       // in doubles, on usual grids
constexpr int64_t kMaxFineScratch = int64_t{200} << 20;  // on grids whose bands are mostly wide

// The most runs of a walk. Rounds after the first have few walks, which are kept short so that they end soon.
__host__ __device__ constexpr int WalkRuns(int round) { return round == 0 ? 10 : 2; }

// Finds the thresholds, one warp per chunk of a block.
__global__ void __launch_bounds__(kWarps* kWarp) FindThresholds(EliminateArgs args) {
  const int number = blockIdx.x * kWarps + threadIdx.x / kWarp, block = number / args.chunks.count;
  if (block >= args.blocks.count) return;
  const ChunkRange range(args.chunks, args.own.size, number % args.chunks.count);
  const double* const diagonal = args.own.values + int64_t{block} * args.own.diagonals * args.own.size;
  double* const threshold = args.threshold + int64_t{block} * args.own.size;
  if (IsConditioned(args.blocks.reach, args.blocks.fibres)) {
    const Substitution substitution(args.factors, block, range.first, range.end,
                                    args.values + int64_t{number} * args.chunks.extended);
    substitution.Solve(range.first, [&](int j) { return (j % 2 == 0 ? 1 : -1) * sqrt(diagonal[j]); });
    substitution.ForEach(range.core, range.core_end,
                         [&](int j, double x) { threshold[j] = ConditionedThreshold(diagonal[j], x); });
    return;
  }
  for (int j = range.core + threadIdx.x % kWarp; j < range.core_end; j += kWarp)
    threshold[j] = UsualThreshold(diagonal[j], args.blocks.fibres);
}

// ---- Which runs a round works on

// Returns the block before (side 0) or after, in the same bundle; -1 if there is none.
__device__ int Beside(const BlockPlan& blocks, int block, int side) {
  const int other = block + (side == 0 ? -1 : 1);
  if (other < 0 || other >= blocks.count) return -1;
  return other / blocks.per_bundle == block / blocks.per_bundle ? other : -1;
}

// Finds how many rounds change S on a side of a block, in each run and at most; one warp per matrix. Each
// round brings S a change from one block further away. On its way a change is multiplied by what round 0 took
// from each block.
__global__ void __launch_bounds__(kWarp) FindChanges(EliminateArgs args) {
  const BlockPlan& blocks = args.blocks;
  const int matrix = blockIdx.x, side = matrix / blocks.count, near = RunsOf(args.max_width);
  int deepest = 0;
  for (int run = threadIdx.x; run < blocks.runs; run += kWarp) {
    const int first = max(run - near, 0), end = min(run + near + 1, blocks.runs);
    int depth = 0, at = Beside(blocks, matrix % blocks.count, 1 - side);
    float change = 1;
    for (int round = 0; round <= args.rounds && at >= 0; ++round, at = Beside(blocks, at, side)) {
      const float* const taken = args.change + (side * blocks.count + at) * blocks.runs;
      float most = 0;
      for (int r = first; r < end; ++r) most = fmaxf(most, taken[r]);
      change *= most;
      if (!(change > args.negligible)) break;
      depth = round;
    }
    args.depth[matrix * blocks.runs + run] = depth;
    deepest = max(deepest, depth);
  }
  deepest = __reduce_max_sync(kAllLanes, deepest);
  if (threadIdx.x == 0) args.deepest[matrix] = deepest;
}

// kCopy: S is D in this run, and is written because S is factored elsewhere in the matrix.
enum Work { kNone, kCopy, kEliminate };

template <int kSides>
__device__ Work WorkOf(const EliminateArgs& args, int matrix, int run) {
  if (args.round == 0) return kEliminate;
  const BlockPlan& blocks = args.blocks;
  const int32_t* const depth = args.depth + matrix * blocks.runs;
  if (kSides == 2) {
    for (int side = 0; side < 2; ++side) {
      const int other = Beside(blocks, matrix, side);
      if (other >= 0 && args.depth[(side * blocks.count + other) * blocks.runs + run] > 0) return kEliminate;
    }
    return kNone;
  }
  if (args.round > 1 || args.deepest[matrix] == 0) return depth[run] >= args.round ? kEliminate : kNone;
  const int support = RunsOf(kSupportReaches * blocks.reach);
  for (int r = max(run - support, 0); r <= min(run + support, blocks.runs - 1); ++r)
    if (depth[r] > 0) return kEliminate;
  return kCopy;
}

// A block of threads walks along neighbouring runs with the same work, at most WalkRuns of them. A thread
// lists where the walks along WalkRuns runs of a matrix begin.
template <int kSides>
__global__ void __launch_bounds__(kWarp) FindWalks(EliminateArgs args, int matrices) {
  const int runs = args.blocks.runs, most = WalkRuns(args.round), parts = (runs + most - 1) / most;
  const int number = blockIdx.x * kWarp + threadIdx.x, matrix = number / parts;
  if (matrix >= matrices) return;
  int before = kNone;
  for (int run = number % parts * most, end = min(run + most, runs); run < end; ++run) {
    const int work = WorkOf<kSides>(args, matrix, run);
    args.work[matrix * runs + run] = work;
    if (work != kNone && work != before) args.walks[2 + atomicAdd(args.walks, 1)] = matrix * runs + run;
    before = work;
  }
}

// ---- A walk

// Steps [first, end) of a block's matrix. Columns are solved for from `start` on, because those before
// `first` have products with these steps.
struct Part {
  int side, block;
  bool eliminates;  // otherwise nothing is taken from D
  int start, first, end;
  // Widths of columns before this step stay as they are, because not all of their entries are written. Those
  // of later columns are raised: all walks of a round eliminate the same matrices from a block, so that a
  // column reaches equally far in each of them.
  int first_raised;
};

// Returns the walk that begins at a task.
__device__ Part PartOf(const EliminateArgs& args, int task) {
  const BlockPlan& blocks = args.blocks;
  const int matrix = task / blocks.runs, run = task % blocks.runs, first = run * kRunSteps;
  const int32_t* const work = args.work + matrix * blocks.runs;
  const int start = max(first - StepsBefore(args.out.diagonals - 1), 0);
  int end = run + 1, raised = run;
  while (end % WalkRuns(args.round) != 0 && end < blocks.runs && work[end] == work[run]) ++end;
  while (raised * kRunSteps > start && work[raised - 1] == kEliminate) --raised;
  return {matrix / blocks.count,
          matrix % blocks.count,
          work[run] == kEliminate,
          start,
          first,
          min(end * kRunSteps, (args.own.size + kStep - 1) / kStep),
          raised * kRunSteps};
}

// Returns what is eliminated from a part on a side.
__device__ Neighbour NeighbourOf(const EliminateArgs& args, const Part& part, int side) {
  const int other = args.within ? part.block : Beside(args.blocks, part.block, side);
  const bool one_sided = args.round > 1 && other >= 0 && args.deepest[side * args.blocks.count + other] > 0;
  const FactorArrays& factors = one_sided ? args.side_factors : args.factors;
  const int64_t size = args.own.size, reach = args.blocks.reach,
                row = (one_sided ? side * args.blocks.count + other : other) * int64_t{factors.columns};
  return {other < 0 ? nullptr : factors.values + row * (1 + factors.tiles) * kTileSize,
          factors.starts + row,
          args.coupling + ((side == 0 ? other : part.block) * (2 * reach + 1) + reach) * size,
          factors.tiles,
          side == 0,
          args.blocks.reach,
          args.own.size};
}

// sum += X_step^T X_before, for half of the columns of `before`, in a fixed order of rows.
__device__ __forceinline__ void MultiplyAdd(const Columns& columns, int step, int before, int half,
                                            double (&sum)[4]) {
  const StepRows x(columns, step), y(columns, before);
  const int end = min(columns.End(step), columns.End(before));
#pragma unroll 1
  for (int row = max(columns.FirstRow(step), 0); row < end; ++row) {
    double top[2], bottom[2], other[2];
    LoadPair(x.At(row), top);
    LoadPair(x.At(row) + kTileSize, bottom);
    LoadPair(y.At(row) + half * kTileSize, other);
    MultiplyAdd16(top, bottom, other, sum);
  }
}

// Subtracts the products of a step with half of the columns of `before` from D. The products form a positive
// semidefinite matrix, whose largest entries relative to D's diagonal are on the diagonal.
template <int kSides, typename ColumnsOf>
__device__ void Take(const EliminateArgs& args, const Part& part, const ColumnsOf& columns_of, int step,
                     int before, int half) {
  const LanePositions at;
  const int size = args.own.size, matrix = part.side * args.blocks.count + part.block;
  const double* const own = args.own.values + int64_t{part.block} * args.own.diagonals * size;
  const double* const threshold = args.threshold + int64_t{part.block} * size;
  double* const to = args.out.values + int64_t{matrix} * args.out.diagonals * size;
  const int first_row = step * kStep + at.row, first_column = before * kStep + half * kTile + at.column;
  const int64_t position = int64_t{first_row - first_column} * size + first_column;  // in a band
  const auto position_of = [&](int e) { return position + e % 2 * (1 - size) + e / 2 * kTile * size; };
  double left[4], sum[kSides][4] = {}, row_limit[2], column_limit[2];  // arrive during the products
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    row_limit[h] = threshold[min(first_row + h * kTile, size - 1)];
    column_limit[h] = threshold[min(first_column + h, size - 1)];
  }
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const int row = first_row + e / 2 * kTile, c = first_column + e % 2, k = row - c;
    left[e] = k >= 0 && k < args.own.diagonals && row < size ? own[position_of(e)] : 0;
  }
#pragma unroll
  for (int q = 0; q < kSides; ++q) MultiplyAdd(columns_of(q), step, before, half, sum[q]);
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const int row = first_row + e / 2 * kTile, c = first_column + e % 2, k = row - c;
    if (k < 0 || row >= size) continue;
    double value = left[e];
#pragma unroll
    for (int q = 0; q < kSides; ++q) {
      value -= sum[q][e];
      if (kSides == 1 || args.round > 0 || k > 0 || !(left[e] > 0)) continue;
      float* const most =
          args.change + (q * args.blocks.count + part.block) * args.blocks.runs + step / kRunSteps;
      const float change = static_cast<float>(sum[q][e]) / static_cast<float>(left[e]);
      if (change > *most) atomicMax(reinterpret_cast<int*>(most), __float_as_int(change));
    }
    const bool raises = k > args.usual_width && before >= part.first_raised &&
                        IsKept(value, column_limit[e % 2], row_limit[e / 2]);
    if (k == 0 || raises) {
      const int width = min(max(k, args.usual_width), args.out.diagonals - 1);
      atomicMax(args.out.widths + int64_t{matrix} * size + c, width);
    }
    if (k < args.out.diagonals) to[position_of(e)] = value;
  }
}

// `scratch`: the scratch memory of this block of threads.
template <int kSides, int kKept>
__device__ void Walk(const EliminateArgs& args, const Part& part, const ColumnMemory& memory,
                     double* scratch) {
  double* const shared = DynamicShared();
  int* const ends = reinterpret_cast<int*>(shared + kSides * memory.shared());
  const auto columns_of = [&](int q) -> Columns {
    return {memory, args.blocks.reach, shared + q * memory.shared(), scratch + q * memory.scratch(),
            ends + q * memory.ring.slots};
  };
  const int warp = threadIdx.x / kWarp, own = warp % kSides;
  const Columns own_columns = columns_of(own);
  const Neighbour neighbour = NeighbourOf(args, part, kSides == 2 ? own : part.side);
  const ColumnSolver<kKept> solver(
      neighbour, args.normal.values + int64_t{part.block} * args.normal.diagonals * args.own.size, args.tail,
      scratch + kSides * memory.scratch() + warp * memory.history_rows * kStepTiles);
  const int usual_steps = StepsBefore(args.usual_width), max_steps = StepsBefore(args.out.diagonals - 1);
  for (int base = part.start; base < part.end; base += kWarps / kSides) {
    const int step = base + warp / kSides;
    if (step < part.end && part.eliminates && neighbour.tiles != nullptr) {
      solver.Solve(own_columns, step);
    } else if (step < part.end) {
      own_columns.End(step) = 0;
    }
    __syncthreads();
    int extent = 0;  // of this and earlier columns: a width may reach as far as any of them
    for (int before = max(step - max_steps, part.start);
         before <= step && step >= part.first && step < part.end; ++before) {
#pragma unroll
      for (int q = 0; q < kSides; ++q) extent = max(extent, columns_of(q).End(before));
      if (step - before > usual_steps && extent <= own_columns.FirstRow(step)) continue;
      for (int half = own; half < 2; half += kSides) Take<kSides>(args, part, columns_of, step, before, half);
    }
    __syncthreads();
  }
}

template <int kSides, int kKept>
__global__ void __launch_bounds__(kWarps* kWarp, 2)
    Eliminate(EliminateArgs args, ColumnMemory memory, int64_t scratch_doubles) {
  __shared__ Part part;  // shared, so that it takes no registers
  while (true) {
    __syncthreads();
    if (threadIdx.x == 0) {
      const int k = atomicAdd(args.walks + 1, 1);
      part = k < args.walks[0] ? PartOf(args, args.walks[2 + k]) : Part{};
    }
    __syncthreads();
    if (part.end == 0) return;
    Walk<kSides, kKept>(args, part, memory, args.scratch + blockIdx.x * scratch_doubles);
  }
}

// ---- Launches

int64_t SharedBytes(const ColumnMemory& memory, int sides) {
  return sides * (memory.shared() * static_cast<int64_t>(sizeof(double)) +
                  memory.ring.slots * static_cast<int64_t>(sizeof(int)));
}
// `tiles`: most tiles of a factor below the diagonal one.
ColumnMemory MemoryOf(const BlockPlan& blocks, int width, int tiles, int sides, int shared_bytes) {
  const int reaches = width > kFineWidth ? kFineColumnReaches : kColumnReaches, batch = kWarps / sides;
  const int rows = std::min(TilesOf(kStep + std::max(reaches * blocks.reach, 2 * width)),
                            TilesOf(blocks.reach) + TilesOf(blocks.size) + 1);
  ColumnMemory memory = {Ring(batch + StepsBefore(width)), Ring(batch + (kNearRows - 1) / 2), rows,
                         std::min(kNearRows, rows), 1 + tiles};
  while (memory.near_rows > 0 && SharedBytes(memory, sides) > shared_bytes) --memory.near_rows;
  return memory;
}

// Scratch memory of a block of threads: columns of both sides, and W of each warp.
int64_t BlockScratch(const BlockPlan& blocks, int width) {
  const int tiles = std::max(TilesOf(width), kMinFactorTiles);
  const ColumnMemory memory = MemoryOf(blocks, width, tiles, 2, 0);
  return 2 * memory.scratch() + int64_t{kWarps} * memory.history_rows * kStepTiles;
}
int ThreadBlocks(const BlockPlan& blocks, int width) {
  const int64_t scratch = width > kFineWidth ? kMaxFineScratch : kMaxScratch;
  const int most = blocks.count * blocks.runs;
  return static_cast<int>(std::clamp<int64_t>(scratch / BlockScratch(blocks, width), 1, most));
}

template <int kSides>
cudaError_t LaunchWalks(const EliminateArgs& args, cudaStream_t stream) {
  const int tiles = std::max(args.factors.tiles, args.round > 1 ? args.side_factors.tiles : 0);
  const int matrices = (kSides == 2 || args.within ? 1 : 2) * args.blocks.count;
  const int most = WalkRuns(args.round), parts = matrices * ((args.blocks.runs + most - 1) / most);
  const ColumnMemory memory = MemoryOf(args.blocks, args.max_width, tiles, kSides, args.shared_bytes);
  const bool first = args.round < (kSides == 2 ? 1 : 2);
  return FirstError(
      {first ? cudaMemsetAsync(args.out.widths, 0, sizeof(int32_t) * matrices * args.out.size, stream)
             : cudaSuccess,
       cudaMemsetAsync(args.walks, 0, 2 * sizeof(int32_t), stream),
       Launch(FindWalks<kSides>, (parts + kWarp - 1) / kWarp, kWarp, 0, stream, args, matrices),
       Launch(tiles > kMaxKept    ? Eliminate<kSides, 0>
              : tiles == kMaxKept ? Eliminate<kSides, kMaxKept>
                                  : Eliminate<kSides, kMaxKept - 1>,
              ThreadBlocks(args.blocks, args.max_width), kWarps * kWarp, SharedBytes(memory, kSides), stream,
              args, memory, BlockScratch(args.blocks, args.max_width))});
}

}  // namespace

int64_t EliminateScratch(const BlockPlan& blocks, int max_width) {
  return ThreadBlocks(blocks, max_width) * BlockScratch(blocks, max_width);
}

cudaError_t ConfigureEliminate(int shared_bytes) {
  return FirstError(
      {AllowShared(Eliminate<1, kMaxKept - 1>, shared_bytes),
       AllowShared(Eliminate<1, kMaxKept>, shared_bytes), AllowShared(Eliminate<1, 0>, shared_bytes),
       AllowShared(Eliminate<2, kMaxKept - 1>, shared_bytes),
       AllowShared(Eliminate<2, kMaxKept>, shared_bytes), AllowShared(Eliminate<2, 0>, shared_bytes)});
}

cudaError_t EliminateRound(const EliminateArgs& args, cudaStream_t stream) {
  if (args.within || (args.round > 0 && args.round <= args.rounds)) return LaunchWalks<1>(args, stream);
  if (args.round > 0) return LaunchWalks<2>(args, stream);
  const int matrices = 2 * args.blocks.count, parts = args.blocks.count * args.chunks.count;
  return FirstError({Launch(FindThresholds, (parts + kWarps - 1) / kWarps, kWarps * kWarp, 0, stream, args),
                     cudaMemsetAsync(args.change, 0, sizeof(float) * matrices * args.blocks.runs, stream),
                     LaunchWalks<2>(args, stream), Launch(FindChanges, matrices, kWarp, 0, stream, args)});
}

}  // namespace spexd::cuda
