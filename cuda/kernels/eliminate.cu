// Stage "eliminate": S = D - X^T X, X = L^-1 B. A block of threads walks along a matrix by steps of sixteen
// columns (columns.cuh). Its warps solve for the columns of a few steps; then they take the products of these
// with each other, and with all earlier steps whose columns still overlap, from the matrix.
//
// Floor for a frame (500 fibres of 2350 bins), both sides: factors read, 0.45 GB, couplings 0.36 GB, D read
// and P written, 0.5 GB: 0.3 ms; 3.5 Gflop, 0.06 ms. The matrix units do 21 Gflop here, 0.35 ms.
#include <algorithm>

#include "core/extract/band_rule.h"
#include "core/model/tolerances.h"
#include "cuda/kernels/eliminate.h"
#include "cuda/kernels/factor/columns.cuh"
#include "cuda/kernels/factor/wide_kinds.cuh"

namespace spexd::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kMostKept = 3;                            // tiles of a factor that registers hold
constexpr int kNearRows = 8;                            // tile rows of a step in shared memory
constexpr int kWalkRuns = 5;                            // most runs that a block of threads walks along
constexpr int64_t kMostScratch = int64_t{1} << 25;      // in doubles, on usual grids
constexpr int64_t kMostFineScratch = int64_t{1} << 27;  // on grids whose bands are mostly wide

// ---- Which runs a round works on

struct Task {
  int side, run, block;
  __device__ Task(const BlockPlan& blocks, int number)
      : side(number / (blocks.count * blocks.runs)),
        run(number / blocks.count % blocks.runs),
        block(number % blocks.count) {}
};

// The block before (side 0) or after, in the same bundle; -1 if there is none.
__device__ int Beside(const BlockPlan& blocks, int block, int side) {
  const int other = block + (side == 0 ? -1 : 1);
  if (other < 0 || other >= blocks.count) return -1;
  return other / blocks.per_bundle == block / blocks.per_bundle ? other : -1;
}

// Whether the precision of the block beyond depends on what side `side` of `block` changed in round `round`
// (at least 1) in a run: the change passes on from block to block, each time multiplied by what round 0 took.
__device__ bool IsSignificant(const EliminateArgs& args, int side, int run, int block, int round) {
  const BlockPlan& blocks = args.blocks;
  const int near = RunsOf(args.most_width);
  float change = 1;
  int at = block < 0 ? -1 : Beside(blocks, block, 1 - side);
  for (int k = 0; k <= round && change > args.negligible; ++k, at = Beside(blocks, at, side)) {
    if (at < 0) return false;
    float most = 0;
    for (int r = max(run - near, 0); r <= min(run + near, blocks.runs - 1); ++r)
      most = fmaxf(most, args.change[(side * blocks.runs + r) * blocks.count + at]);
    change *= most;
  }
  return change > args.negligible;
}

// kCopy: S is D, as a factor of S is needed elsewhere in the matrix.
enum Work { kNone, kCopy, kEliminate };

template <int kSides>
__device__ Work WorkOf(const EliminateArgs& args, int side, int run, int block) {
  if (args.round == 0) return kEliminate;
  bool any = false, near = false;
  if (kSides == 2) {
    for (int s = 0; s < 2; ++s) near |= IsSignificant(args, s, run, Beside(args.blocks, block, s), 1);
  } else if (args.round > 1) {
    near = IsSignificant(args, side, run, block, args.round);
  } else {
    const int support = RunsOf(kSupportReaches * args.blocks.reach);
    for (int r = 0; r < args.blocks.runs && !near; ++r) {
      if (r > run + support && any) break;
      const bool significant = IsSignificant(args, side, r, block, 1);
      any |= significant;
      near |= significant && abs(r - run) <= support;
    }
  }
  return near ? kEliminate : any ? kCopy : kNone;
}

// A block of threads walks along neighbouring runs with the same work, at most kWalkRuns of them. Lists the
// first run of each walk.
template <int kSides>
__global__ void __launch_bounds__(kWarp) FindWalks(EliminateArgs args, int tasks) {
  const int number = blockIdx.x * kWarp + threadIdx.x;
  if (number >= tasks) return;
  const Task task(args.blocks, number);
  const Work work = WorkOf<kSides>(args, task.side, task.run, task.block);
  args.work[number] = work;
  if (work == kNone ||
      (task.run % kWalkRuns != 0 && WorkOf<kSides>(args, task.side, task.run - 1, task.block) == work))
    return;
  args.walks[1 + atomicAdd(args.walks, 1)] = number;
}

// ---- A walk

// Steps [first, end) of a block's matrix. Columns are solved for from `start` on, as those before have
// products with these.
struct Part {
  int side, block, first_run, end_run;
  int start, first, end;
  int first_raised;  // widths of columns before this step are left, as not all of their entries are written
};

// What is taken from a part on a side.
__device__ Neighbour NeighbourOf(const EliminateArgs& args, const Part& part, int side) {
  const int other = args.within ? part.block : Beside(args.blocks, part.block, side);
  bool one_sided = false;
  for (int run = part.first_run; run < part.end_run && args.round > 1; ++run)
    one_sided |= IsSignificant(args, side, run, other, 1);
  const int64_t size = args.own.size, reach = args.blocks.reach;
  const int64_t diagonal = (side == 0 ? other : part.block) * (2 * reach + 1) + reach;
  return {one_sided ? args.side_factors : args.factors,
          one_sided ? side * args.blocks.count + other : other,
          args.coupling + diagonal * size,
          side == 0 ? 1 - size : size,
          side == 0 ? size : 1 - size,
          args.blocks.reach,
          args.own.size};
}

// sum += X_step^T X_before, of a half of the columns of `before`, in a fixed order of rows.
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

// Takes products of a step and a half of the columns of `before` from D. What is taken is positive
// semidefinite: its largest entries relative to the diagonal are on it.
template <int kSides, typename ColumnsOf>
__device__ void Take(const EliminateArgs& args, const Part& part, const ColumnsOf& columns_of, int step,
                     int before, int half) {
  const LanePlaces at;
  const int size = args.own.size, matrix = part.side * args.blocks.count + part.block;
  const double* const own = args.own.values + int64_t{part.block} * args.own.diagonals * size;
  const auto threshold = [&](int j) {
    return args.threshold == nullptr ? UsualThreshold(own[j], args.blocks.fibres)
                                     : args.threshold[int64_t{part.block} * size + j];
  };
  double* const to = args.out.values + int64_t{matrix} * args.out.diagonals * size;
  const int first_row = step * kStep + at.row, first_column = before * kStep + half * kTile + at.column;
  double left[4], sum[kSides][4] = {};
#pragma unroll
  for (int e = 0; e < 4; ++e) {  // arrive during the products
    const int row = first_row + e / 2 * kTile, c = first_column + e % 2, k = row - c;
    left[e] = k >= 0 && k < args.own.diagonals && row < size ? own[int64_t{k} * size + c] : 0;
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
          args.change + (q * args.blocks.runs + step / kRunSteps) * args.blocks.count + part.block;
      const float change = static_cast<float>(sum[q][e] / left[e]);
      if (change > *most) atomicMax(reinterpret_cast<int*>(most), __float_as_int(change));
    }
    const bool raises =
        k > args.usual_width && before >= part.first_raised && IsKept(value, threshold(c), threshold(row));
    if (k == 0 || raises) {
      const int width = min(max(k, args.usual_width), args.out.diagonals - 1);
      atomicMax(args.out.widths + int64_t{matrix} * size + c, width);
    }
    if (k < args.out.diagonals) to[int64_t{k} * size + c] = value;
  }
}

// `eliminates`: otherwise nothing is taken from D. `scratch`: of this block of threads.
template <int kSides, int kKept>
__device__ void Walk(const EliminateArgs& args, const Part& part, const ColumnMemory& memory, bool eliminates,
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
      neighbour, args.own.values + int64_t{part.block} * args.own.diagonals * args.own.size, args.tail,
      scratch + kSides * memory.scratch() + warp * memory.history_rows * kStepTiles);
  const int usual_steps = StepsBefore(args.usual_width), most_steps = StepsBefore(args.out.diagonals - 1);
  for (int base = part.start; base < part.end; base += kWarps / kSides) {
    const int step = base + warp / kSides;
    if (step < part.end && eliminates && neighbour.matrix >= 0) {
      solver.Solve(own_columns, step);
    } else if (step < part.end) {
      own_columns.End(step) = 0;
    }
    __syncthreads();
    int extent = 0;  // of this and earlier columns: a width may reach as far as any of them
    for (int before = max(step - most_steps, part.start);
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
  const BlockPlan& blocks = args.blocks;
  for (int k = blockIdx.x; k < args.walks[0]; k += gridDim.x) {
    const Task task(blocks, args.walks[1 + k]);
    const int32_t* const work =
        args.work + task.side * blocks.runs * blocks.count + task.block;  // by `count`
    const int own = work[task.run * blocks.count];
    int end = task.run + 1, raised = task.run;
    while (end % kWalkRuns != 0 && end < blocks.runs && work[end * blocks.count] == own) ++end;
    const int first = task.run * kRunSteps, start = max(first - StepsBefore(args.out.diagonals - 1), 0);
    while (raised * kRunSteps > start && work[(raised - 1) * blocks.count] == kEliminate) --raised;
    const int steps = (args.own.size + kStep - 1) / kStep;
    const Part part = {
        task.side, task.block, task.run, end, start, first, min(end * kRunSteps, steps), raised * kRunSteps};
    Walk<kSides, kKept>(args, part, memory, own == kEliminate, args.scratch + blockIdx.x * scratch_doubles);
    if (kSides == 1 && threadIdx.x == 0) args.updated[task.side * blocks.count + task.block] = 1;
  }
}

// ---- Launches

int64_t SharedBytes(const ColumnMemory& memory, int sides) {
  return sides * (memory.shared() * static_cast<int64_t>(sizeof(double)) +
                  memory.ring.slots * static_cast<int64_t>(sizeof(int)));
}
// `tiles`: most of a factor below the diagonal one.
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
  const int tiles = std::max(TilesOf(width), kLeastFactorTiles);
  const ColumnMemory memory = MemoryOf(blocks, width, tiles, 2, 0);
  return 2 * memory.scratch() + int64_t{kWarps} * memory.history_rows * kStepTiles;
}
int ThreadBlocks(const BlockPlan& blocks, int width) {
  const int64_t scratch = width > kFineWidth ? kMostFineScratch : kMostScratch;
  const int most = blocks.count * blocks.runs;
  return static_cast<int>(std::clamp<int64_t>(scratch / BlockScratch(blocks, width), 1, most));
}

template <int kSides>
cudaError_t LaunchWalks(const EliminateArgs& args, cudaStream_t stream) {
  const int tiles = std::max(args.factors.tiles, args.round > 1 ? args.side_factors.tiles : 0);
  const int matrices = (kSides == 2 || args.within ? 1 : 2) * args.blocks.count;
  const int tasks = matrices * args.blocks.runs;
  const ColumnMemory memory = MemoryOf(args.blocks, args.most_width, tiles, kSides, args.shared_bytes);
  const bool first = args.round < (kSides == 2 ? 1 : 2);
  return FirstError(
      {first ? cudaMemsetAsync(args.out.widths, 0, sizeof(int32_t) * matrices * args.out.size, stream)
             : cudaSuccess,
       cudaMemsetAsync(args.walks, 0, sizeof(int32_t), stream),
       Launch(FindWalks<kSides>, (tasks + kWarp - 1) / kWarp, kWarp, 0, stream, args, tasks),
       Launch(tiles > kMostKept    ? Eliminate<kSides, 0>
              : tiles == kMostKept ? Eliminate<kSides, kMostKept>
                                   : Eliminate<kSides, kMostKept - 1>,
              ThreadBlocks(args.blocks, args.most_width), kWarps * kWarp, SharedBytes(memory, kSides), stream,
              args, memory, BlockScratch(args.blocks, args.most_width))});
}

}  // namespace

int64_t EliminateScratch(const BlockPlan& blocks, int most_width) {
  return ThreadBlocks(blocks, most_width) * BlockScratch(blocks, most_width);
}

cudaError_t ConfigureEliminate(int shared_bytes) {
  return FirstError(
      {AllowShared(Eliminate<1, kMostKept - 1>, shared_bytes),
       AllowShared(Eliminate<1, kMostKept>, shared_bytes), AllowShared(Eliminate<1, 0>, shared_bytes),
       AllowShared(Eliminate<2, kMostKept - 1>, shared_bytes),
       AllowShared(Eliminate<2, kMostKept>, shared_bytes), AllowShared(Eliminate<2, 0>, shared_bytes)});
}

cudaError_t EliminateBoth(const EliminateArgs& args, cudaStream_t stream) {
  const size_t bytes = size_t{2} * args.blocks.count * args.blocks.runs * sizeof(float);
  return FirstError({args.round == 0 ? cudaMemsetAsync(args.change, 0, bytes, stream) : cudaSuccess,
                     LaunchWalks<2>(args, stream)});
}
cudaError_t EliminateSides(const EliminateArgs& args, cudaStream_t stream) {
  return FirstError(
      {cudaMemsetAsync(args.updated, 0, size_t{2} * args.blocks.count * sizeof(int32_t), stream),
       LaunchWalks<1>(args, stream)});
}

}  // namespace spexd::cuda
