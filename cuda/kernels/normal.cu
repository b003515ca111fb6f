// Stage "normal": A^T W A, A^T W p and A^T W 1, computed directly from spots on the matrix units.
//
// A warp goes along the rows of the CCD with two windows: two tiles of a fibre's bins, those whose spots a
// row may meet, and two of the next fibre's. It adds S W S^T and S W T^T, four columns of a row at a time: a
// line of S has the values there of one of the fibre's spots, a line of T those of the next fibre's, and W
// has the pixels' ivar. Meanwhile the next row is copied to shared memory. Behind the last spot of a window's
// first tile, the products of that tile are stored, and the tile after the second one enters the window.
// Where rows meet more than two tiles, each pair of windows is multiplied separately. Other warps take pairs
// of fibres further apart.
//
// Floor for a frame (500 fibres of 2350 bins, spots of 17 x 11 pixels): spots read 1.76 GB, image 0.14 GB,
// products of pairs written 0.34 GB: 0.53 ms; 5.1 Gflop, 0.09 ms. The matrix units do 32 Gflop here, 0.5 ms,
// most of it on bins of a tile that a row does not touch.
#include <climits>

#include "core/extract/formulas.h"
#include "cuda/kernels/common/device.cuh"
#include "cuda/kernels/normal.h"

namespace spexd::cuda {
namespace {

constexpr int kWarps = 4;    // warps of a block: neighbouring fibres, which share spots in cache
constexpr int kChunk = 12;   // tiles of a fibre that a warp takes
constexpr int kColumns = 4;  // columns of a step, which is a matrix product
constexpr int kSteps = 5;    // steps that are copied at once
constexpr int kFar = INT_MAX / 2;

__device__ int Line() { return threadIdx.x % kWarp / 4; }
__device__ int Quarter() { return threadIdx.x % 4; }
__device__ int Lane() { return threadIdx.x % kWarp; }

// Layout of a row in shared memory: for each step and each tile of both windows a slot with 8 bytes for each
// lane, the value that the lane multiplies; then the row's ivar and pixels.
constexpr int kImage = 4 * kSteps * kWarp, kStage = kImage + kSteps * kColumns;
constexpr int kSlotBytes = kWarp * sizeof(double), kStageBytes = kStage * sizeof(double);

// The spot of a bin, placed on the CCD. The spot of a bin that does not exist covers no row.
struct PlacedSpot {
  int first_row, first_column;
  const char* origin;  // where the value at CCD row 0, column 0 would lie

  __device__ __forceinline__ PlacedSpot(const PsfArrays& psf, int fibre, int bin) {
    const PsfShape& shape = psf.shape;
    const bool there = bin < shape.bins;
    const int64_t spot = static_cast<int64_t>(fibre) * shape.bins + (there ? bin : 0);
    first_row = there ? psf.first_row[spot] : -kFar;
    first_column = psf.first_column[spot];
    int64_t value = spot * shape.spot_pixels();
    if (there) value -= first_row * shape.spot_columns() + first_column;
    origin = reinterpret_cast<const char*>(psf.spots + value);
  }
  __device__ bool there() const { return first_row != -kFar; }
};

// Two tiles of a fibre's bins, and the CCD rows [first, end) and columns [left, right) around their spots.
// The first tile's spots end before `tile_end`. A lane holds the spots of the four bins whose values it
// copies.
struct Window {
  int tile;
  PlacedSpot spots[4];
  int first = kFar, tile_end, end, left = kFar, right = -kFar;

  __device__ __forceinline__ Window(const PsfArrays& psf, int fibre, int of_tile)
      : tile(of_tile),
        spots{{psf, fibre, tile * kTile + Lane() / 8},
              {psf, fibre, tile * kTile + Lane() / 8 + 4},
              {psf, fibre, tile * kTile + Lane() / 8 + 8},
              {psf, fibre, tile * kTile + Lane() / 8 + 12}} {
    const int rows = psf.shape.spot_rows();
    int last = -kFar, last_column = -kFar;
    for (const PlacedSpot& spot : spots) {
      if (!spot.there()) continue;
      first = min(first, spot.first_row);
      last = max(last, spot.first_row);
      left = min(left, spot.first_column);
      last_column = max(last_column, spot.first_column);
    }
    tile_end = __reduce_max_sync(kAllLanes, max(spots[0].first_row, spots[1].first_row)) + rows;
    if (tile_end < rows - kFar / 2) tile_end = kFar;  // no bins
    first = -__reduce_max_sync(kAllLanes, -first);
    end = __reduce_max_sync(kAllLanes, last) + rows;
    left = -__reduce_max_sync(kAllLanes, -left);
    right = __reduce_max_sync(kAllLanes, last_column) + psf.shape.spot_columns();
  }
};

// A warp's sums: products of its own window's tiles with each other and with those of another window, and
// data and coverage of its own window's bins.
struct Sums {
  double own[2][4] = {}, others[2][4] = {};
  double data[2] = {0, 0}, coverage[2] = {0, 0};

  // DropOwn and DropOther: the second tile of the own or of the other window takes the place of the first.
  __device__ __forceinline__ void DropOwn() {
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      own[0][k] = own[1][2 + k];
      own[0][2 + k] = own[1][k] = own[1][2 + k] = 0;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        others[i][k] = others[i][2 + k];
        others[i][2 + k] = 0;
      }
    }
    data[0] = data[1];
    coverage[0] = coverage[1];
    data[1] = coverage[1] = 0;
  }
  __device__ __forceinline__ void DropOther() {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      others[0][k] = others[1][k];
      others[1][k] = 0;
    }
  }
};

// Adds rows of the CCD to sums: products with the other window at the steps from kFirst on and, for kOwn,
// those of the own window with itself, data and coverage at all kCount steps.
template <bool kOwn, int kFirst, int kCount>
struct RowSum {
  const NormalArgs& args;
  const Window &own, &others;
  int left, right;
  double* slots;

  static constexpr int kWidth = kCount * kColumns;
  static constexpr bool kOnce = kFirst == 2 || kCount < kSteps;  // all columns fit

  __device__ __forceinline__ void Add(int row, int end, Sums* sums) const {
    int column = left, stage = 0;
    Fetch(row, column, stage);
    CopyAsyncCommit();
    while (row < end) {
      int next_row = row + 1, next_column = left;
      if (!kOnce && column + kWidth < right) {
        next_row = row;
        next_column = column + kWidth;
      }
      if (next_row < end) Fetch(next_row, next_column, stage ^ 1);
      CopyAsyncCommit();
      CopyAsyncWait<1>();
      __syncwarp();
      AddStage(slots + stage * kStage, sums);
      __syncwarp();
      row = next_row;
      column = next_column;
      stage ^= 1;
    }
    CopyAsyncWait<0>();
  }

  __device__ __forceinline__ void Fetch(int row, int column, int stage) const {
    const PsfShape& shape = args.psf.shape;
    const SharedAddress to = SharedAddressOf(slots) + stage * kStageBytes;
    const unsigned rows = shape.spot_rows(), columns = shape.spot_columns();
    // This kernel is limited by the lines of memory that a copy touches, so a copy takes two steps of four
    // bins.
    const int second = Lane() / 4 % 2;
    const SharedAddress mine =
        to + second * 4 * kSlotBytes + ((Lane() / 8 * 4 + Quarter()) ^ second * 8) * sizeof(double);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const PlacedSpot& spot = i < 4 ? own.spots[i] : others.spots[i - 4];
      const int step = i < 4 ? 0 : kFirst, at_column = column + step * kColumns + Lane() % 8;
      // Unsigned and in bytes: otherwise the compiler makes four instructions of each address.
      const unsigned offset = (static_cast<unsigned>(row) * columns + static_cast<unsigned>(at_column)) *
                              static_cast<unsigned>(sizeof(double));
      const char* const from = spot.origin + offset;
      // This lane's column of the spot, far away if the spot does not cover the row.
      const int at =
          static_cast<unsigned>(row - spot.first_row) < rows ? at_column - spot.first_column : -kFar;
#pragma unroll
      for (int k = 0; k < kCount - step; k += 2) {
        if (kCount == kSteps && k + 1 == kCount - step && second) break;  // beyond the last slot
        CopyAsyncOrZero<sizeof(double)>(
            mine + (4 * (step + k) + i / 2) * kSlotBytes + i % 2 * 16 * sizeof(double),
            from + k * kColumns * sizeof(double), static_cast<unsigned>(at + k * kColumns) < columns);
      }
    }
    static_assert(int64_t{kMaxCcdSide} * kMaxCcdSide * sizeof(float) <= int64_t{1} << 32);
    if (Lane() >= kWidth) return;
    const unsigned of_ccd = (static_cast<unsigned>(row) * static_cast<unsigned>(shape.ccd_columns) +
                             static_cast<unsigned>(column + Lane())) *
                            static_cast<unsigned>(sizeof(float));
    const SharedAddress image = to + kImage * sizeof(double) + Lane() * sizeof(float);
    const bool seen = column + Lane() < shape.ccd_columns;
    CopyAsyncOrZero<sizeof(float)>(image, reinterpret_cast<const char*>(args.image.ivar) + of_ccd, seen);
    if (kOwn)
      CopyAsyncOrZero<sizeof(float)>(image + kWidth * sizeof(float),
                                     reinterpret_cast<const char*>(args.image.pixels) + of_ccd, seen);
  }

  __device__ __forceinline__ void AddStage(const double* stage, Sums* sums) const {
    const float* const image = reinterpret_cast<const float*>(stage + kImage) + Quarter();
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      const double* const from = stage + 4 * k * kWarp + (Lane() ^ k % 2 * 8);
      const double w = image[k * kColumns];
      double mine[2], weighted[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        mine[i] = from[i * kWarp];
        weighted[i] = w * mine[i];
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if constexpr (kOwn) {
          if (w > 0) sums->coverage[i] += mine[i];
          sums->data[i] = fma(weighted[i], static_cast<double>(image[kWidth + k * kColumns]), sums->data[i]);
          MultiplyAdd16(weighted, mine[i], sums->own[i]);
        }
        if (k >= kFirst) MultiplyAdd16(weighted, from[(2 + i) * kWarp], sums->others[i]);
      }
    }
  }
};

// Adds rows [row, end). `both`: also products of `own` with `others`.
template <bool kOwn>
__device__ __forceinline__ void AddRows(const NormalArgs& args, const Window& own, const Window& others,
                                        bool both, int row, int end, double* slots, Sums* sums) {
  const PsfShape& shape = args.psf.shape;
  row = max(row, 0);
  end = min(end, shape.ccd_rows);
  int left = max(own.left, 0), right = min(own.right, shape.ccd_columns);
  const int shared = both ? max(others.left, left) : right;
  if (!kOwn) {
    left = shared;
    right = min(right, others.right);
  }
  if (row >= end || left >= right) return;
  if constexpr (kOwn) {
    // The shared columns begin with a step if that needs no more steps.
    const int lead = (left - shared) & (kColumns - 1);
    if (left >= lead && right - left + lead <= kSteps * kColumns) left -= lead;
    const bool once = right - left <= kSteps * kColumns;
    if (shared >= right) {
      RowSum<true, kSteps, kSteps>{args, own, others, left, right, slots}.Add(row, end, sums);
    } else if (once && shared - left >= 2 * kColumns) {
      RowSum<true, 2, kSteps>{args, own, others, left, right, slots}.Add(row, end, sums);
    } else {
      RowSum<true, 0, kSteps>{args, own, others, left, right, slots}.Add(row, end, sums);
    }
  } else if (right - left <= kColumns) {
    RowSum<false, 0, 1>{args, own, others, left, right, slots}.Add(row, end, sums);
  } else if (right - left <= 3 * kColumns) {
    RowSum<false, 0, 3>{args, own, others, left, right, slots}.Add(row, end, sums);
  } else {
    RowSum<false, 0, kSteps>{args, own, others, left, right, slots}.Add(row, end, sums);
  }
}

// The destination of the products of a warp's fibre with another (NormalArrays). Of a fibre's products with
// itself, only those with later bins are kept. Products outside the band are dropped.
struct KeptProducts {
  const NormalArrays& normal;
  int apart;
  int member, distance;  // position in the block; unknowns between the same bins of both fibres
  bool within;           // both fibres are in one block
  double* to;

  __device__ __forceinline__ KeptProducts(const NormalArgs& args, int local, int fibres_apart)
      : normal(args.normal), apart(fibres_apart), member(args.fibres.MemberOf(local)) {
    const int block = args.fibres.BlockOf(local), later = args.fibres.BlockOf(local + apart) - block;
    distance = args.fibres.MemberOf(local + apart) - member;
    within = later == 0;
    to = normal.Diagonals(block, later);
  }
  __device__ __forceinline__ void Keep(int bin, int other, double product) const {
    const int m = normal.blocks.fibres, k = other - bin;
    if (bin >= normal.bins || other >= normal.bins || abs(k) > normal.reach || (apart == 0 && k < 0)) return;
    // The lower unknown of a block is the column.
    const int unknown = bin * m + member, far = k * m + distance;
    const bool transposed = within && far < 0;
    to[int64_t{transposed ? -far : far} * normal.blocks.size + (transposed ? unknown + far : unknown)] =
        product;
  }
  // Keeps a tile of products, of which this lane has `low` and `high`.
  __device__ __forceinline__ void KeepTile(int tile, int other_tile, double low, double high) const {
    const int bin = tile * kTile + Line(), other = other_tile * kTile + 2 * Quarter();
    Keep(bin, other, low);
    Keep(bin, other + 1, high);
  }
};

// A warp's work: tiles [begin, last) of a fibre, and the fibre `apart` further unless that is 0. kOwn: the
// fibre's products with itself, data and coverage are wanted, too.
template <bool kOwn>
struct March {
  const NormalArgs& args;
  int local, apart, begin, last;
  double* slots;

  __device__ __forceinline__ void Run() const {
    if (Grows(0) && (apart == 0 || Grows(apart))) {
      RunWindows();
    } else {
      RunPairs();
    }
  }

  __device__ __forceinline__ Window At(int fibres_apart, int tile) const {
    return Window(args.psf, args.fibres.first_fibre + local + fibres_apart, tile);
  }
  // Returns the other fibre's first tile with bins in reach of a tile's bins.
  __device__ int FirstOther(int tile) const { return max(tile * kTile - args.normal.reach, 0) / kTile; }

  // Whether rows grow with the bins, and none meets more than two tiles.
  __device__ __forceinline__ bool Grows(int fibres_apart) const {
    const PsfShape& shape = args.psf.shape;
    const int64_t fibre = args.fibres.first_fibre + local + fibres_apart;
    const int32_t* const rows = args.psf.first_row + fibre * shape.bins;
    const int end = min((last + 2) * kTile + args.normal.reach, shape.bins) - 1;
    bool grows = true;
    for (int j = FirstOther(begin) * kTile + Lane(); j < end; j += kWarp) {
      const int third = j + kTile + 1;  // if j ends a tile
      grows = grows && rows[j] <= rows[j + 1] &&
              (third % kTile != 0 || third >= shape.bins || rows[j] + shape.spot_rows() <= rows[third]);
    }
    return !__any_sync(kAllLanes, !grows);
  }

  __device__ __forceinline__ void RunWindows() const {
    const KeptProducts with_own(args, local, 0), with_other(args, local, apart);
    Window s = At(0, begin), t = At(apart, FirstOther(begin));
    int row = s.first;
    while (t.tile_end <= row) t = At(apart, t.tile + 1);
    Sums sums;
    while (s.tile < last) {
      const int t_end = apart > 0 ? t.tile_end : kFar, end = min(s.tile_end, t_end);
      AddRows<kOwn>(args, s, t, apart > 0, row, end, slots, &sums);
      row = max(row, end);
      if (apart > 0) with_other.KeepTile(s.tile, t.tile, sums.others[0][0], sums.others[0][1]);
      if (s.tile_end > t_end) {
        if (s.tile + 1 < last) with_other.KeepTile(s.tile + 1, t.tile, sums.others[0][2], sums.others[0][3]);
        sums.DropOther();
        t = At(apart, t.tile + 1);
        continue;
      }
      if (apart > 0) with_other.KeepTile(s.tile, t.tile + 1, sums.others[1][0], sums.others[1][1]);
      if (kOwn) {
        with_own.KeepTile(s.tile, s.tile, sums.own[0][0], sums.own[0][1]);
        with_own.KeepTile(s.tile, s.tile + 1, sums.own[1][0], sums.own[1][1]);
        KeepData(s.tile, sums.data[0], sums.coverage[0]);
      }
      sums.DropOwn();
      s = At(0, s.tile + 1);
    }
  }

  // Multiplies each pair of windows separately.
  __device__ __forceinline__ void RunPairs() const {
    for (int tile = begin; tile < last; tile += 2) {
      const Window s = At(0, tile);
      const int end = min((tile + 2) * kTile + args.normal.reach, args.psf.shape.bins);
      for (int fibres = kOwn ? 0 : apart; fibres <= apart; fibres += max(apart, 1)) {
        const KeptProducts products(args, local, fibres);
        for (int other = fibres > 0 ? FirstOther(tile) : tile; other * kTile < end; other += 2) {
          const Window t = At(fibres, other);
          const int first = max(s.first, t.first), after = min(s.end, t.end);
          const bool self = kOwn && fibres == 0 && other == tile;
          Sums sums;
          if (self) {
            AddRows<kOwn>(args, s, t, false, first, after, slots, &sums);
          } else {
            AddRows<false>(args, s, t, true, first, after, slots, &sums);
          }
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            if (tile + i >= last) break;
            if (self) KeepData(tile + i, sums.data[i], sums.coverage[i]);
#pragma unroll
            for (int k = 0; k < 2; ++k) {
              products.KeepTile(tile + i, other + k, self ? sums.own[k][2 * i] : sums.others[k][2 * i],
                                self ? sums.own[k][2 * i + 1] : sums.others[k][2 * i + 1]);
            }
          }
        }
      }
    }
  }

  __device__ __forceinline__ void KeepData(int tile, double data, double coverage) const {
    for (int mask = 1; mask < 4; mask *= 2) {
      data += ShuffleXor(data, mask);
      coverage += ShuffleXor(coverage, mask);
    }
    const int bin = tile * kTile + Line();
    if (Quarter() != 0 || bin >= args.psf.shape.bins) return;
    const int64_t at = static_cast<int64_t>(local) * args.psf.shape.bins + bin;
    args.normal.data[at] = data;
    args.normal.coverage[at] = coverage;
  }
};

// Number of warps that take a fibre's tiles: one for the fibre and the next one, and one for each fibre
// further apart.
__device__ __host__ int WarpsOf(int fibre_reach) { return fibre_reach > 1 ? fibre_reach : 1; }

__global__ void __launch_bounds__(kWarps* kWarp, 3) Products(NormalArgs args) {
  __shared__ double fetched[kWarps][2 * kStage];
  double* const slots = fetched[threadIdx.x / kWarp];
  const int reach = args.normal.fibre_reach, warps = WarpsOf(reach);
  const int begin = blockIdx.x / warps * kChunk, last = min(begin + kChunk, TilesOf(args.psf.shape.bins));
  const int local = blockIdx.y * kWarps + threadIdx.x / kWarp;  // fibre, counted in the job
  if (local >= args.fibres.fibres) return;
  const int apart = blockIdx.x % warps + 1;
  const bool there = apart <= reach && local + apart < args.fibres.EndOf(args.fibres.BundleOf(local));
  if (apart == 1) {
    March<true>{args, local, there ? apart : 0, begin, last, slots}.Run();
  } else if (there) {
    March<false>{args, local, apart, begin, last, slots}.Run();
  }
}

constexpr int kPriorThreads = 256;

// The least diagonal entry of each fibre's bins with data; 1 if it has none.
__global__ void __launch_bounds__(kPriorThreads) LeastDiagonal(NormalArgs args) {
  __shared__ double most[kPriorThreads / kWarp];
  const NormalArrays& normal = args.normal;
  const int bins = normal.bins, m = normal.blocks.fibres, fibre = blockIdx.x;
  const double* const diagonal =
      normal.Diagonals(args.fibres.BlockOf(fibre), 0) + args.fibres.MemberOf(fibre);
  const double* const coverage = normal.coverage + static_cast<int64_t>(fibre) * bins;
  double inverse = 0;  // the largest
  for (int j = threadIdx.x; j < bins; j += kPriorThreads) {
    if (HasData(coverage[j])) inverse = fmax(inverse, 1 / diagonal[j * m]);
  }
  inverse = WarpMost(inverse);
  if (threadIdx.x % kWarp == 0) most[threadIdx.x / kWarp] = inverse;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int k = 1; k < kPriorThreads / kWarp; ++k) inverse = fmax(inverse, most[k]);
  normal.min_diagonal[fibre] = inverse > 0 ? 1 / inverse : 1;
}

// Unknowns of fibres that a bundle's last block lacks get a diagonal of 1.
__global__ void __launch_bounds__(kPriorThreads) AddPrior(NormalArgs args) {
  const NormalArrays& normal = args.normal;
  const int bin = blockIdx.x * kPriorThreads + threadIdx.x, m = normal.blocks.fibres;
  const int block = blockIdx.y / m, member = blockIdx.y % m, fibre = args.fibres.FibreOf(block, member);
  if (bin >= normal.bins) return;
  double& diagonal = normal.Diagonals(block, 0)[bin * m + member];
  if (fibre < 0) {
    diagonal = 1;
    return;
  }
  const double coverage = normal.coverage[static_cast<int64_t>(fibre) * normal.bins + bin];
  diagonal +=
      Prior(coverage, diagonal, normal.min_diagonal[fibre], args.regularize, args.psf.shape.fine_grid);
}

}  // namespace

cudaError_t ComputeNormal(const NormalArgs& args, cudaStream_t stream) {
  const NormalArrays& normal = args.normal;
  const BlockPlan& blocks = normal.blocks;
  const int bins = normal.bins, fibres = args.fibres.fibres;
  const dim3 grid((TilesOf(bins) + kChunk - 1) / kChunk * WarpsOf(normal.fibre_reach),
                  (fibres + kWarps - 1) / kWarps);
  const dim3 all((bins + kPriorThreads - 1) / kPriorThreads, blocks.count * blocks.fibres);
  // Spots that share no row have no product.
  const size_t row = sizeof(double) * blocks.count * blocks.size;
  return FirstError(
      {cudaMemsetAsync(normal.own.values, 0, row * normal.own.diagonals, stream),
       cudaMemsetAsync(normal.between, 0, row * normal.later_blocks * (2 * blocks.reach + 1), stream),
       Launch(Products, grid, kWarps * kWarp, 0, stream, args),
       Launch(LeastDiagonal, fibres, kPriorThreads, 0, stream, args),
       Launch(AddPrior, all, kPriorThreads, 0, stream, args)});
}

}  // namespace spexd::cuda
