// Square roots of bands too wide for registers (root_tiles.cuh): a warp takes one recurrence, eight poles to
// a block, with the window in shared memory where it fits.
#include "cuda/kernels/device.cuh"
#include "cuda/kernels/fibre.cuh"
#include "cuda/kernels/root_tiles.cuh"
#include "cuda/kernels/roots.cuh"

namespace spexd::cuda {
namespace {

constexpr int kMostBlocks = 264;   // that loop over the recurrences: they have a scratch each
constexpr int kRight = 2 * kTile;  // both right-hand sides of a tile

__host__ __device__ inline int TilesOf(int width) { return (width + kTile - 1) / kTile; }

// Of one warp, in doubles: a triangle of tiles, `tiles` and two more each way, and right-hand sides beside
// them.
struct WideWindow {
  int slots, right, total;
  __host__ __device__ explicit WideWindow(int tiles) {
    slots = tiles + 2;
    right = TriangleRing::Tiles(slots) * kTileSize;
    total = right + slots * kRight;
  }
};

// One recurrence. A window of tile rows and columns is a ring, in which each keeps its slot; they count from
// the one at slot `base`.
template <bool kInside>
struct WideRoot {
  const LanePlaces& at;
  const TriangleRing ring;
  const int tiles;  // below the diagonal one at most
  double *window, *right, *turn;
  double* kept;
  const double *p, *flux;
  const int32_t* widths;
  int64_t stride;  // of diagonals
  int bins;
  double shift;

  __device__ double* Tile(int base, int row, int column) const {
    return window + TriangleRing::At(ring.Slot(base, row), ring.Slot(base, column));
  }
  // This lane's pair of a right-hand tile, whose other rows are zero.
  __device__ void LoadRight(int base, int tile, double (&own)[2]) const {
    const double* from = right + ring.Slot(base, tile) * kRight + at.row * kTile + at.column;
    own[0] = at.row < 2 ? from[0] : 0;
    own[1] = at.row < 2 ? from[1] : 0;
  }
  __device__ void StoreRight(int base, int tile, double own0, double own1) const {
    if (at.row >= 2) return;
    double* to = right + ring.Slot(base, tile) * kRight + at.row * kTile + at.column;
    to[0] = own0;
    to[1] = own1;
  }
  __device__ static void Fetch(double* to, const double* from) {
    if constexpr (kInside) {
      CopyAsync8(to, from);
    } else {
      *to = *from;
    }
  }

  // Tiles below the diagonal one of a column that its band reaches, near holes further than elsewhere: what
  // is further down is zero, also in the factor, since bins reach ever further.
  __device__ int Down(int column) const {
    const int last = min((column + 1) * kTile, bins) - 1;
    const int end = min(last + max(widths[last], kLeastRootWidth), bins - 1);
    return min(end / kTile - column, tiles);
  }

  // Tile row first + count, whose tiles from column `first` (at slot `base`) to its diagonal one lie in the
  // window, and its right-hand sides; beyond the chunk's end the identity. Asynchronous but for what is
  // constant.
  __device__ void Load(int base, int first, int count) const {
    for (int k = 0; k <= count; ++k) {
      if (k < count && ((first + count) * kTile >= bins || Down(first + k) < count - k)) continue;
      double* const tile = Tile(base, count, k);
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const int i = (first + count) * kTile + at.row, j = (first + k) * kTile + at.column + c;
        const int low = min(i, j), high = max(i, j);
        if (high < bins && high - low <= widths[low]) {
          Fetch(tile + at.pair + c, p + (high - low) * stride + low);
        } else {
          tile[at.pair + c] = i == j && high >= bins ? 1 : 0;
        }
      }
    }
    const int j = (first + count) * kTile + at.column;
    StoreRight(base, count, j < bins ? (at.row == 0 ? 1 : flux[j]) : 0,
               j + 1 < bins ? (at.row == 0 ? 1 : flux[j + 1]) : 0);
  }

  __device__ void Factor(int columns) const {
    for (int row = 0; row <= tiles; ++row) Load(0, 0, row);
    CopyAsyncCommit();
    auto* out = reinterpret_cast<double2*>(kept);
    const int lane = threadIdx.x % kWarp;
    for (int column = 0, base = 0; column < columns; ++column, base = ring.Slot(base, 1)) {
      CopyAsyncWait<0>();
      __syncwarp();
      Load(ring.Slot(base, 1), column + 1, tiles);  // into the slot that this column's predecessor left
      CopyAsyncCommit();

      double diagonal[2], inverse[2], turned[2];
      at.Load(Tile(base, 0, 0), diagonal);
      diagonal[0] += at.row == at.column ? shift : 0;
      diagonal[1] += at.row == at.column + 1 ? shift : 0;
      InvertFactor(
          at, diagonal, [&](int) { return shift; }, inverse);
      Put(turn, at, inverse);
      __syncwarp();
      TakeTurned(turn, at, turned);
      double u[2], x_right[2] = {0, 0};
      LoadRight(base, 0, u);
      MultiplyAdd8(u, inverse, x_right);
      const double ends[4] = {turned[0], turned[1], x_right[0], x_right[1]};
      double made[4] = {};
      MultiplyAdd16({ends[0], ends[1]}, {ends[2], ends[3]}, turned, made);
      out[lane] = {made[0], made[1]};
      if (lane < kTile) out[(tiles + 1) * kWarp + lane] = {made[2], made[3]};
      const int down = Down(column);
      for (int k = 1; k <= down; ++k) {
        double* const tile = Tile(base, k, 0);
        double s[2], x[2] = {0, 0}, z[2] = {0, 0};
        at.Load(tile, s);
        MultiplyAdd8(s, inverse, x);
        at.Store(x[0], x[1], tile);  // X takes the place of S
        MultiplyAdd8(turned, x, z);
        out[k * kWarp + lane] = {z[0], z[1]};
      }
      __syncwarp();
      for (int l = 1; l <= down; ++l) {
        double x_l[2], of_right[2];
        at.Load(Tile(base, l, 0), x_l);
        const double minus[2] = {-x_l[0], -x_l[1]};
        LoadRight(base, l, of_right);
        MultiplyAdd8(x_right, minus, of_right);
        StoreRight(base, l, of_right[0], of_right[1]);
        for (int k = l; k <= down; k += 2) {
          const int next = min(k + 1, down);
          double *top = Tile(base, k, l), *bottom = Tile(base, next, l);
          double a[2], b[2], t[2], s[2];
          at.Load(Tile(base, k, 0), a);
          at.Load(Tile(base, next, 0), b);
          at.Load(top, t);
          at.Load(bottom, s);
          double d[4] = {t[0], t[1], s[0], s[1]};
          MultiplyAdd16(a, b, minus, d);
          at.Store(d[0], d[1], top);
          if (next != k) at.Store(d[2], d[3], bottom);
        }
      }
      __syncwarp();
      out += KeptOf(tiles) / 2;
    }
    CopyAsyncWait<0>();
    __syncwarp();
  }

  // Tile (row, column) of the inverse, in either triangle.
  __device__ void LoadInverse(int base, int row, int column, double (&own)[2]) const {
    if (row >= column) {
      at.Load(Tile(base, row, column), own);
    } else {
      at.LoadTransposed(Tile(base, column, row), own);
    }
  }

  // Calls report(column, C_00, C_10, F_0) for tile columns from the last to `first`.
  template <typename Report>
  __device__ void Invert(int columns, int first, const Report& report) const {
    const int lane = threadIdx.x % kWarp;
    for (int i = lane; i < WideWindow(tiles).total; i += kWarp) window[i] = 0;
    __syncwarp();
    for (int column = columns - 1, base = 0; column >= first; --column, base = ring.Slot(base, tiles + 1)) {
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
      const int down = Down(column);
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
          LoadRight(base, l, a);
          MultiplyAdd8(a, z, solution);
        }
        at.Store(d[0], d[1], Tile(base, k, 0));
        if (next != k) at.Store(d[2], d[3], Tile(base, next, 0));
        if (k > 1) continue;
        next_to[0] = d[0];
        next_to[1] = d[1];
      }
      StoreRight(base, 0, solution[0], solution[1]);
      __syncwarp();
      const double2 inverse = from[lane];
      double diagonal[2] = {inverse.x, inverse.y}, turned[2];
      for (int k = 1; k <= down; ++k) {
        double z[2], c[2];
        minus_z(k, z);
        at.LoadTransposed(Tile(base, k, 0), c);
        MultiplyAdd8(z, c, diagonal);
      }
      // Rounding leaves the tile a little unsymmetric, and the recurrence would amplify that.
      Put(turn, at, diagonal);
      __syncwarp();
      TakeTurned(turn, at, turned);
      diagonal[0] = 0.5 * (diagonal[0] + turned[0]);
      diagonal[1] = 0.5 * (diagonal[1] + turned[1]);
      at.Store(diagonal[0], diagonal[1], Tile(base, 0, 0));
      report(column, diagonal, next_to, solution);
      __syncwarp();
    }
  }
};

// Takes the chunks whose largest width lies in (above, width]; kInside: their windows fit into shared memory.
template <bool kInside>
__global__ void __launch_bounds__(kRootThreads) Wide(JobView job, int above, int width) {
  double* const shared = DynamicShared();
  const int warp = threadIdx.x / kWarp;
  const LanePlaces at;
  const int64_t kept_size =
      static_cast<int64_t>(TileColumns(job.roots.extended)) * KeptOf(TilesOf(job.most_width));
  const int64_t own_size = kept_size + WideWindow(TilesOf(job.most_width)).total;
  double* const kept = job.pole_scratch + (static_cast<int64_t>(blockIdx.x) * kPoleBlock + warp) * own_size;
  double* const turn = shared + kRootShares + warp * kTurnSize;
  double* const inside =
      shared + kRootShares + kPoleBlock * kTurnSize + warp * WideWindow(TilesOf(width)).total;
  double* const window = kInside ? inside : kept + kept_size;
  const int64_t all = job.psf.shape.bins;
  for (int k = blockIdx.x; k < RootTasks(job.roots.count, job.fibres); k += gridDim.x) {
    const RootTask task(job, k);
    const int group = GroupOf(job, task.fibre), widest = job.wide[group * job.roots.count + task.chunk];
    if (task.pole_block >= job.pole_blocks[task.fibre] || widest <= above || widest > width) continue;
    const ChunkBins bins(job.roots, job.psf.shape.bins, task.chunk);
    const int pole = task.fibre * kMaxPoles + task.pole_block * kPoleBlock + warp;
    const int columns = TileColumns(bins.count()), tiles = TilesOf(widest);
    const WideRoot<kInside> root = {at,
                                    {WideWindow(tiles).slots},
                                    tiles,
                                    window,
                                    window + WideWindow(tiles).right,
                                    turn,
                                    kept,
                                    job.precision + task.fibre * (job.most_width + 1) * all + bins.first,
                                    job.flux + task.fibre * all + bins.first,
                                    job.widths + group * all + bins.first,
                                    all,
                                    bins.count(),
                                    job.pole_shift[pole]};
    root.Factor(columns);
    root.Invert(columns, (bins.core - bins.first) / kTile,
                RootReport{job, task, bins, at, job.pole_weight[pole], shared});
    __syncthreads();
  }
}

int64_t ScratchOfBlock(const ChunkPlan& roots, int most_width) {
  const int tiles = TilesOf(most_width);
  return kPoleBlock * (int64_t{TileColumns(roots.extended)} * KeptOf(tiles) + WideWindow(tiles).total);
}
int Blocks(const ChunkPlan& roots, int most_width, int fibres) {
  return RootBlocks(RootTasks(roots.count, fibres), kMostBlocks, ScratchOfBlock(roots, most_width));
}

int64_t Bytes(int width, bool inside) {
  const int64_t windows = inside ? int64_t{kPoleBlock} * WideWindow(TilesOf(width)).total : 0;
  return (kRootShares + kPoleBlock * kTurnSize + windows) * static_cast<int64_t>(sizeof(double));
}

template <bool kInside>
cudaError_t LaunchWide(const JobView& job, int above, int width, cudaStream_t stream) {
  if (width <= above) return cudaSuccess;
  return Launch(Wide<kInside>, Blocks(job.roots, job.most_width, job.fibres), kRootThreads,
                Bytes(width, kInside), stream, job, above, width);
}

}  // namespace

int64_t WideRootScratch(const RootShape& shape) {
  if (shape.most_width <= kMostTiled) return 0;
  return Blocks(shape.chunks, shape.most_width, shape.fibres) *
         ScratchOfBlock(shape.chunks, shape.most_width);
}

cudaError_t ConfigureResolution(int shared_bytes) { return AllowShared(Wide<true>, shared_bytes); }

cudaError_t WideRoots(const JobView& job, cudaStream_t stream) {
  int inside = job.most_width;
  while (inside > kMostTiled && Bytes(inside, true) > job.shared_bytes) --inside;
  return FirstError({LaunchWide<true>(job, kMostTiled, inside, stream),
                     LaunchWide<false>(job, inside, job.most_width, stream)});
}

}  // namespace spexd::cuda
