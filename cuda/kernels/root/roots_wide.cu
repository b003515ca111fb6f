// Square roots of bands too wide for registers (wide_factor.cuh). A block of threads takes a recurrence, the
// poles of a group one after the other. Written as in root_tiles.cuh, the backward pass takes one barrier for
// a tile column: all warps share C_k0; then the first one makes C_00 while the others go on with the column
// before, whose rows k > 1 do not need it.
//
// Floor for a frame at 0.4 Angstrom (500 fibres of 4700 bins, 32 poles, bands of 105 bins): 5 Tflop, 83 ms
// on the matrix units; the factor written and read, 2 x 63 GB, 30 ms.
#include "cuda/kernels/factor/wide_factor.cuh"
#include "cuda/kernels/root/root_tiles.cuh"

namespace spexd::cuda {
namespace {

// Most blocks; they loop over the recurrences, with a scratch each. Few bands are wide on usual grids.
constexpr int kMostBlocks = 198, kMostFineBlocks = 528;
constexpr int64_t kMostBytes = int64_t{1} << 29;      // scratch limit on usual grids
constexpr int64_t kMostFineBytes = int64_t{3} << 30;  // scratch limit on grids whose bands are mostly wide

// Shared memory of a block, in doubles: that of WideFactor, and for the backward pass two columns of the
// factor, shares of two diagonal tiles and a tile to turn.
struct RootMemory {
  int factor, kept, shares, turn, total;
  __host__ __device__ RootMemory(int tiles, int columns)
      : factor(0),
        kept(WideMemory(tiles, columns).near),
        shares(kept + 2 * KeptOf(tiles)),
        turn(shares + 2 * kWideWarps * kTileSize),
        total(turn + kTurnSize) {}
};

// Adds a pole's share to the sums of a slot's poles, by one warp. The slot's first pole begins them.
struct PoleReport {
  const RootArgs& args;
  const RootTask& task;
  const ChunkRange& bins;
  const LanePlaces& at;
  double weight;
  bool first;
  double* share;  // kTileSize doubles

  __device__ double2* SumsOf(int column) const {
    const int bin = bins.first + column * kTile + 2 * (static_cast<int>(threadIdx.x) % kWarp) / kPoleSums;
    if (bin < bins.core || bin >= bins.core_end) return nullptr;
    return reinterpret_cast<double2*>(SumsAt(args, task.slot, task.fibre, bins.first + column * kTile)) +
           threadIdx.x % kWarp;
  }
  // What the poles before have left.
  __device__ double2 Before(int column) const {
    const double2* const sums = first ? nullptr : SumsOf(column);
    return sums == nullptr ? double2{0, 0} : *sums;
  }
  // C_00, C_10 and F_0 of a tile column.
  __device__ void Add(int column, const double2& before, const double (&near)[2], const double (&far)[2],
                      const double (&solution)[2]) const {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int bin = at.column + c, d = at.row - bin;
      double* const own = share + bin * kPoleSums;
      if (d >= 0 && d <= kResolutionHalfWidth) own[d] = weight * near[c];
      if (d + kTile <= kResolutionHalfWidth) own[d + kTile] = weight * far[c];
      if (at.row < 2) own[kPoleSums - 2 + at.row] = weight * solution[c];
    }
    __syncwarp();
    double2* const sums = SumsOf(column);
    const double2 own = reinterpret_cast<const double2*>(share)[threadIdx.x % kWarp];
    if (sums != nullptr) *sums = {before.x + own.x, before.y + own.y};
    __syncwarp();
  }
};

// The backward pass of one recurrence, in the window of its factor.
template <typename Factor>
class WideInverse {
 public:
  // Tile columns [first, columns) are reported.
  __device__ WideInverse(const Factor& of, const double* kept, double* shared, const RootMemory& memory)
      : factor_(of),
        at_(of.rows.at),
        warp_(threadIdx.x / kWarp),
        kept_(kept),
        columns_kept_(shared + memory.kept),
        shares_(shared + memory.shares),
        turn_(shared + memory.turn) {}

  __device__ void Invert(int columns, int first, const PoleReport& report) const {
    Fetch(columns - 1, first);
    CopyAsyncWait<0>();
    __syncthreads();
    for (int column = columns - 1, base = 0; column >= first; --column, base = factor_.ring.Before(base)) {
      if (column > first) Fetch(column - 1, first);
      double diagonal[2] = {0, 0};
      double2 before = {0, 0};
      if (warp_ == 0) {
        TakeKept(column, 0, 1, diagonal);
        before = report.Before(column);
      }
      MakeRows(base, column);
      CopyAsyncWait<0>();
      __syncthreads();
      if (warp_ == 0) MakeDiagonal(base, column, before, diagonal, report);
    }
    __syncthreads();
  }

 private:
  __device__ double* KeptAt(int column) const { return columns_kept_ + column % 2 * KeptOf(factor_.tiles); }
  // Starts to copy what the forward pass kept of a column, which is from `first` on.
  __device__ void Fetch(int column, int first) const {
    const int lane = threadIdx.x % kWarp, down = factor_.Down(column);
    const double* const from = kept_ + int64_t{column - first} * KeptOf(factor_.tiles);
    double* const to = KeptAt(column);
    for (int k = warp_; k <= down; k += kWideWarps)
      CopyAsync16(to + k * kTileSize + 2 * lane, from + k * kTileSize + 2 * lane);
    const int right = (factor_.tiles + 1) * kTileSize + 2 * lane;
    if (warp_ == kWideWarps - 1 && lane < kTile) CopyAsync16(to + right, from + right);
    CopyAsyncCommit();
  }
  __device__ __forceinline__ void TakeKept(int column, int k, double sign, double (&own)[2]) const {
    LoadPair(KeptAt(column) + k * kTileSize, own);
    own[0] *= sign;
    own[1] *= sign;
  }

  // Tile (row, l) of the inverse, in either triangle; the solutions are the row behind `down`.
  __device__ __forceinline__ void LoadInverse(int base, int down, int row, int l, double (&own)[2]) const {
    if (row > down) {
      factor_.LoadRight(base, l, own);
    } else if (row >= l) {
      at_.Load(factor_.Tile(base, row, l), own);
    } else {
      at_.LoadTransposed(factor_.Tile(base, l, row), own);
    }
  }

  // C_k0 for all k > 0 and F_0, each warp some pairs of rows, and its share of sum_k Z_k C_k0.
  __device__ __forceinline__ void MakeRows(int base, int column) const {
    const int down = factor_.Down(column);
    double share[2] = {0, 0};
    for (int row = 1 + 2 * warp_; row <= down + 1; row += 2 * kWideWarps) {
      const int next = min(row + 1, down + 1);
      double even[4] = {}, odd[4] = {};
      for (int l = 1; l <= down; l += 2) {
        AddPair(base, column, row, next, l, even);
        if (l < down) AddPair(base, column, row, next, l + 1, odd);
      }
      KeepRow(base, column, row, {even[0] + odd[0], even[1] + odd[1]}, share);
      if (next != row) KeepRow(base, column, next, {even[2] + odd[2], even[3] + odd[3]}, share);
    }
    StorePair(shares_ + (column % 2 * kWideWarps + warp_) * kTileSize, share[0], share[1]);
  }
  __device__ __forceinline__ void AddPair(int base, int column, int row, int next, int l,
                                          double (&sum)[4]) const {
    const int down = factor_.Down(column);
    double z[2], a[2], b[2];
    TakeKept(column, l, -1, z);
    LoadInverse(base, down, row, l, a);
    LoadInverse(base, down, next, l, b);
    MultiplyAdd16(a, b, z, sum);
  }
  __device__ __forceinline__ void KeepRow(int base, int column, int row, const double (&made)[2],
                                          double (&share)[2]) const {
    if (row > factor_.Down(column)) {
      double w[2] = {0, 0};
      if (threadIdx.x % kWarp < kTile) TakeKept(column, factor_.tiles + 1, 1, w);
      factor_.StoreRight(base, 0, w[0] + made[0], w[1] + made[1]);
      return;
    }
    double* const tile = factor_.Tile(base, row, 0);
    at_.Store(made[0], made[1], tile);
    __syncwarp();
    double z[2], c[2];
    TakeKept(column, row, -1, z);
    at_.LoadTransposed(tile, c);
    MultiplyAdd8(z, c, share);
  }

  // C_00, from D^-1 and the warps' shares, by one warp.
  __device__ __forceinline__ void MakeDiagonal(int base, int column, const double2& before,
                                               double (&diagonal)[2], const PoleReport& report) const {
    const double* const shares = shares_ + column % 2 * kWideWarps * kTileSize;
    for (int w = 0; w < kWideWarps; ++w) {
      double share[2];
      LoadPair(shares + w * kTileSize, share);
      diagonal[0] += share[0];
      diagonal[1] += share[1];
    }
    // Rounding leaves the tile a little unsymmetric, and the recurrence would amplify that.
    double turned[2], next_to[2] = {0, 0}, solution[2];
    Put(turn_, at_, diagonal);
    __syncwarp();
    TakeTurned(turn_, at_, turned);
    diagonal[0] = 0.5 * (diagonal[0] + turned[0]);
    diagonal[1] = 0.5 * (diagonal[1] + turned[1]);
    at_.Store(diagonal[0], diagonal[1], factor_.Tile(base, 0, 0));
    if (factor_.Down(column) > 0) at_.Load(factor_.Tile(base, 1, 0), next_to);
    factor_.LoadRight(base, 0, solution);
    __syncwarp();
    report.Add(column, before, diagonal, next_to, solution);
  }

  const Factor& factor_;
  const LanePlaces& at_;
  const int warp_;
  const double* const kept_;
  double *columns_kept_, *shares_, *turn_;
};

// Takes the recurrences whose bands have at most `most_tiles` tiles below the diagonal one.
template <bool kInside>
__global__ void __launch_bounds__(kWideThreads, 3) Wide(RootArgs args, RootKind kind, int most_tiles) {
  double* const shared = DynamicShared();
  const LanePlaces at;
  const int most = TilesOf(args.chunks.extended);
  const RootMemory memory(most_tiles, most);
  const int64_t kept_size = int64_t{TilesOf(args.chunks.behind())} * KeptOf(most_tiles);
  double* const kept = args.resolution.scratch +
                       blockIdx.x * (kept_size + (kInside ? 0 : WideMemory(most_tiles, most).window));
  double* const window = kInside ? shared + memory.total : kept + kept_size;
  for (int k = blockIdx.x; k < args.resolution.task_count[kind]; k += gridDim.x) {
    const RootTask task(args, TasksOf(args, kind)[k]);
    const ChunkRange bins(args.chunks, args.precision.size, task.chunk);
    for (int p = 0; p < (task.end - task.group) * kPoleGroup; ++p) {
      const int pole = task.FirstPole(args, task.group) + p;
      if (p > 0 && args.resolution.pole_weight[pole] == 0) break;  // groups are filled up with these
      const int tiles = TilesOf(args.resolution.widest[pole]);
      const BandRows<true> rows = {at,
                                   Band(args.precision, task.fibre),
                                   bins.first,
                                   bins.count(),
                                   args.resolution.pole_shift[pole],
                                   args.flux + static_cast<int64_t>(task.fibre) * args.precision.size};
      const int columns = TilesOf(bins.count()), core = (bins.core - bins.first) / kTile;
      using Factor = WideFactor<kInside, BandRows<true>>;
      const Factor factor(rows, tiles, columns, shared, window);
      factor.Factor(KeptRoot{kept, tiles, core});
      const PoleReport report = {
          args, task, bins, at, args.resolution.pole_weight[pole], p == 0, shared + memory.turn};
      WideInverse<Factor>(factor, kept, shared, memory).Invert(columns, core, report);
    }
  }
}

// A kernel for bands of up to so many tiles: whether its window lies in shared memory, and its blocks.
struct WideLaunch {
  int tiles, blocks;
  bool inside;
  int64_t bytes, scratch;  // shared memory; doubles of scratch of each block

  WideLaunch(int kind, const RootShape& shape, int shared_bytes) {
    tiles = std::min(WideTiles(kind), TilesOf(shape.most_width));
    const int columns = TilesOf(shape.chunks.extended);
    const WideMemory factor(tiles, columns);
    const int64_t near = RootMemory(tiles, columns).total;
    bytes = (near + factor.window) * static_cast<int64_t>(sizeof(double));
    inside = bytes <= shared_bytes;
    if (!inside) bytes = near * static_cast<int64_t>(sizeof(double));
    scratch = int64_t{TilesOf(shape.chunks.behind())} * KeptOf(tiles) + (inside ? 0 : factor.window);
    const bool fine = shape.most_width > kFineWidth;
    blocks = RootBlocks(RootTasks(shape.chunks.count, shape.fibres), fine ? kMostFineBlocks : kMostBlocks,
                        scratch, fine ? kMostFineBytes : kMostBytes);
  }
};
bool IsUsed(int kind, const RootShape& shape) {
  const int first = FirstWideKind(shape.most_width);
  return shape.most_width > kMostTiled &&
         (kind == first || (kind > first && TilesOf(shape.most_width) > WideTiles(kind - 1)));
}

}  // namespace

int64_t WideRootScratch(const RootShape& shape) {
  int64_t most = 0;
  for (int kind = 0; kind < kWideKinds; ++kind) {
    if (!IsUsed(kind, shape)) continue;
    const WideLaunch launch(kind, shape, shape.shared_bytes);
    most = std::max(most, launch.blocks * launch.scratch);
  }
  return most;
}

cudaError_t ConfigureResolution(int shared_bytes) {
  return FirstError({AllowShared(Wide<true>, shared_bytes), AllowShared(Wide<false>, shared_bytes)});
}

cudaError_t WideRoots(const RootArgs& args, const RootShape& shape, cudaStream_t stream) {
  cudaError_t error = cudaSuccess;
  // The longest ones first.
  for (int kind = kWideKinds - 1; kind >= 0 && error == cudaSuccess; --kind) {
    if (!IsUsed(kind, shape)) continue;
    const WideLaunch launch(kind, shape, args.shared_bytes);
    error = Launch(launch.inside ? Wide<true> : Wide<false>, launch.blocks, kWideThreads, launch.bytes,
                   stream, args, static_cast<RootKind>(kWideRoot + kind), launch.tiles);
  }
  return error;
}

}  // namespace spexd::cuda
