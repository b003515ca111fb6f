// Square roots of bands too wide for registers (root_tiles.cuh). A warp takes one recurrence and a block
// eight poles, with the window in shared memory if it fits.
#include "cuda/kernels/root_tiles.cuh"
#include "cuda/kernels/wide_factor.cuh"

namespace spexd::cuda {
namespace {

constexpr int kMostBlocks = 264;  // most blocks; they loop over the recurrences, with a scratch each
constexpr int64_t kMostBytes = int64_t{1} << 29;      // scratch limit on usual grids
constexpr int64_t kMostFineBytes = int64_t{3} << 30;  // scratch limit on grids whose bands are mostly wide
constexpr int kFineWidth = 128;

// The backward pass of one recurrence, in the window of its factor.
template <bool kInside>
struct WideInverse {
  const WideFactor<kInside, BandRows<true>>& factor;
  const LanePlaces& at;
  const int tiles;
  const double* kept;

  // Tile (row, column) of the inverse, in either triangle.
  __device__ void LoadInverse(int base, int row, int column, double (&own)[2]) const {
    if (row >= column) {
      at.Load(factor.Tile(base, row, column), own);
    } else {
      at.LoadTransposed(factor.Tile(base, column, row), own);
    }
  }

  // Calls report(column, C_00, C_10, F_0) for tile columns from the last to `first`.
  template <typename Report>
  __device__ void Invert(int columns, int first, const Report& report) const {
    const int lane = threadIdx.x % kWarp;
    for (int i = lane; i < WideWindow(tiles).total; i += kWarp) factor.window[i] = 0;
    __syncwarp();
    for (int column = columns - 1, base = 0; column >= first;
         --column, base = factor.ring.Slot(base, tiles + 1)) {
      const auto* const from =
          reinterpret_cast<const double2*>(kept + static_cast<int64_t>(column) * KeptOf(tiles));
      const auto minus_z = [&](int k, double(&z)[2]) {
        const double2 pair = from[k * kWarp + lane];
        z[0] = -pair.x;
        z[1] = -pair.y;
      };
      double solution[2] = {0, 0}, next_to[2] = {0, 0};
      if (lane < kTile) {
        const double2 w = from[(tiles + 1) * kWarp + lane];
        solution[0] = w.x;
        solution[1] = w.y;
      }
      const int down = factor.Down(column);
      for (int k = 1; k <= down; k += 2) {
        const int next = min(k + 1, down);
        double d[4] = {};
        for (int l = 1; l <= down; ++l) {
          double z[2], a[2], b[2];
          minus_z(l, z);
          LoadInverse(base, k, l, a);
          LoadInverse(base, next, l, b);
          MultiplyAdd16(a, b, z, d);
          if (k > 1) continue;
          factor.LoadRight(base, l, a);
          MultiplyAdd8(a, z, solution);
        }
        at.Store(d[0], d[1], factor.Tile(base, k, 0));
        if (next != k) at.Store(d[2], d[3], factor.Tile(base, next, 0));
        if (k > 1) continue;
        next_to[0] = d[0];
        next_to[1] = d[1];
      }
      factor.StoreRight(base, 0, solution[0], solution[1]);
      __syncwarp();
      const double2 inverse = from[lane];
      double diagonal[2] = {inverse.x, inverse.y}, turned[2];
      for (int k = 1; k <= down; ++k) {
        double z[2], c[2];
        minus_z(k, z);
        at.LoadTransposed(factor.Tile(base, k, 0), c);
        MultiplyAdd8(z, c, diagonal);
      }
      // Rounding leaves the tile a little unsymmetric, and the recurrence would amplify that.
      Put(factor.turn, at, diagonal);
      __syncwarp();
      TakeTurned(factor.turn, at, turned);
      diagonal[0] = 0.5 * (diagonal[0] + turned[0]);
      diagonal[1] = 0.5 * (diagonal[1] + turned[1]);
      at.Store(diagonal[0], diagonal[1], factor.Tile(base, 0, 0));
      report(column, diagonal, next_to, solution);
      __syncwarp();
    }
  }
};

// Takes the chunks whose largest width lies in (above, width]; kInside: their windows fit into shared memory.
template <bool kInside>
__global__ void __launch_bounds__(kRootThreads) Wide(RootArgs args, int above, int width) {
  double* const shared = DynamicShared();
  const int warp = threadIdx.x / kWarp;
  const LanePlaces at;
  const int64_t kept_size = static_cast<int64_t>(TilesOf(args.chunks.extended)) * KeptOf(TilesOf(width));
  const int64_t own_size = kept_size + WideWindow(TilesOf(width)).total;
  double* const kept =
      args.resolution.scratch + (static_cast<int64_t>(blockIdx.x) * kPoleGroup + warp) * own_size;
  double* const turn = shared + kRootShares + warp * kTurnSize;
  double* const inside =
      shared + kRootShares + kPoleGroup * kTurnSize + warp * WideWindow(TilesOf(width)).total;
  double* const window = kInside ? inside : kept + kept_size;
  for (int k = blockIdx.x; k < args.resolution.task_count[kWideRoot]; k += gridDim.x) {
    const RootTask task(args, TasksOf(args, kWideRoot)[k]);
    const int widest = WidestOf(args, task.fibre, task.chunk);
    if (widest <= above || widest > width) continue;
    const ChunkRange bins(args.chunks, args.precision.size, task.chunk);
    const int pole = task.fibre * kMaxPoles + task.group * kPoleGroup + warp;
    const int columns = TilesOf(bins.count()), tiles = TilesOf(widest);
    const BandRows<true> rows = {at,
                                 Band(args.precision, task.fibre),
                                 bins.first,
                                 bins.count(),
                                 args.resolution.pole_shift[pole],
                                 args.flux + static_cast<int64_t>(task.fibre) * args.precision.size};
    const WideFactor<kInside, BandRows<true>> factor(rows, tiles, window, turn);
    factor.Factor(columns, KeptRoot{kept, tiles});
    const WideInverse<kInside> inverse = {factor, at, tiles, kept};
    inverse.Invert(columns, (bins.core - bins.first) / kTile,
                   RootReport{args, task, bins, at, args.resolution.pole_weight[pole], shared});
    __syncthreads();
  }
}

int64_t ScratchOfBlock(const ChunkPlan& chunks, int width) {
  const int tiles = TilesOf(width);
  return kPoleGroup * (int64_t{TilesOf(chunks.extended)} * KeptOf(tiles) + WideWindow(tiles).total);
}
// Number of blocks for bands up to `width`. `most`: largest width of the job.
int Blocks(const ChunkPlan& chunks, int width, int most, int fibres) {
  return RootBlocks(RootTasks(chunks.count, fibres), kMostBlocks, ScratchOfBlock(chunks, width),
                    most > kFineWidth ? kMostFineBytes : kMostBytes);
}

int64_t Bytes(int width, bool inside) {
  const int64_t windows = inside ? int64_t{kPoleGroup} * WideWindow(TilesOf(width)).total : 0;
  return (kRootShares + kPoleGroup * kTurnSize + windows) * static_cast<int64_t>(sizeof(double));
}

template <bool kInside>
cudaError_t LaunchWide(const RootArgs& args, int above, int width, cudaStream_t stream) {
  if (width <= above) return cudaSuccess;
  return Launch(Wide<kInside>, Blocks(args.chunks, width, args.precision.diagonals - 1, args.fibres),
                kRootThreads, Bytes(width, kInside), stream, args, above, width);
}

}  // namespace

int64_t WideRootScratch(const RootShape& shape) {
  int64_t most = 0;
  for (int width = shape.most_width; width > kMostTiled; --width) {
    most = std::max(most, Blocks(shape.chunks, width, shape.most_width, shape.fibres) *
                              ScratchOfBlock(shape.chunks, width));
  }
  return most;
}

cudaError_t ConfigureResolution(int shared_bytes) { return AllowShared(Wide<true>, shared_bytes); }

cudaError_t WideRoots(const RootArgs& args, cudaStream_t stream) {
  const int most = args.precision.diagonals - 1;
  int inside = most;
  while (inside > kMostTiled && Bytes(inside, true) > args.shared_bytes) --inside;
  cudaError_t error = LaunchWide<true>(args, kMostTiled, inside, stream);
  // Wider bands take more scratch per block, so that there are fewer blocks.
  for (int above = inside; above < most && error == cudaSuccess; above *= 2) {
    error = LaunchWide<false>(args, above, std::min(2 * above, most), stream);
  }
  return error;
}

}  // namespace spexd::cuda
