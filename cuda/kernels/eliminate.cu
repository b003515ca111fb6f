// Stage "eliminate": S = D - X^T X, X = L^-1 B. A block of threads takes a run of a matrix's columns by steps
// of sixteen (columns.cuh): each warp solves for the columns of a step; then it takes their products with
// each other, and with those of the steps before, from the matrix.
//
// Runs whose columns die away late, or have products far from the diagonal, as beside holes, are left to a
// second kernel that keeps columns in scratch and takes all products that the matrix has room for.
//
// Floor for a frame (500 fibres of 2350 bins), both sides: factors read, 0.45 GB, couplings 0.36 GB, D read
// and P written, 0.5 GB: 0.3 ms; 3.5 Gflop, 0.06 ms. The matrix units do 21 Gflop here, 0.35 ms.
#include <algorithm>

#include "core/extract/band_rule.h"
#include "core/model/tolerances.h"
#include "cuda/kernels/common/tasks.cuh"
#include "cuda/kernels/eliminate.h"
#include "cuda/kernels/factor/columns.cuh"
#include "cuda/kernels/factor/wide_kinds.cuh"

namespace spexd::cuda {
namespace {

constexpr int kWarps = kLeastRunSteps + 1;          // one more for the step before the run
constexpr int kMostKept = 3;                        // most tiles of the factor that the first kernel takes
constexpr int kUsualRows = 11;                      // tile rows of a step in shared memory
constexpr int kFewBlocks = 1056;                    // blocks that loop over tasks where few tasks have work
constexpr int64_t kMostScratch = int64_t{1} << 25;  // in doubles, on usual grids
constexpr int64_t kMostFineScratch = int64_t{1} << 27;  // on grids whose bands are mostly wide

// A side of a block of fibres, and a run of its steps [first, end).
struct Task {
  int side, block, run, first, end;
  __device__ Task(const BlockPlan& blocks, int number)
      : side(number / (blocks.count * blocks.runs)),
        block(number % blocks.count),
        run(number / blocks.count % blocks.runs),
        first(run * blocks.run_steps),
        end(min(first + blocks.run_steps, (blocks.size + kStep - 1) / kStep)) {}
};

// ---- Which runs a round works on

// The block before (side 0) or after, in the same bundle; -1 if there is none.
__device__ int Beside(const BlockPlan& blocks, int block, int side) {
  const int other = block + (side == 0 ? -1 : 1);
  if (other < 0 || other >= blocks.count) return -1;
  return other / blocks.per_bundle == block / blocks.per_bundle ? other : -1;
}
__device__ int PlaceOf(const BlockPlan& blocks, int side, int run, int block) {
  return (side * blocks.runs + run) * blocks.count + block;
}
// The largest of the values [side, run, block] in a run and those beside it.
__device__ float Largest(const BlockPlan& blocks, const float* of, int side, int run, int block) {
  float largest = 0;
  for (int r = max(run - 1, 0); r <= min(run + 1, blocks.runs - 1); ++r)
    largest = fmaxf(largest, of[PlaceOf(blocks, side, r, block)]);
  return largest;
}
// What the block on the other side of `block` takes less if `taken` of `block` has been taken before.
__device__ float Beyond(const EliminateArgs& args, int side, int run, int block, float taken) {
  const int beyond = Beside(args.blocks, block, 1 - side);
  return beyond < 0 ? 0 : taken * Largest(args.blocks, args.couplings, side, run, beyond);
}

// Whether the difference of S from D matters to the precision beyond: kSupport if only by runs that it
// influences.
enum Significance { kNegligible, kSupport, kSignificant };

// One warp per side and block.
__global__ void __launch_bounds__(kWarp) FindSignificance(EliminateArgs args) {
  const int block = blockIdx.x, side = blockIdx.y, lane = threadIdx.x;
  const BlockPlan& blocks = args.blocks;
  bool any = false;
  for (int run = lane; run < blocks.runs; run += kWarp) {
    bool significant = false, near = false;
    for (int r = max(run - kSupportRuns, 0); r <= min(run + kSupportRuns, blocks.runs - 1); ++r) {
      const float taken = Largest(blocks, args.couplings, side, r, block);
      const bool so = Beyond(args, side, r, block, taken) > args.negligible;
      near |= so;
      if (r == run) significant = so;
    }
    any |= near;
    args.significance[PlaceOf(blocks, side, run, block)] = significant ? kSignificant
                                                           : near      ? kSupport
                                                                       : kNegligible;
  }
  any = __ballot_sync(kAllLanes, any) != 0;
  if (lane == 0) args.any_significant[side * blocks.count + block] = any;
}
__device__ bool IsSignificant(const EliminateArgs& args, int side, int run, int block) {
  return block >= 0 && args.significance[PlaceOf(args.blocks, side, run, block)] == kSignificant;
}

template <bool kBoth>
__device__ bool HasWork(const EliminateArgs& args, const Task& task) {
  if (args.round == 0) return true;
  const int side = task.side, before = Beside(args.blocks, task.block, side);
  if (kBoth) {
    return IsSignificant(args, side, task.run, before) ||
           IsSignificant(args, 1 - side, task.run, Beside(args.blocks, task.block, 1 - side));
  }
  if (args.round == 1) return args.any_significant[side * args.blocks.count + task.block] != 0;
  if (before < 0 || args.significance[PlaceOf(args.blocks, side, task.run, task.block)] == kNegligible)
    return false;
  const float taken = Largest(args.blocks, args.changed, side, task.run, before) *
                      Largest(args.blocks, args.couplings, side, task.run, task.block);
  return Beyond(args, side, task.run, task.block, taken) > args.negligible;
}

// The block that is eliminated; -1 if there is none, or if it is not worthwhile.
template <bool kBoth>
__device__ int Eliminated(const EliminateArgs& args, const Task& task) {
  if (args.within_blocks) return task.block;
  if (!kBoth && args.significance[PlaceOf(args.blocks, task.side, task.run, task.block)] == kNegligible)
    return -1;
  return Beside(args.blocks, task.block, task.side);
}

__device__ Neighbour NeighbourOf(const EliminateArgs& args, const Task& task, int other) {
  const bool one_sided = args.round > 1 && IsSignificant(args, task.side, task.run, other);
  const int64_t first = task.side == 0 ? other : task.block;
  return {one_sided ? args.side_factors : args.factors,
          one_sided ? task.side * args.blocks.count + other : other,
          args.coupling + first * (2 * args.blocks.reach + 1) * args.own.size,
          task.side == 0,
          args.blocks.reach,
          args.own.size};
}

// ---- Products of columns

__device__ const double* DiagonalOf(const EliminateArgs& args, const Task& task) {
  return args.own.values + int64_t{task.block} * args.own.diagonals * args.own.size;
}

// A warp's part of a run: products of its steps, taken from the matrix.
template <bool kBoth>
struct Remainder {
  const EliminateArgs& args;
  const LanePlaces& at;
  const Task& task;
  const double *own, *from;  // D; the matrix from which products are taken
  const double* threshold;
  double* to;
  int32_t* widths;  // of `to`
  int from_diagonals, to_diagonals;

  __device__ Remainder(const EliminateArgs& of, const LanePlaces& places, const Task& this_task)
      : args(of), at(places), task(this_task) {
    const BandArrays& out = kBoth ? args.precision : args.sides;
    const int64_t matrix = (kBoth ? 0 : task.side * args.blocks.count) + task.block;
    own = DiagonalOf(args, task);
    threshold = args.threshold + int64_t{task.block} * args.own.size;
    to = out.values + matrix * out.diagonals * out.size;
    widths = out.widths + matrix * out.size;
    to_diagonals = out.diagonals;
    // The precision's second side continues what the first left.
    const bool on = kBoth && task.side == 1;
    from = on ? to : own;
    from_diagonals = on ? to_diagonals : args.own.diagonals;
  }

  // sum[half] = X_step^T X_before, of a half of the columns of `before`, in a fixed order of rows.
  static __device__ __forceinline__ void Multiply(const Columns& columns, int step, int before,
                                                  double (&sum)[2][4]) {
    const int end = min(columns.ends[columns.Slot(step)], columns.ends[columns.Slot(before)]);
    const double* x = columns.At(step, columns.FirstRow(step));
    const double* y = columns.At(before, columns.FirstRow(step));
#pragma unroll 1
    for (int row = columns.FirstRow(step); row < end; ++row, x += kStepTiles, y += kStepTiles) {
      double top[2], bottom[2], other[2][2];
      LoadPair(x, top);
      LoadPair(x + kTileSize, bottom);
      LoadPair(y, other[0]);
      LoadPair(y + kTileSize, other[1]);
      MultiplyAdd16(top, bottom, other[0], sum[0]);
      MultiplyAdd16(top, bottom, other[1], sum[1]);
    }
  }

  // Entries are in the order of the products: by halves of the columns of `before`, then of `step`.
  struct Entry {
    int row, column, apart;
    __device__ Entry(const LanePlaces& at, int step, int before, int e)
        : row(step * kStep + e % 4 / 2 * kTile + at.row),
          column(before * kStep + e / 4 * kTile + at.column + e % 2),
          apart(row - column) {}
  };
  __device__ __forceinline__ void Load(int step, int before, double (&left)[2][4]) const {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const Entry of(at, step, before, e);
      const bool inside = of.apart >= 0 && of.apart < from_diagonals && of.row < args.own.size;
      left[e / 4][e % 4] = inside ? from[int64_t{of.apart} * args.own.size + of.column] : 0;
    }
  }

  // Columns before `first_raised` keep their widths. Returns whether the next step's rows may have entries
  // beyond the usual width that are too large to be left out: whether the last rows of this step have such
  // entries.
  __device__ bool Take(int step, int before, int first_raised, const double (&left)[2][4],
                       const double (&sum)[2][4]) const {
    const int size = args.own.size;
    bool open = false;
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const Entry of(at, step, before, e);
      const int c = of.column, k = of.apart;
      if (k < 0 || of.row >= size) continue;
      const double taken = sum[e / 4][e % 4], value = left[e / 4][e % 4] - taken;
      if (k > args.usual_width && c >= first_raised && IsKept(value, threshold[c], threshold[of.row])) {
        open |= of.row % kStep >= kStep - kLastColumns;
        atomicMax(widths + c, min(k, to_diagonals - 1));
      }
      if (k == 0) Measure(c, taken, value);
      if (k < to_diagonals) to[int64_t{k} * size + c] = value;
    }
    return open;
  }

  // What is taken, and what changes from round to round, is positive semidefinite: its largest entries
  // relative to the diagonal are on it. `value`: the diagonal entry that is about to be written.
  __device__ void Measure(int column, double taken, double value) const {
    const double diagonal = own[column];
    if (args.within_blocks || (kBoth && args.round > 0) || !(diagonal > 0)) return;
    float* const most =
        (kBoth ? args.couplings : args.changes) + PlaceOf(args.blocks, task.side, task.run, task.block);
    // Only after round 1 is there an entry of the round before.
    const double change = kBoth || args.round == 1 ? taken : value - to[column];
    const float of = static_cast<float>(fabs(change) / diagonal);
    if (of > *most) atomicMax(reinterpret_cast<int*>(most), __float_as_int(of));
  }
};

// ---- Kernels

// Whether `EliminateWide` takes a run: one that has work, if shared memory was too small for it or for those
// beside it, as their bands may reach into each other.
template <bool kBoth>
__device__ bool IsWide(const EliminateArgs& args, const Task& task) {
  if (!HasWork<kBoth>(args, task)) return false;
  int wide = 0;
  for (int run = max(task.run - 1, 0); run <= min(task.run + 1, args.blocks.runs - 1); ++run) {
    wide |= args.wide[PlaceOf(args.blocks, task.side, run, task.block)];
    if (kBoth) wide |= args.wide[PlaceOf(args.blocks, 1 - task.side, run, task.block)];
  }
  return wide != 0;
}

// The first column whose width `EliminateWide` may raise beyond what `EliminateUsual` writes. A width counts
// all entries up to it, and those of the run before have been written only if `EliminateWide` takes that run,
// too. Otherwise `EliminateUsual` has found that they may be left out.
template <bool kBoth>
__device__ int FirstRaised(const EliminateArgs& args, const Task& task) {
  if (task.run == 0) return 0;
  const Task before(args.blocks, PlaceOf(args.blocks, task.side, task.run - 1, task.block));
  return IsWide<kBoth>(args, before) ? 0 : task.first * kStep;
}

// Takes a side from a run; `other`: what is eliminated. Returns whether `memory` and the steps before
// sufficed; if columns do not fit, nothing is taken, or kCut: they are cut. Threads of a block agree.
template <bool kBoth, int kKept, bool kCut>
__device__ bool TakeRun(const EliminateArgs& args, const Task& task, int other, int steps_before,
                        const ColumnMemory& memory, double* doubles) {
  const LanePlaces at;
  const int warp = threadIdx.x / kWarp, start = max(task.first - steps_before, 0);
  int* const ends = reinterpret_cast<int*>(doubles + memory.columns());
  const Columns columns = {doubles, ends, ends + memory.slots, memory, start, args.blocks.reach};
  if (other >= 0) {
    double* const history = doubles + memory.doubles() + warp * memory.rows * kStepTiles;
    const Neighbour neighbour = NeighbourOf(args, task, other);
    const ColumnSolver<kKept> solver(neighbour, DiagonalOf(args, task), args.tail, history);
    bool fits = true;
    for (int step = start + warp; step < task.end; step += kWarps) fits &= solver.Solve(columns, step);
    if (__syncthreads_or(!fits) && !kCut) return false;
  }
  const Remainder<kBoth> remainder(args, at, task);
  const int usual_steps = StepsBefore(args.usual_width),
            first_raised = kCut ? FirstRaised<kBoth>(args, task) : 0;
  bool open = false;
  for (int step = start + warp; step < task.end; step += kWarps) {
    for (int before = max(step - steps_before, 0); before <= step && step >= task.first; ++before) {
      double left[2][4], sum[2][4] = {};
      remainder.Load(step, before, left);  // arrives during the products
      if (other >= 0) Remainder<kBoth>::Multiply(columns, step, before, sum);
      const bool large =
          remainder.Take(step, before, step - before > usual_steps ? first_raised : 0, left, sum);
      if (before > step - steps_before || other < 0) continue;
      // Negligible columns have no products. Across a hole, products die away and come back.
      open |= large || (columns.ends_negligible[columns.Slot(step)] &&
                        columns.ends[columns.Slot(before)] > columns.FirstRow(step + 1));
    }
  }
  return __syncthreads_or(open) == 0;
}

// The runs whose columns fit into shared memory, of tasks [first, end).
template <bool kBoth, int kKept>
__global__ void __launch_bounds__(kWarps* kWarp, 2)
    EliminateUsual(EliminateArgs args, ColumnMemory memory, int first, int end) {
  const auto has = [&](int number) {
    const Task task(args.blocks, number);
    if (!HasWork<kBoth>(args, task)) return false;
    // The second side goes on where the first one succeeded.
    return !kBoth || task.side == 0 ||
           (Eliminated<kBoth>(args, task) >= 0 && args.wide[number - (end - first)] == 0);
  };
  ForTasks<kWarps>(first, end, has, [&](int number) {
    const Task task(args.blocks, number);
    const bool enough = TakeRun<kBoth, kKept, false>(args, task, Eliminated<kBoth>(args, task),
                                                     StepsBefore(args.usual_width), memory, DynamicShared());
    if (threadIdx.x != 0) return;
    if (!enough) args.wide[number] = 1;
    if (!kBoth) args.updated[task.side * args.blocks.count + task.block] = 1;
  });
}

// Memory of a block of `EliminateWide`, in doubles: columns, and W of each warp.
__host__ __device__ int64_t WideDoubles(const ColumnMemory& memory) {
  return memory.doubles() + int64_t{kWarps} * memory.rows * kStepTiles;
}

template <bool kBoth, int kKept>
__global__ void __launch_bounds__(kWarps* kWarp, 2)
    EliminateWide(EliminateArgs args, ColumnMemory memory, int first, int end) {
  const int width = (kBoth ? args.precision : args.sides).diagonals - 1;
  double* const doubles = args.scratch + blockIdx.x * WideDoubles(memory);
  const auto has = [&](int number) {
    const Task task(args.blocks, number);
    if (!IsWide<kBoth>(args, task)) return false;
    return !kBoth || task.side == 0 || Eliminated<kBoth>(args, task) >= 0;
  };
  ForTasks<kWarps>(first, end, has, [&](int number) {
    const Task task(args.blocks, number);
    TakeRun<kBoth, kKept, true>(args, task, Eliminated<kBoth>(args, task), StepsBefore(width), memory,
                                doubles);
    if (!kBoth && threadIdx.x == 0) args.updated[task.side * args.blocks.count + task.block] = 1;
  });
}

// Memory for columns that do not fit into shared memory, for a block.
ColumnMemory WideMemory(const BlockPlan& blocks, int width) {
  const int reaches = width > kFineWidth ? kFineColumnReaches : kColumnReaches;
  const int rows = TilesOf(kStep + std::max(reaches * blocks.reach, 2 * width));
  return {blocks.run_steps + StepsBefore(width), std::min(TilesOf(blocks.size) + 1, rows)};
}
int WideBlocks(const BlockPlan& blocks, int width) {
  const int most = std::min(kFewBlocks, blocks.count * blocks.runs);
  const int64_t scratch = width > kFineWidth ? kMostFineScratch : kMostScratch;
  return static_cast<int>(std::clamp<int64_t>(scratch / WideDoubles(WideMemory(blocks, width)), 1, most));
}
ColumnMemory UsualMemory(int usual_width) { return {kLeastRunSteps + StepsBefore(usual_width), kUsualRows}; }

// The sides one after the other if both are taken from the same matrix, or both at once.
template <bool kBoth>
cudaError_t Eliminate(const EliminateArgs& args, cudaStream_t stream) {
  const int tasks = 2 * args.blocks.count * args.blocks.runs, at_once = kBoth ? tasks / 2 : tasks;
  const int end = args.within_blocks ? at_once : tasks;
  const int tiles = std::max(args.factors.tiles, args.round > 1 ? args.side_factors.tiles : 0);
  const bool usual =
      args.blocks.run_steps == kLeastRunSteps && tiles <= kMostKept && StepsBefore(args.usual_width) == 1;
  cudaError_t error = cudaMemsetAsync(args.wide, usual ? 0 : 1, tasks * sizeof(int32_t), stream);
  const ColumnMemory memory = UsualMemory(args.usual_width);
  const int64_t bytes = memory.doubles() * static_cast<int64_t>(sizeof(double));
  const int blocks = args.round == 0 ? at_once : std::min(at_once, kFewBlocks);
  for (int first = 0; first < end && usual && error == cudaSuccess; first += at_once) {
    error =
        Launch(tiles == kMostKept ? EliminateUsual<kBoth, kMostKept> : EliminateUsual<kBoth, kMostKept - 1>,
               blocks, kWarps * kWarp, bytes, stream, args, memory, first, first + at_once);
  }
  // The same for all rounds: as long as the precision's bands ask for.
  const int width = args.precision.diagonals - 1;
  for (int first = 0; first < end && error == cudaSuccess; first += at_once) {
    error = Launch(tiles > kMostKept    ? EliminateWide<kBoth, 0>
                   : tiles == kMostKept ? EliminateWide<kBoth, kMostKept>
                                        : EliminateWide<kBoth, kMostKept - 1>,
                   WideBlocks(args.blocks, width), kWarps * kWarp, 0, stream, args,
                   WideMemory(args.blocks, width), first, first + at_once);
  }
  return error;
}

}  // namespace

int64_t EliminateScratch(const BlockPlan& blocks, int width) {
  return WideBlocks(blocks, width) * WideDoubles(WideMemory(blocks, width));
}

cudaError_t ConfigureEliminate(int shared_bytes) {
  return FirstError({AllowShared(EliminateUsual<true, kMostKept - 1>, shared_bytes),
                     AllowShared(EliminateUsual<true, kMostKept>, shared_bytes),
                     AllowShared(EliminateUsual<false, kMostKept - 1>, shared_bytes),
                     AllowShared(EliminateUsual<false, kMostKept>, shared_bytes)});
}

cudaError_t EliminateBoth(const EliminateArgs& args, cudaStream_t stream) {
  const BlockPlan& blocks = args.blocks;
  const size_t bytes = size_t{2} * blocks.count * blocks.runs * sizeof(float);
  if (args.round > 0 || args.within_blocks) return Eliminate<true>(args, stream);
  return FirstError({cudaMemsetAsync(args.couplings, 0, bytes, stream), Eliminate<true>(args, stream),
                     Launch(FindSignificance, dim3(blocks.count, 2), kWarp, 0, stream, args)});
}
cudaError_t EliminateSides(const EliminateArgs& args, cudaStream_t stream) {
  const size_t sides = size_t{2} * args.blocks.count;
  return FirstError({cudaMemsetAsync(args.changes, 0, sides * args.blocks.runs * sizeof(float), stream),
                     cudaMemsetAsync(args.updated, 0, sides * sizeof(int32_t), stream),
                     Eliminate<false>(args, stream)});
}

}  // namespace spexd::cuda
