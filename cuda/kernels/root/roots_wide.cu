// Square roots of bands too wide for registers (wide_factor.cuh). A block of threads takes the poles of a
// group one after the other, a recurrence each. The backward pass (notation of root_tiles.cuh) takes one
// barrier for each tile column: all warps share C_k0; then the first warp makes C_00 while the others go on
// with the column before, whose rows k > 1 do not need it.
//
// Floor for a frame at 0.4 Angstrom (500 fibres of 4700 bins, 36 poles, bands of 40 bins on average): 0.42
// Tflop, 7 ms on the matrix units; the factor written and read, 2 x 27 GB, 13 ms.
#include "cuda/kernels/factor/wide_factor.cuh"
#include "cuda/kernels/root/root_tiles.cuh"

namespace spexd::cuda {
namespace {

// Warps of a block of each kind: many where few blocks share a multiprocessor. All have 128 registers, so
// that a multiprocessor takes 16 warps.
constexpr int kWarpsOf[kWideKinds] = {4, 8, 16, 16}, kMaxWarps = 16;
// Maximum number of blocks. Each takes tasks until none is left, and has its own scratch. On usual grids few
// bands are wide; on others one kind of bands fills an H100.
constexpr int kMaxBlocks = 198, kMaxFineBlocks = 132 * kMaxWarps;
// Scratch limit of a kind, on usual grids and on those whose bands are mostly wide.
constexpr int64_t kMaxBytes = int64_t{1} << 29, kMaxFineBytes = int64_t{3} << 30;

// Shared memory of a block, in doubles: that of WideFactor, and for the backward pass two columns of the
// factor, shares of two diagonal tiles and a tile to transpose; and the task's number.
struct RootMemory {
  int factor, kept, shares, transpose, task, total;
  __host__ __device__ RootMemory(int tiles, int columns, int warps)
      : factor(0),
        kept(WideMemory(tiles, columns).near),
        shares(kept + 2 * KeptOf(tiles)),
        transpose(shares + 2 * PairsOf(tiles, warps) * kTileSize),
        task(transpose + kTransposeSize),
        total(task + 2) {}
  // Number of warps that have rows of a column with `down` tiles below the diagonal one.
  __host__ __device__ static int PairsOf(int down, int warps) { return min(down / 2 + 1, warps); }
};

// Adds a pole's share to the sums of a slot's poles, by one warp. The slot's first pole begins them.
struct PoleReport {
  const RootArgs& args;
  const RootTask& task;
  const ChunkRange& bins;
  const LanePositions& at;
  double weight;
  bool first;
  double* share;  // kTileSize doubles

  __device__ double2* SumsOf(int column) const {
    const int bin = bins.first + column * kTile + 2 * (static_cast<int>(threadIdx.x) % kWarp) / kPoleSums;
    if (bin < bins.core || bin >= bins.core_end) return nullptr;
    return reinterpret_cast<double2*>(SumsAt(args, task.slot, task.fibre, bins.first + column * kTile)) +
           threadIdx.x % kWarp;
  }
  // Returns the sums over the poles before this one.
  __device__ double2 Before(int column) const {
    const double2* const sums = first ? nullptr : SumsOf(column);
    return sums == nullptr ? double2{0, 0} : *sums;
  }
  // Adds C_00, C_10 and F_0 of a tile column.
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
        transpose_(shared + memory.transpose) {}

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
  static constexpr int kWarps = Factor::kWarps;

  __device__ double* KeptAt(int column) const { return columns_kept_ + column % 2 * KeptOf(factor_.tiles); }
  // Starts to copy what the forward pass kept of a column; it kept columns from `first` on.
  __device__ void Fetch(int column, int first) const {
    const int lane = threadIdx.x % kWarp, down = factor_.Down(column);
    const double* const from = kept_ + int64_t{column - first} * KeptOf(factor_.tiles);
    double* const to = KeptAt(column);
    for (int k = warp_; k <= down; k += kWarps)
      CopyAsync16(to + k * kTileSize + 2 * lane, from + k * kTileSize + 2 * lane);
    const int right = (factor_.tiles + 1) * kTileSize + 2 * lane;
    if (warp_ == kWarps - 1 && lane < kTile) CopyAsync16(to + right, from + right);
    CopyAsyncCommit();
  }
  __device__ __forceinline__ void TakeKept(int column, int k, double sign, double (&own)[2]) const {
    LoadPair(KeptAt(column) + k * kTileSize, own);
    own[0] *= sign;
    own[1] *= sign;
  }

  // Computes C_k0 for all k > 0, F_0 and the warp's share of sum_k Z_k C_k0. Each warp takes some pairs of
  // rows.
  __device__ __forceinline__ void MakeRows(int base, int column) const {
    const int down = factor_.Down(column);
    const double* const z = KeptAt(column) + 2 * (threadIdx.x % kWarp);
    double share[2] = {0, 0};
    for (int row = 1 + 2 * warp_; row <= down + 1; row += 2 * kWarps) {
      const auto top = factor_.RowOf(base, row, down), bottom = factor_.RowOf(base, row + 1, down);
      RingSlot position = factor_.SlotOf(base, 1);
      double even[4] = {}, odd[4] = {};
      // Tiles right of the diagonal are those below it, transposed.
      const auto add = [&](int l, bool transposed, double(&sum)[4]) {
        double a[2], b[2], own[2];
        if (transposed) {
          at_.LoadTransposed(factor_.window() + top.slot.TileWith(position), a);
          at_.LoadTransposed(factor_.window() + bottom.slot.TileWith(position), b);
        } else {
          LoadTwo(top.At(position), a);
          LoadTwo(bottom.At(position), b);
        }
        LoadTwo(z + l * kTileSize, own);
        MultiplyAdd16(a, b, own, sum);
        position.Next();
      };
      const int diagonal = min(row, down);
      int l = 1;
      for (; l < diagonal; l += 2) {
        add(l, false, even);
        add(l + 1, false, odd);
      }
      if (l <= diagonal) add(l++, false, even);
      for (; l < down; l += 2) {
        add(l, true, odd);
        add(l + 1, true, even);
      }
      if (l <= down) add(l, true, odd);
      KeepRow(base, column, row, {-even[0] - odd[0], -even[1] - odd[1]}, share);
      if (row <= down) KeepRow(base, column, row + 1, {-even[2] - odd[2], -even[3] - odd[3]}, share);
    }
    if (warp_ < RootMemory::PairsOf(down, kWarps))
      StorePair(ShareOf(column) + warp_ * kTileSize, share[0], share[1]);
  }
  __device__ double* ShareOf(int column) const {
    return shares_ + column % 2 * RootMemory::PairsOf(factor_.tiles, kWarps) * kTileSize;
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

  // Computes C_00 from D^-1 and the warps' shares. One warp calls it.
  __device__ __forceinline__ void MakeDiagonal(int base, int column, const double2& before,
                                               double (&diagonal)[2], const PoleReport& report) const {
    const double* const shares = ShareOf(column);
    for (int w = 0; w < RootMemory::PairsOf(factor_.Down(column), kWarps); ++w) {
      double share[2];
      LoadPair(shares + w * kTileSize, share);
      diagonal[0] += share[0];
      diagonal[1] += share[1];
    }
    // Rounding leaves the tile a little unsymmetric, and the recurrence would amplify that.
    double transposed[2], next_to[2] = {0, 0}, solution[2];
    Put(transpose_, at_, diagonal);
    __syncwarp();
    TakeTransposed(transpose_, at_, transposed);
    diagonal[0] = 0.5 * (diagonal[0] + transposed[0]);
    diagonal[1] = 0.5 * (diagonal[1] + transposed[1]);
    at_.Store(diagonal[0], diagonal[1], factor_.Tile(base, 0, 0));
    if (factor_.Down(column) > 0) at_.Load(factor_.Tile(base, 1, 0), next_to);
    factor_.LoadRight(base, 0, solution);
    __syncwarp();
    report.Add(column, before, diagonal, next_to, solution);
  }

  const Factor& factor_;
  const LanePositions& at_;
  const int warp_;
  const double* const kept_;
  double *columns_kept_, *shares_, *transpose_;
};

// Takes the recurrences whose bands have at most `max_tiles` tiles below the diagonal one.
template <bool kInside, int kWarps>
__global__ void __launch_bounds__(kWarps* kWarp, kMaxWarps / kWarps)
    Wide(RootArgs args, RootKind kind, int max_tiles) {
  double* const shared = DynamicShared();
  const LanePositions at;
  const int most = TilesOf(args.chunks.extended);
  const RootMemory memory(max_tiles, most, kWarps);
  const int64_t kept_size = int64_t{TilesOf(args.chunks.behind())} * KeptOf(max_tiles);
  double* const kept =
      args.resolution.scratch + blockIdx.x * (kept_size + (kInside ? 0 : WideMemory(max_tiles, most).window));
  double* const window = kInside ? shared + memory.total : kept + kept_size;
  int* const number = reinterpret_cast<int*>(shared + memory.task);
  while (true) {
    if (threadIdx.x == 0) *number = atomicAdd(args.resolution.begun + kind, 1);
    __syncthreads();
    if (*number >= args.resolution.task_count[kind]) return;
    const RootTask task(args, TasksOf(args, kind)[*number]);
    const ChunkRange bins(args.chunks, args.precision.size, task.chunk);
    for (int p = 0; p < (task.end - task.group) * kPoleGroup; ++p) {
      const int pole = task.FirstPole(args, task.group) + p;
      if (p > 0 && args.resolution.pole_weight[pole] == 0) break;  // the rest only fills the group up
      const int tiles = TilesOf(args.resolution.widest[pole]);
      const BandRows<true> rows = {at,
                                   Band(args.precision, task.fibre),
                                   bins.first,
                                   bins.count(),
                                   args.resolution.pole_shift[pole],
                                   args.flux + static_cast<int64_t>(task.fibre) * args.precision.size};
      const int columns = TilesOf(bins.count()), core = (bins.core - bins.first) / kTile;
      using Factor = WideFactor<kInside, kWarps, BandRows<true>>;
      const Factor factor(rows, tiles, columns, shared, window);
      factor.Factor(KeptRoot{kept, tiles, core});
      const PoleReport report = {
          args, task, bins, at, args.resolution.pole_weight[pole], p == 0, shared + memory.transpose};
      WideInverse<Factor>(factor, kept, shared, memory).Invert(columns, core, report);
    }
  }
}

using WideKernel = void (*)(RootArgs, RootKind, int);

// The kernel for one kind of bands, those of up to `tiles` tiles.
struct WideLaunch {
  int tiles, warps, blocks;
  WideKernel kernel;
  int64_t bytes, scratch;  // shared memory; doubles of scratch of each block

  WideLaunch(int kind, const RootShape& shape, int shared_bytes)
      : tiles(std::min(WideTiles(kind), TilesOf(shape.max_width))), warps(kWarpsOf[kind]) {
    const int columns = TilesOf(shape.chunks.extended), window = WideMemory(tiles, columns).window;
    const auto bytes_with = [&](int doubles) {
      return (RootMemory(tiles, columns, warps).total + doubles) * static_cast<int64_t>(sizeof(double));
    };
    kernel = warps == 4 ? Wide<true, 4> : warps == 8 ? Wide<true, 8> : Wide<true, kMaxWarps>;
    bytes = bytes_with(window);
    scratch = int64_t{TilesOf(shape.chunks.behind())} * KeptOf(tiles);
    if (bytes > shared_bytes) {
      kernel = Wide<false, kMaxWarps>;
      warps = kMaxWarps;
      bytes = bytes_with(0);
      scratch += window;
    }
    const bool fine = shape.max_width > kFineWidth;
    blocks =
        RootBlocks(RootTasks(shape.chunks.count, shape.fibres), fine ? kMaxFineBlocks / warps : kMaxBlocks,
                   scratch, fine ? kMaxFineBytes : kMaxBytes);
  }
};
bool IsUsed(int kind, const RootShape& shape) {
  const int first = FirstWideKind(shape.max_width);
  return shape.max_width > kMaxTiled &&
         (kind == first || (kind > first && TilesOf(shape.max_width) > WideTiles(kind - 1)));
}

}  // namespace

int64_t WideRootScratch(const RootShape& shape) {
  int64_t all = 0;
  for (int kind = 0; kind < kWideKinds; ++kind) {
    if (!IsUsed(kind, shape)) continue;
    const WideLaunch launch(kind, shape, shape.shared_bytes);
    all += launch.blocks * launch.scratch;
  }
  return all;
}

cudaError_t ConfigureResolution(int shared_bytes) {
  return FirstError({AllowShared(Wide<true, 4>, shared_bytes), AllowShared(Wide<true, 8>, shared_bytes),
                     AllowShared(Wide<true, kMaxWarps>, shared_bytes),
                     AllowShared(Wide<false, kMaxWarps>, shared_bytes)});
}

cudaError_t WideRoots(const RootArgs& args, const RootShape& shape,
                      const std::array<cudaStream_t, kWideKinds>& streams) {
  cudaError_t error = cudaSuccess;
  RootArgs own = args;
  for (int kind = kWideKinds - 1, used = 0; kind >= 0 && error == cudaSuccess; --kind) {
    if (!IsUsed(kind, shape)) continue;
    const WideLaunch launch(kind, shape, args.shared_bytes);
    error = Launch(launch.kernel, launch.blocks, launch.warps * kWarp, launch.bytes, streams[used++], own,
                   static_cast<RootKind>(kWideRoot + kind), launch.tiles);
    own.resolution.scratch += launch.blocks * launch.scratch;
  }
  return error;
}

}  // namespace spexd::cuda
