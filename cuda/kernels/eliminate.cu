// Stage "eliminate": S = D - X^T X, X = L^-1 B. One warp takes a run of a block's columns. Where both sides
// are eliminated at once, each side has its own warp.
//
// Sixteen columns (a *step*) are solved for at once, transposed: with W = X^T L^T, tile row a of the factor
// gives
//   W_a = B_a^T - sum_k W_(a-k) Y_(a,a-k)^T,   X_a^T = W_a L_aa^-T,
// so that all values stay in the lanes that computed them. Rows end where the columns have decayed. Products
// with earlier columns go back as far as they are not negligible.
//
// Floor for a frame (500 fibres of 2350 bins), both sides: factors read, 0.45 GB, couplings 0.36 GB, D read
// and S written, 0.5 GB: 0.3 ms; 3.5 Gflop, 0.06 ms. The matrix units do 21 Gflop here, 0.35 ms.
#include <algorithm>

#include "core/extract/band_rule.h"
#include "core/model/tolerances.h"
#include "cuda/kernels/band.cuh"
#include "cuda/kernels/eliminate.h"

namespace spexd::cuda {
namespace {

constexpr int kStep = 2 * kTile;
constexpr int kStepTiles = 2 * kTileSize;  // doubles per tile row of a step
constexpr int kMostKept = 3;               // most tiles of W in registers
// Rows at a step's end. Large entries in them mean that the next step may have some, too.
constexpr int kLastRows = 2;
constexpr int kMostWideBlocks = 1056;  // most blocks that loop over tasks; each warp has memory in scratch
constexpr int64_t kMostScratch = int64_t{1} << 25;  // limit of that scratch, in doubles
// Memory of a warp for X: `slots` steps of `rows` tile rows each.
struct ColumnMemory {
  int slots, rows;
};
constexpr ColumnMemory kUsual = {2, 9};
// Columns were measured to decay within 5 to 16 reaches.
constexpr int kColumnReaches = 20;

__host__ __device__ inline int RunsOf(const BlockPlan& blocks, const ChunkPlan& chunks) {
  return blocks.runs_per_chunk * chunks.count;
}

__device__ float FromBits(int bits) { return __int_as_float(bits); }

// A block and a run of its columns. `side` is used only where one side is eliminated at a time.
struct Task {
  int block, run, chunk, side;
  int first, end;  // steps [first, end)
  __device__ Task(const EliminateArgs& args, int sides, int number)
      : block(number % args.blocks.count),
        run(number / args.blocks.count % RunsOf(args.blocks, args.chunks)) {
    side = sides == 1 ? number / args.blocks.count / RunsOf(args.blocks, args.chunks) : 0;
    chunk = run / args.blocks.runs_per_chunk;
    const int begin = chunk * args.chunks.kept + run % args.blocks.runs_per_chunk * args.blocks.run_unknowns;
    const int chunk_end = min((chunk + 1) * args.chunks.kept, args.own.size);
    first = min(begin, chunk_end) / kStep;
    end = (min(begin + args.blocks.run_unknowns, chunk_end) + kStep - 1) / kStep;
  }
};

// The block that a side eliminates from this one, or -1.
__device__ int Neighbour(const EliminateArgs& args, int block, int side) {
  if (args.partners) return side == 0 ? block : -1;
  const int other = block + (side == 0 ? -1 : 1);
  if (other < 0 || other >= args.blocks.count) return -1;
  return other / args.blocks.per_bundle == block / args.blocks.per_bundle ? other : -1;
}

// Maximum of the values `of` over a block's chunk and the chunks beside it.
__device__ float Largest(const EliminateArgs& args, const int32_t* of, int side, int block, int chunk) {
  float largest = 0;
  for (int c = max(chunk - 1, 0); c <= min(chunk + 1, args.chunks.count - 1); ++c) {
    largest = fmaxf(largest, FromBits(of[(side * args.blocks.count + block) * args.chunks.count + c]));
  }
  return largest;
}

__device__ bool IsWorthwhile(const EliminateArgs& args, const Task& task) {
  if (args.changed == nullptr) return true;
  const int other = Neighbour(args, task.block, task.side);
  if (other < 0) return false;
  return Largest(args, args.changed, task.side, other, task.chunk) *
             Largest(args, args.couplings, task.side, task.block, task.chunk) >
         kNegligibleChange;
}

// W of earlier tile rows: in registers, or in memory beside X.
template <bool kShared>
struct KeptRows {
  double w[kMostKept][4];
  double* memory;  // ring of `rows` tile rows
  int rows;

  __device__ __forceinline__ void Push(int row, const double (&of)[4]) {
    if constexpr (kShared) {
#pragma unroll
      for (int k = kMostKept - 1; k > 0; --k) {
#pragma unroll
        for (int e = 0; e < 4; ++e) w[k][e] = w[k - 1][e];
      }
#pragma unroll
      for (int e = 0; e < 4; ++e) w[0][e] = of[e];
    } else {
      double* const to = memory + static_cast<int64_t>(row % rows) * kStepTiles;
      StorePair(to, of[0], of[1]);
      StorePair(to + kTileSize, of[2], of[3]);
    }
  }
  // sum += W_(row - k) other^T.
  __device__ __forceinline__ void AddProduct(int row, int k, const double (&other)[2],
                                             double (&sum)[4]) const {
    double top[2], bottom[2];
    if constexpr (kShared) {
      top[0] = w[k - 1][0], top[1] = w[k - 1][1], bottom[0] = w[k - 1][2], bottom[1] = w[k - 1][3];
    } else {
      const double* const from = memory + static_cast<int64_t>((row - k) % rows) * kStepTiles;
      LoadPair(from, top);
      LoadPair(from + kTileSize, bottom);
    }
    MultiplyAdd16(top, bottom, other, sum);
  }
};

// X of one side, as far as it is needed: a ring of steps, each [tile row, half, pair of a lane].
struct Columns {
  double* memory;
  int* ends;    // [slot]: end of its tile rows
  int* silent;  // [slot]: whether it has a negligible column, as bins without data have
  ColumnMemory size;

  __device__ double* At(int step, int row) const {
    return memory + (static_cast<int64_t>(step % size.slots) * size.rows + row) * kStepTiles;
  }
};

constexpr int kExchange = 4 * kWarp;  // doubles that a warp hands to the other

template <bool kShared, int kSides>
struct ColumnRun {
  const EliminateArgs& args;
  const Task& task;
  const LanePlaces& at;
  Columns columns;
  double* history;
  double* exchange;  // [turn, warp, kExchange], in shared memory
  int turn;

  __device__ int size() const { return args.own.size; }
  __device__ int warp() const { return kSides == 1 ? 0 : static_cast<int>(threadIdx.x) / kWarp; }
  __device__ int side() const { return kSides == 1 ? task.side : warp(); }
  // Whether `so` holds for any of the sides that are eliminated at once.
  __device__ bool OfAnySide(bool so) const {
    if constexpr (kSides == 1) return so;
    return __syncthreads_or(so) != 0;
  }
  // The first tile row that a step's columns touch.
  __device__ int FirstRow(int step) const { return max(step * kStep - args.blocks.reach, 0) / kTile; }
  __device__ const double* OwnDiagonal() const {
    return args.own.values + static_cast<int64_t>(task.block) * args.own.diagonals * size();
  }

  // The coupling of row a of the neighbour with column c of this block.
  __device__ double Coupling(int side, int a, int c) const {
    const int reach = args.blocks.reach, from = side == 0 ? a : c, k = side == 0 ? c - a : a - c;
    if (abs(k) > reach || a >= size() || c >= size()) return 0;
    const int block = side == 0 ? Neighbour(args, task.block, 0) : task.block;
    return args.coupling[(static_cast<int64_t>(block) * (2 * reach + 1) + k + reach) * size() + from];
  }

  // Tiles of one tile row of the factor: L^-1, Y of the tiles before if they are few, and the couplings.
  struct RowTiles {
    double inverse[2], y[kMostKept][2], coupling[4];
  };
  // The neighbour's factor, for the columns of a step. The tile rows with couplings are [first, touched].
  struct StepFactor {
    int side, step, first, touched, rows;
    FactorDepths depths;
    const double* tiles;
    int64_t column_size;

    __device__ const double* Tile(int column, int k) const {
      return tiles + column * column_size + k * kTileSize;
    }
  };
  __device__ StepFactor FactorOf(int side, int other, int step) const {
    const FactorArrays& factors = args.factors[side];
    const int64_t column_size = (1 + factors.tiles) * kTileSize;
    return {side,
            step,
            FirstRow(step),
            min(step * kStep + kStep - 1 + args.blocks.reach, size() - 1) / kTile,
            factors.columns,
            {factors.depths + other * args.chunks.count, args.chunks},
            factors.values + static_cast<int64_t>(other) * factors.columns * column_size,
            column_size};
  }
  __device__ __forceinline__ void LoadRow(const StepFactor& of, int row, RowTiles* to) const {
    if (row >= of.rows) return;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      to->coupling[e] = row > of.touched ? 0
                                         : Coupling(of.side, row * kTile + at.column + e % 2,
                                                    of.step * kStep + e / 2 * kTile + at.row);
    }
    LoadPair(of.Tile(row, 0), to->inverse);
    if constexpr (kShared) {
#pragma unroll
      for (int k = 1; k <= kMostKept; ++k) {
        to->y[k - 1][0] = to->y[k - 1][1] = 0;
        if (row - k >= of.first && of.depths.Reaches(row, k)) LoadPair(of.Tile(row - k, k), to->y[k - 1]);
      }
    }
  }

  // Computes a tile row of X and keeps its W. `depth`: tiles before the diagonal one.
  __device__ __forceinline__ void SolveRow(const StepFactor& of, int row, int depth, const RowTiles& tiles,
                                           KeptRows<kShared>* kept, double (&x)[4]) const {
    double sum[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) sum[e] = -tiles.coupling[e];
    if constexpr (kShared) {
#pragma unroll
      for (int k = kMostKept; k >= 1; --k) kept->AddProduct(row, k, tiles.y[k - 1], sum);
    } else {
#pragma unroll 1
      for (int k = min(depth, row - of.first); k >= 1; --k) {
        if (!of.depths.Reaches(row, k)) continue;
        double y[2];
        LoadPair(of.Tile(row - k, k), y);
        kept->AddProduct(row, k, y, sum);
      }
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      sum[e] = -sum[e];
      x[e] = 0;
    }
    kept->Push(row, sum);
    MultiplyAdd16({sum[0], sum[1]}, {sum[2], sum[3]}, tiles.inverse, x);
  }

  // Solves for the columns of a step. Returns false if the memory is too small.
  __device__ bool Solve(int step) const {
    const int side = this->side(), other = Neighbour(args, task.block, side);
    const int first = FirstRow(step), slot = step % columns.size.slots;
    columns.ends[slot] = first;
    columns.silent[slot] = false;
    if (other < 0) return true;
    const StepFactor factor = FactorOf(side, other, step);
    const double* const diagonal = OwnDiagonal();
    double tail[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      tail[h] = args.tail * sqrt(diagonal[min(step * kStep + h * kTile + at.row, size() - 1)]);
    }
    KeptRows<kShared> kept = {};
    kept.memory = history;
    kept.rows = columns.size.rows;
    int dead = 0, row = first;
    unsigned heard[2] = {0, 0};  // lanes with columns that are not negligible, for each half
    RowTiles next;
    LoadRow(factor, row, &next);
    for (; row < factor.rows; ++row) {
      const int depth = factor.depths.Before(row);
      if (kShared && depth > kMostKept) return false;
      const RowTiles now = next;
      double x[4];
      if (kShared) LoadRow(factor, row + 1, &next);
      SolveRow(factor, row, depth, now, &kept, x);
      if (!kShared) LoadRow(factor, row + 1, &next);
      const unsigned now_heard[2] = {__ballot_sync(kAllLanes, fmax(fabs(x[0]), fabs(x[1])) > tail[0]),
                                     __ballot_sync(kAllLanes, fmax(fabs(x[2]), fabs(x[3])) > tail[1])};
      heard[0] |= now_heard[0];
      heard[1] |= now_heard[1];
      dead = (now_heard[0] | now_heard[1]) == 0 ? dead + 1 : 0;
      if (row >= factor.touched && dead >= depth) break;
      if (row - first < columns.size.rows) {
        double* const to = columns.At(step, row - first);
        StorePair(to, x[0], x[1]);
        StorePair(to + kTileSize, x[2], x[3]);
      } else if (dead == 0) {
        if (kShared) return false;
        break;
      }
    }
    const int kept_rows = min(min(row + 1, factor.rows) - dead - first, columns.size.rows);
    columns.ends[slot] = first + max(kept_rows, 0);
    columns.silent[slot] = !EveryColumn(heard[0]) || !EveryColumn(heard[1]);
    __syncwarp();
    return true;
  }

  // Whether each of a half's columns has a lane in `lanes`.
  static __device__ bool EveryColumn(unsigned lanes) {
    lanes |= lanes >> 2;
    lanes |= lanes >> 1;
    return (lanes & 0x11111111u) == 0x11111111u;
  }

  // Whether steps after `step` may have products with step `before`, although `step` has none: negligible
  // columns have no products. Across a hole, products decay and come back.
  __device__ bool MayTake(int before, int step) const {
    return columns.silent[step % columns.size.slots] &&
           columns.ends[before % columns.size.slots] > FirstRow(step + 1);
  }

  // sum[half] = X_step^T X_before of a half's columns, in a fixed order of rows. With two sides it is the sum
  // over both sides, and valid only for this warp's half.
  __device__ void Products(int step, int before, double (&sum)[2][4]) {
    const int first = FirstRow(step), first_before = FirstRow(before), slots = columns.size.slots;
    const int end = min(columns.ends[step % slots], columns.ends[before % slots]);
#pragma unroll 1
    for (int row = first; row < end; ++row) {
      const double* const x = columns.At(step, row - first);
      const double* const y = columns.At(before, row - first_before);
      double top[2], bottom[2], other[2][2];
      LoadPair(x, top);
      LoadPair(x + kTileSize, bottom);
      LoadPair(y, other[0]);
      LoadPair(y + kTileSize, other[1]);
      MultiplyAdd16(top, bottom, other[0], sum[0]);
      MultiplyAdd16(top, bottom, other[1], sum[1]);
    }
    if constexpr (kSides == 2) {
      // Turns alternate, so that one warp does not overwrite what the other still reads.
      double* const own = exchange + (2 * turn + warp()) * kExchange;
      const double* const theirs = exchange + (2 * turn + 1 - warp()) * kExchange;
      turn = 1 - turn;
      const int lane = threadIdx.x % kWarp;
#pragma unroll
      for (int e = 0; e < 4; ++e) own[e * kWarp + lane] = warp() == 0 ? sum[1][e] : sum[0][e];
      __syncthreads();
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        sum[0][e] += theirs[e * kWarp + lane];
        sum[1][e] += theirs[e * kWarp + lane];
      }
    }
  }

  // Writes the remainder of D if `write`. Returns whether the next step's rows may have entries beyond the
  // usual width that are too large to be left out: true if the last rows of this step have such entries.
  __device__ bool Emit(int step, int before, const double (&sum)[2][4], bool write) const {
    const BandArrays& out = args.out[kSides == 1 ? task.side : 0];
    const int64_t matrix = static_cast<int64_t>(task.block) * out.diagonals * size();
    const double* const own = OwnDiagonal();
    bool open = false;
    float change = 0;
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int half = e / 4, of = e % 4;
      if (kSides == 2 && half != warp()) continue;
      const int c = before * kStep + half * kTile + at.column + of % 2,
                row = step * kStep + of / 2 * kTile + at.row, k = row - c;
      if (k < 0 || row >= size()) continue;
      const double taken = sum[half][of],
                   before_value = k < args.own.diagonals ? own[int64_t{k} * size() + c] : 0;
      const double value = before_value - taken;
      if (k > args.usual_width && ExceedsBandCut(value, args.cut, own[c], own[row])) {
        open |= row % kStep >= kStep - kLastRows;
        if (write) atomicMax(out.widths + int64_t{task.block} * size() + c, min(k, out.diagonals - 1));
      }
      if (k >= out.diagonals || !write) continue;
      double* const to = out.values + matrix + int64_t{k} * size() + c;
      if (args.changes != nullptr) {
        const double old = args.changed == nullptr ? before_value : *to;
        const float scale = sqrtf(static_cast<float>(own[c])) * sqrtf(static_cast<float>(own[row]));
        change = fmaxf(change, fabsf(static_cast<float>(value - old)) / scale);
      }
      *to = value;
    }
    if (write && args.changes != nullptr) KeepChange(change);
    return __ballot_sync(kAllLanes, open) != 0;
  }

  __device__ void KeepChange(float change) const {
    const int largest = __reduce_max_sync(kAllLanes, __float_as_int(change));
    const int place = (task.side * args.blocks.count + task.block) * args.chunks.count + task.chunk;
    if (at.row == 0 && at.column == 0) {
      atomicMax(args.changes + place, largest);
      if (args.changed == nullptr) atomicMax(args.couplings + place, largest);
    }
  }

  // Takes the steps [first, end). It begins at `start`, so that the columns before `first` are known. Returns
  // the earliest step that the next step still has products with, or -1 if the memory is too small.
  __device__ int Run(int start, int first, int end) {
    const int usual = (kStep - 1 + args.usual_width) / kStep, slots = columns.size.slots;
    int oldest = start;
    for (int step = start; step < end; ++step) {
      if (kShared && step - oldest >= slots) return -1;
      oldest = max(oldest, step - slots + 1);
      if (OfAnySide(!Solve(step))) return -1;
      int next = oldest;
      for (int before = oldest; before <= step; ++before) {
        double sum[2][4] = {};
        Products(step, before, sum);
        const bool open = OfAnySide(Emit(step, before, sum, step >= first) || MayTake(before, step));
        if (!open && before == next && before <= step - usual) ++next;
      }
      oldest = next;
    }
    return oldest;
  }
};

// Memory of a warp, in doubles: X, the ends of its slots, and W if it is not in registers.
template <bool kShared>
__host__ __device__ int64_t MemoryOf(const ColumnMemory& size) {
  return size.slots * (int64_t{size.rows} * kStepTiles + 2) + (kShared ? 0 : size.rows * kStepTiles);
}

template <bool kShared, int kSides>
__global__ void __launch_bounds__(kSides* kWarp) Eliminate(EliminateArgs args, ColumnMemory size, int tasks) {
  __shared__ double exchange[kSides == 1 ? 1 : 4 * kExchange];
  double* const shared = DynamicShared();
  const LanePlaces at;
  const int warp = threadIdx.x / kWarp;
  double* const memory = kShared ? shared + warp * MemoryOf<kShared>(size)
                                 : args.scratch + (blockIdx.x * kSides + warp) * MemoryOf<kShared>(size);
  const int64_t of_columns = int64_t{size.slots} * size.rows * kStepTiles;
  int* const ends = reinterpret_cast<int*>(memory + of_columns);
  for (int number = blockIdx.x; number < tasks; number += gridDim.x) {
    const Task task(args, kSides, number);
    if (kSides == 1 && !IsWorthwhile(args, task)) continue;
    const int usual = (kStep - 1 + args.usual_width) / kStep;
    int start = max(task.first - usual, 0);
    if (!kShared) {
      // The previous run may need earlier steps than usual.
      const int before = task.run == 0 ? start : args.open_steps[number - args.blocks.count];
      if (args.open_steps[number] >= 0 && before >= start) continue;
      start = max(task.first - size.slots + 1, 0);
    }
    ColumnRun<kShared, kSides> run = {
        args,     task, at, {memory, ends, ends + size.slots, size}, memory + of_columns + 2 * size.slots,
        exchange, 0};
    const int open = run.Run(start, task.first, task.end);
    DeviceCheck(kShared || open >= 0);
    // Only the first kernel writes this: the second one must read the same values whether or not it has run
    // tasks.
    if (kShared && threadIdx.x == 0) args.open_steps[number] = open;
    run.OfAnySide(false);  // waits until the warps of all sides have finished
    __syncwarp();
  }
}

// Memory for columns that do not fit into shared memory.
ColumnMemory WideMemory(const BlockPlan& blocks, int width) {
  const int rows = TilesOf(kStep + std::max(kColumnReaches * blocks.reach, 2 * width));
  return {width / kStep + 3, std::min(TilesOf(blocks.size) + 1, rows)};
}
int TasksOf(const BlockPlan& blocks, const ChunkPlan& chunks, int sides) {
  return blocks.count * RunsOf(blocks, chunks) * (sides == 1 ? 2 : 1);
}
int WideBlocks(const BlockPlan& blocks, const ChunkPlan& chunks, int width) {
  const int64_t doubles = 2 * MemoryOf<false>(WideMemory(blocks, width));
  const int most = std::min(kMostWideBlocks, TasksOf(blocks, chunks, 1));
  return static_cast<int>(std::clamp<int64_t>(kMostScratch / doubles, 1, most));
}

template <int kSides>
cudaError_t EliminateWith(const EliminateArgs& args, cudaStream_t stream) {
  const int tasks = TasksOf(args.blocks, args.chunks, kSides), width = args.most_width;
  const int64_t shared = kSides * MemoryOf<true>(kUsual) * int64_t{sizeof(double)};
  return FirstError(
      {Launch(Eliminate<true, kSides>, tasks, kSides * kWarp, shared, stream, args, kUsual, tasks),
       Launch(Eliminate<false, kSides>, WideBlocks(args.blocks, args.chunks, width), kSides * kWarp, 0,
              stream, args, WideMemory(args.blocks, width), tasks)});
}

}  // namespace

int64_t EliminateScratch(const BlockPlan& blocks, const ChunkPlan& chunks, int most_width) {
  return WideBlocks(blocks, chunks, most_width) * 2 * MemoryOf<false>(WideMemory(blocks, most_width));
}

cudaError_t ConfigureEliminate(int shared_bytes) {
  return FirstError(
      {AllowShared(Eliminate<true, 1>, shared_bytes), AllowShared(Eliminate<true, 2>, shared_bytes)});
}

cudaError_t EliminateSides(const EliminateArgs& args, cudaStream_t stream) {
  return EliminateWith<1>(args, stream);
}
cudaError_t EliminateBoth(const EliminateArgs& args, cudaStream_t stream) {
  return EliminateWith<2>(args, stream);
}

}  // namespace spexd::cuda
