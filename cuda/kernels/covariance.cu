// Stage "covariance": entries of C = A^-1 near the diagonal by Takahashi's recurrence on tiles,
//   C_ij = -sum_k C_ik Y_kj (i > j),   C_jj = D_j^-1 - sum_k Y_kj^T C_kj,   k over the band below j.
//
// A block takes a piece of a chunk of a group, last tile column first, with the window of C that the
// recurrence reads in shared memory. The diagonal tile of a column is made by the first warp while the others
// are at the next column, so a step has one barrier. Beside holes C is kept further than shared memory
// reaches; tiles in rows so far down go through a ring in device memory.
//
// On fine grids the terms of a sum cancel; rounding them costs more than all else, so that they are added up
// as in split_sums.cuh.
//
// Floor for a frame (band 82, 12 bins of covariance): 26 Gflop, 0.43 ms on the matrix units; factor read 1.04
// GB, band written 0.12 GB: 0.28 ms.
#include <type_traits>

#include "core/model/tolerances.h"
#include "cuda/kernels/chunk.cuh"
#include "cuda/kernels/kernels.h"
#include "cuda/kernels/piece.cuh"
#include "cuda/kernels/split_sums.cuh"

namespace spexd::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;
constexpr int kRows = 2;     // tile rows that a warp takes at once
constexpr int kColumns = 3;  // of the factor in shared memory: in use, its diagonal's, on its way
constexpr int64_t kDouble = sizeof(double);
// What C is split by, of its largest variance: 20 bits lead; and Y, as far as 2^-11. Terms may add up to 2^21
// of that variance (4e4 were seen on grids of 0.1 A, 1e6 beside holes); beyond, sums are rounded as usual.
constexpr double kSplitVariance = 0x1p32, kSplitFactor = 0x1.8p41;

// Of shared memory, in doubles. The window has `slots` tile rows, as many as the widths usually ask for, or
// as fit.
struct InverseMemory {
  int slots, window, factor, total;
  bool fits;  // with columns of the factor
  __host__ __device__ explicit InverseMemory(const JobView& job) {
    const int columns = kColumns * (job.band_tiles + 1) * kTileSize;
    slots = job.window_slots;
    while (slots > 3 && (TriangleRing::Tiles(slots) * kTileSize + columns) * kDouble > job.shared_bytes)
      --slots;
    window = 0;
    factor = TriangleRing::Tiles(slots) * kTileSize;
    total = factor + columns;
    fits = total * kDouble <= job.shared_bytes;
    if (fits) return;
    slots = job.window_slots;  // all is the window's, then
    while (slots > 3 && TriangleRing::Tiles(slots) * kTileSize * kDouble > job.shared_bytes) --slots;
    total = factor = TriangleRing::Tiles(slots) * kTileSize;
  }
};

// Tile rows that `width` bins of `fibres` reach below a tile's diagonal.
__host__ __device__ inline int TilesDown(int width, int fibres) {
  return (width * fibres + kTile - 1) / kTile;
}

// Where the tiles lie that a tile row needs: all in the window; all of its own row in the far ring; or
// anywhere, where the band itself is wider than the window.
enum class Where { kWindow, kFar, kAnywhere };

// The columns of a tile column that this lane holds in its pair of entries: where their covariance goes, and
// how far it is wanted.
struct Wanted {
  double* out[2];
  int width[2];  // -1: not at all
};

template <bool kFine>
struct Inverter {
  const JobView& job;
  const Chunk& chunk;
  const Piece& piece;
  const TriangleRing ring;
  double* window;
  double* far;  // [band + 1 slot of tile column][ring row slot]
  const int band;
  const LanePlaces at;
  const Divider by_fibres;

  __device__ double* Far(int column, int row) const {
    DeviceCheck(row >= column && row - column < job.ring_rows && row < piece.tiles);
    return far +
           (static_cast<int64_t>(column % (band + 1)) * job.ring_rows + row % job.ring_rows) * kTileSize;
  }

  __device__ Wanted WantedOf(int column) const {
    const GroupPlan& g = chunk.group;
    const int64_t bins = job.psf.shape.bins;
    Wanted wanted;
    for (int c = 0; c < 2; ++c) {
      const int b = column * kTile + at.column + c, of_chunk = by_fibres.Quotient(b);
      const int bin = chunk.bins.first + of_chunk, fibre = g.first_solved + b - of_chunk * g.solved;
      const bool kept =
          bin >= piece.core && bin < piece.core_end && fibre >= g.first_kept && fibre < g.first_kept + g.kept;
      wanted.width[c] = kept ? job.widths[blockIdx.y * bins + bin] : -1;
      wanted.out[c] =
          job.covariance + static_cast<int64_t>(fibre - job.first_fibre) * (job.most_width + 1) * bins + bin;
    }
    return wanted;
  }

  // The entries of this lane in tile row column + p: those of one fibre are kept.
  __device__ void Keep(const Wanted& wanted, int p, double c0, double c1) const {
    const int nf = chunk.group.solved;
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int apart = p * kTile + at.row - at.column - c;
      const int k = by_fibres.Quotient(max(apart, 0));
      if (apart >= 0 && k * nf == apart && k <= wanted.width[c]) {
        wanted.out[c][static_cast<int64_t>(k) * job.psf.shape.bins] = c == 0 ? c0 : c1;
      }
    }
  }

  // This lane's operands of tile (column + p, column + k); `base`: the column's slot.
  __device__ void LoadAnywhere(int column, int base, int p, int k, double (&a)[2]) const {
    if (max(p, k) < ring.slots) {
      const double* tile = window + TriangleRing::At(ring.Slot(base, p), ring.Slot(base, k));
      if (p >= k) {
        at.Load(tile, a);
      } else {
        at.LoadTransposed(tile, a);
      }
    } else if (p >= k) {  // the far ring holds the lower triangle
      at.Load(Far(column + k, column + p), a);
    } else {
      at.LoadTransposed(Far(column + p, column + k), a);
    }
  }

  // Tile (column + p, column) in the window; `base`: the column's slot.
  __device__ void Store(int base, int p, double c0, double c1) const {
    DeviceCheck(p < ring.slots);
    at.Store(c0, c1, window + TriangleRing::At(ring.Slot(base, p), base));
  }

  // What C is split by where the diagonal tiles of column + first and behind are there; by a warp.
  __device__ double SplitOf(const double* factor, int column, int first, int below) const {
    if constexpr (!kFine) return 0;
    const int lane = threadIdx.x % kWarp, own = TileIndex(lane % kTile, lane % kTile);
    double most = factor[own];                    // of D^-1, where no tiles are
    const int last = min(below, ring.slots - 2);  // the window's last row makes way for the next column
#pragma unroll 1
    for (int k = first + lane / kTile; k <= last; k += kWarp / kTile) {
      const int slot = ring.Slot(column % ring.slots, k);
      most = fmax(most, window[TriangleRing::At(slot, slot) + own]);
    }
    return kSplitVariance * WarpMost(most);
  }

  // Rows first..first + kCount - 1 of a column, kept where later columns and the result want them.
  template <int kCount, Where kWhere>
  __device__ void Rows(const double* factor, int column, int first, int below, bool wide,
                       const Wanted& wanted) const {
    double sum[2][4] = {};  // of even and odd k, or split
    const double split = SplitOf(factor, column, 2, below);
    const int base = column % ring.slots;
    // In the far ring, rows keep their place while k runs over the columns.
    const int first_far = column % (band + 1);
    int row_at[kCount];  // slot of the window, or place in the far ring
#pragma unroll
    for (int r = 0; r < kCount; ++r) {
      row_at[r] = kWhere == Where::kFar ? (column + first + r) % job.ring_rows * kTileSize
                                        : ring.Slot(base, first + r);
    }
    struct Operands {
      double b[2], a[kCount][2];
    };
    // turned: these rows' tiles lie above the diagonal, or on it, which is symmetric.
    const auto load = [&](auto turned, int k, Operands* operands) {
      at.Load(factor + k * kTileSize, operands->b);
      if constexpr (kWhere == Where::kAnywhere) {
#pragma unroll
        for (int r = 0; r < kCount; ++r) LoadAnywhere(column, base, first + r, k, operands->a[r]);
      } else if constexpr (kWhere == Where::kFar) {
        const int slot = first_far + k > band ? first_far + k - band - 1 : first_far + k;
        const double* tiles = far + static_cast<int64_t>(slot) * job.ring_rows * kTileSize;
#pragma unroll
        for (int r = 0; r < kCount; ++r) at.Load(tiles + row_at[r], operands->a[r]);
      } else {
        const int slot = ring.Slot(base, k);
#pragma unroll
        for (int r = 0; r < kCount; ++r) {
          const double* tile = window + TriangleRing::At(row_at[r], slot);
          if constexpr (turned()) {
            at.LoadTransposed(tile, operands->a[r]);
          } else {
            at.Load(tile, operands->a[r]);
          }
        }
      }
    };
    const auto multiply = [&](const Operands& operands, double(&to)[4]) {
      const double nothing[2] = {0, 0};
      const auto& bottom = kCount == 2 ? operands.a[kCount - 1] : nothing;
      if constexpr (kFine) {
        MultiplyAddSplit16(operands.a[0], bottom, split, operands.b, kSplitFactor, sum[0], sum[1]);
      } else {
        MultiplyAdd16(operands.a[0], bottom, operands.b, to);
      }
    };
    int k = 1;
    // Unrolled by hand: nvcc 13.0 was seen to do so without asking whether a whole round is left.
    const auto add = [&](auto turned, int last) {
#pragma unroll 1
      for (; k + 3 <= last; k += 4) {
        Operands o[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) load(turned, k + i, &o[i]);
#pragma unroll
        for (int i = 0; i < 4; ++i) multiply(o[i], sum[i % 2]);
      }
#pragma unroll 1
      for (; k <= last; ++k) {
        Operands o;
        load(turned, k, &o);
        multiply(o, sum[0]);
      }
    };
    add(std::false_type(), kWhere == Where::kWindow ? min(first, below) : below);
    if constexpr (kWhere == Where::kWindow) add(std::true_type(), below);
#pragma unroll
    for (int r = 0; r < kCount; ++r) {
      const int p = first + r;
      const double c0 = -(sum[0][2 * r] + sum[1][2 * r]), c1 = -(sum[0][2 * r + 1] + sum[1][2 * r + 1]);
      if (kWhere == Where::kWindow || (kWhere == Where::kAnywhere && p < ring.slots)) Store(base, p, c0, c1);
      if (wide) at.Store(c0, c1, Far(column, column + p));
      Keep(wanted, p, c0, c1);
    }
  }

  template <Where kWhere>
  __device__ void Group(const double* factor, int column, int first, int last, int below, bool wide,
                        const Wanted& wanted) const {
    if (first + 1 <= last) {
      Rows<2, kWhere>(factor, column, first, below, wide, wanted);
    } else {
      Rows<1, kWhere>(factor, column, first, below, wide, wanted);
    }
  }

  // The diagonal tile of a column whose other tiles are there; by one warp.
  __device__ void Diagonal(const double* factor, int column, int below, const Wanted& wanted) const {
    const int slot = column % ring.slots;
    double even[2] = {0, 0}, odd[2] = {0, 0};  // or split
    const double split = SplitOf(factor, column, 1, below);
    const auto add = [&](int k, double(&to)[2]) {
      double y[2], c[2];
      at.Load(factor + k * kTileSize, y);
      // The window's last row makes way for the next column meanwhile.
      if (k < ring.slots - 1) {
        at.LoadTransposed(window + TriangleRing::At(ring.Slot(slot, k), slot), c);
      } else {
        at.LoadTransposed(Far(column, column + k), c);
      }
      if constexpr (kFine) {
        MultiplyAddSplit8(y, kSplitFactor, c, split, even, odd);
      } else {
        MultiplyAdd8(y, c, to);
      }
    };
    int k = 1;
#pragma unroll 1
    for (; k + 3 <= below; k += 4) {
      add(k, even);
      add(k + 1, odd);
      add(k + 2, even);
      add(k + 3, odd);
    }
#pragma unroll 1
    for (; k <= below; ++k) add(k, even);
    double* tile = window + TriangleRing::At(slot, slot);
    double inverse[2], turned[2];
    at.Load(factor, inverse);
    const double d0 = inverse[0] - (even[0] + odd[0]), d1 = inverse[1] - (even[1] + odd[1]);
    at.Store(d0, d1, tile);
    __syncwarp();
    // Rounding leaves the tile a little unsymmetric, and the recurrence would amplify that.
    at.LoadTransposed(tile, turned);
    const double s0 = 0.5 * (d0 + turned[0]), s1 = 0.5 * (d1 + turned[1]);
    __syncwarp();
    at.Store(s0, s1, tile);
    if (band >= ring.slots) at.Store(s0, s1, Far(column, column));  // rows beyond the window want it, too
    Keep(wanted, 0, s0, s1);
    __syncwarp();
  }
};

template <bool kShared, bool kFine>
__global__ void __launch_bounds__(kThreads) Invert(JobView job, int pass) {
  double* const shared = DynamicShared();
  const Chunk chunk(job, blockIdx.y, blockIdx.x);
  const Piece piece(job, chunk, blockIdx.z);
  const int block = blockIdx.y * job.solve.all_pieces() + piece.number;
  if (job.again[pass * job.groups * job.solve.all_pieces() + block] == 0 || piece.core >= piece.core_end)
    return;
  const int band = chunk.band_tiles(), tiles = piece.tiles, warp = threadIdx.x / kWarp,
            end = piece.first_tile;
  const InverseMemory memory(job);
  const int64_t ring_tiles = static_cast<int64_t>(job.band_tiles + 1) * job.ring_rows * kTileSize;
  const Divider by_fibres(chunk.group.solved);
  const Inverter<kFine> inverter = {
      job,  chunk,        piece,    {memory.slots}, shared, job.ring + block * ring_tiles,
      band, LanePlaces(), by_fibres};

  // Whether any column reaches beyond the window.
  bool beyond = band + 1 >= memory.slots;
  for (int c = end + threadIdx.x; c < tiles; c += kThreads)
    beyond |= DownOf(job, chunk, tiles, by_fibres, c) >= memory.slots;
  const bool wide = __syncthreads_or(beyond);

  const auto factor_of = [&](int column) -> const double* {
    if constexpr (kShared) return shared + memory.factor + column % kColumns * (band + 1) * kTileSize;
    return job.factor + FactorAt(job, chunk.block, column);
  };
  const auto fetch = [&](int column) {
    if constexpr (kShared) {
      if (column >= end) {
        const double* from = job.factor + FactorAt(job, chunk.block, column);
        double* to = const_cast<double*>(factor_of(column));
        const int count = (min(band, tiles - 1 - column) + 1) * kTileSize;
        for (int i = 2 * threadIdx.x; i < count; i += 2 * kThreads) CopyAsync16(to + i, from + i);
      }
      CopyAsyncCommit();
    }
  };

  // Rows of one column, by twos: row 1, which waits for the diagonal tile, is the first warp's; the others go
  // to the other warps first, those in the window before those in the far ring.
  const bool anywhere = band + 1 >= memory.slots;
  const int group = (warp + kWarps - 1) % kWarps;
  Wanted earlier = {}, next_wanted = inverter.WantedOf(tiles - 1);
  int next_down = DownOf(job, chunk, tiles, by_fibres, tiles - 1);
  fetch(tiles - 1);
  for (int column = tiles - 1; column >= end - 1; --column) {
    CopyAsyncWait<0>();
    __syncthreads();
    fetch(column - 1);
    const int below = min(band, tiles - 1 - column), down = next_down;
    const Wanted wanted = next_wanted;
    // Looked up a step ahead, so that nothing waits for it.
    next_down = column > end ? DownOf(job, chunk, tiles, by_fibres, column - 1) : 0;
    if (column > end) next_wanted = inverter.WantedOf(column - 1);
    if (warp == 0 && column + 1 < tiles) {
      inverter.Diagonal(factor_of(column + 1), column + 1, min(band, tiles - 2 - column), earlier);
    }
    earlier = wanted;
    if (down < 1) continue;
    const double* factor = factor_of(column);
    if (anywhere) {
      if (warp == 0) inverter.template Rows<1, Where::kAnywhere>(factor, column, 1, below, wide, wanted);
      for (int first = 2 + kRows * group; first <= down; first += kRows * kWarps) {
        inverter.template Group<Where::kAnywhere>(factor, column, first, down, below, wide, wanted);
      }
      continue;
    }
    if (warp == 0) inverter.template Rows<1, Where::kWindow>(factor, column, 1, below, wide, wanted);
    const int near = min(down, memory.slots - 1);
    for (int first = 2 + kRows * group; first <= near; first += kRows * kWarps) {
      inverter.template Group<Where::kWindow>(factor, column, first, near, below, wide, wanted);
    }
    for (int first = memory.slots + kRows * group; first <= down; first += kRows * kWarps) {
      inverter.template Group<Where::kFar>(factor, column, first, down, below, wide, wanted);
    }
  }
}

}  // namespace

int CovarianceRingRows(int most_width, int solved_fibres, int band_tiles) {
  return max(TilesDown(most_width, solved_fibres), band_tiles) + 3;
}

int CovarianceWindowSlots(int usual_width, int solved_fibres, int band_tiles) {
  return max(TilesDown(usual_width, solved_fibres), band_tiles + 1) + 2;
}

cudaError_t ConfigureCovariance(int shared_bytes) {
  return FirstError(
      {AllowShared(Invert<true, false>, shared_bytes), AllowShared(Invert<false, false>, shared_bytes),
       AllowShared(Invert<true, true>, shared_bytes), AllowShared(Invert<false, true>, shared_bytes)});
}

cudaError_t InvertSelected(const JobView& job, int pass, cudaStream_t stream) {
  const dim3 grid(job.solve.count, job.groups, job.solve.pieces);
  const InverseMemory memory(job);
  const bool fine = job.pair_reach > kMostUsualReach;
  if (memory.fits) {
    return Launch((fine ? Invert<true, true> : Invert<true, false>), grid, kThreads, memory.total * kDouble,
                  stream, job, pass);
  }
  return Launch((fine ? Invert<false, true> : Invert<false, false>), grid, kThreads, memory.factor * kDouble,
                stream, job, pass);
}

}  // namespace spexd::cuda
