// Stage "normal": A^T W A, A^T W p and A^T W 1 straight from spots, on the matrix units.
//
// A warp takes 16 bins of a fibre. It multiplies them with 32 bins at a time, of the same or a later fibre,
// that may share pixels with them. It goes through the pixels where both may have spots, eight at a time, and
// adds S W T^T: a line of S or T has the values of one spot there, and W has the pixels' ivar. The next eight
// pixels are copied to shared memory meanwhile, each lane's to slots of its own.
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

constexpr int kWarps = 4;         // warps of a block: neighbouring fibres, which share spots in cache
constexpr int kBins = 2 * kTile;  // bins of a warp
constexpr int kTiles = 4;         // tiles of other bins multiplied at once
constexpr int kOthers = kTiles * kTile;

__device__ int Line() { return threadIdx.x % kWarp / 4; }

// A place on the CCD.
struct Place {
  int row, column;
};

// The spot of a bin, placed on the CCD. From `end` on spots lie nowhere.
struct PlacedSpot {
  int first_row, first_column;
  const char* origin;  // where the value at CCD row 0, column 0 would lie

  __device__ PlacedSpot(const PsfArrays& psf, int fibre, int bin, int end) {
    const PsfShape& shape = psf.shape;
    const bool there = bin < end;
    const int64_t spot = static_cast<int64_t>(fibre) * shape.bins + (there ? bin : 0);
    first_row = there ? psf.first_row[spot] : kNowhere;
    first_column = psf.first_column[spot];
    int64_t value = spot * shape.spot_pixels();
    if (there) value -= first_row * shape.spot_columns() + first_column;
    origin = reinterpret_cast<const char*>(psf.spots + value);
  }
  // Begins to copy the spot's value at `at`, `offset` bytes behind `origin`, or zero outside the spot.
  __device__ void Fetch(const PsfShape& shape, const Place& at, unsigned offset, SharedAddress to) const {
    const bool inside =
        static_cast<unsigned>(at.row - first_row) < static_cast<unsigned>(shape.spot_rows()) &&
        static_cast<unsigned>(at.column - first_column) < static_cast<unsigned>(shape.spot_columns());
    CopyAsyncOrZero<sizeof(double)>(to, origin + offset, inside);
  }
  static constexpr int kNowhere = -(1 << 28);
};

// The CCD rows [first, end) and columns [left, right) around spots, found by a warp.
struct Extent {
  int first, end, left, right;

  template <int kCount>
  __device__ Extent(const PsfShape& shape, const PlacedSpot* const (&spots)[kCount]) {
    int least[2] = {INT_MAX, INT_MAX}, most[2] = {-INT_MAX, -INT_MAX};
    for (const PlacedSpot* spot : spots) {
      if (spot->first_row == PlacedSpot::kNowhere) continue;
      least[0] = min(least[0], spot->first_row);
      most[0] = max(most[0], spot->first_row + shape.spot_rows());
      least[1] = min(least[1], spot->first_column);
      most[1] = max(most[1], spot->first_column + shape.spot_columns());
    }
    first = max(-__reduce_max_sync(kAllLanes, -least[0]), 0);
    end = min(__reduce_max_sync(kAllLanes, most[0]), shape.ccd_rows);
    left = max(-__reduce_max_sync(kAllLanes, -least[1]), 0);
    right = min(__reduce_max_sync(kAllLanes, most[1]), shape.ccd_columns);
  }
};

// Sums of a warp: products of its bins with those of some tiles, and its own bins' data and weight.
struct Sums {
  double products[kTiles][4] = {};
  double data[2] = {0, 0}, weight[2] = {0, 0};
};

// The pixels where a warp's bins and those of some tiles may both have spots.
struct Meeting {
  int first_row, end_row, left, right;
  int tile_first[kTiles], tile_end[kTiles];  // CCD rows of each tile

  __device__ Meeting(const PsfShape& shape, const Extent& of_own, const PlacedSpot (&others)[kTiles])
      : first_row(shape.ccd_rows), end_row(0), left(shape.ccd_columns), right(0) {
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      const Extent of_tile(shape, {&others[t]});
      tile_first[t] = of_tile.first;
      tile_end[t] = of_tile.end;
      first_row = min(first_row, of_tile.first);
      end_row = max(end_row, of_tile.end);
      left = min(left, of_tile.left);
      right = max(right, of_tile.right);
    }
    first_row = max(first_row, of_own.first);
    end_row = min(end_row, of_own.end);
    left = max(left, of_own.left);
    right = min(right, of_own.right);
  }
  __device__ bool empty() const { return first_row >= end_row || left >= right; }
  __device__ int steps() const { return ((end_row - first_row) * (right - left) + kTile - 1) / kTile; }
};

// The order in which a warp visits those pixels: row by row, eight at a time, two for each quarter.
struct PixelWalk {
  const Meeting& meeting;
  Place at[2];

  __device__ explicit PixelWalk(const Meeting& of) : meeting(of) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      at[c] = {of.first_row, of.left + static_cast<int>(threadIdx.x) % 4 + 4 * c};
      Settle(&at[c]);
    }
  }
  __device__ void Advance() {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      at[c].column += kTile;
      Settle(&at[c]);
    }
  }
  // Columns behind the right end are those of the next row.
  __device__ void Settle(Place* place) const {
    while (place->column >= meeting.right) {
      place->column -= meeting.right - meeting.left;
      ++place->row;
    }
  }
  __device__ int least_row() const { return __shfl_sync(kAllLanes, at[0].row, 0); }
  __device__ int most_row() const { return __shfl_sync(kAllLanes, at[1].row, 3); }
};

// The bins of a warp.
struct OwnBins {
  int first;
  PlacedSpot spots[2];
  Extent extent;

  __device__ OwnBins(const PsfArrays& psf, int fibre, int first_bin)
      : first(first_bin),
        spots{{psf, fibre, first + Line(), psf.shape.bins},
              {psf, fibre, first + kTile + Line(), psf.shape.bins}},
        extent(psf.shape, {&spots[0], &spots[1]}) {}
};

// Bins of the fibre `other` from `first` on, kOthers at most, before `end`.
struct OtherBins {
  int other, first, end;
};

// What a lane fetches for a step lies in slots of its own, 8 bytes each: the values of its own bins, of the
// others, weights and pixels, of two pixels each.
constexpr int kOwnSlot = 0, kOtherSlot = 4, kIvarSlot = kOtherSlot + 2 * kTiles, kPixelSlot = kIvarSlot + 2,
              kSlots = kPixelSlot + 2;
constexpr int kSlotBytes = kWarp * sizeof(double), kStageBytes = kSlots * kSlotBytes;

// Goes through the pixels where a warp's bins and others may both have spots. kOwn: the others begin with the
// warp's own, whose data and weight are summed, too.
template <bool kOwn>
class PairSum {
 public:
  // `slots`: this lane's in shared memory, of two stages.
  __device__ PairSum(const NormalArgs& args, const OwnBins& own, const OtherBins& bins, double* slots)
      : args_(args),
        shape_(args.psf.shape),
        slots_(slots),
        to_(SharedAddressOf(slots)),
        own_(own.spots),
        others_{{args.psf, bins.other, bins.first + Line(), bins.end},
                {args.psf, bins.other, bins.first + kTile + Line(), bins.end},
                {args.psf, bins.other, bins.first + 2 * kTile + Line(), bins.end},
                {args.psf, bins.other, bins.first + 3 * kTile + Line(), bins.end}},
        meeting_(args.psf.shape, own.extent, others_) {}

  __device__ void Run(Sums* sums) {
    if (meeting_.empty()) return;
    PixelWalk walk(meeting_);
    const int steps = meeting_.steps();
    // A step is fetched while the one before is added.
    int stage = 0;
    unsigned meets = FetchNext(&walk, stage);
    for (int step = 0; step < steps; ++step, stage ^= 1) {
      const unsigned next = FetchNext(&walk, stage ^ 1);
      CopyAsyncWait<1>();
      Add(slots_ + stage * (kSlots * kWarp), meets, sums);
      meets = next;
    }
    CopyAsyncWait<0>();
  }

 private:
  // Begins to fetch the next step, if there is one. Returns which tiles it meets.
  __device__ unsigned FetchNext(PixelWalk* walk, int stage) {
    const int least_row = walk->least_row(), most_row = walk->most_row();
    unsigned meets = 0;
    if (least_row < meeting_.end_row) {
      const SharedAddress to = to_ + stage * kStageBytes;
      // Unsigned and in bytes, or the compiler makes four instructions of each address.
      constexpr unsigned kBytes = sizeof(double);
      unsigned offset[2];
#pragma unroll
      for (int c = 0; c < 2; ++c)
        offset[c] = static_cast<unsigned>(walk->at[c].row) * (shape_.spot_columns() * kBytes) +
                    static_cast<unsigned>(walk->at[c].column) * kBytes;
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        if (most_row < meeting_.tile_first[t] || least_row >= meeting_.tile_end[t]) continue;
        meets |= 1u << t;
        if (kOwn && t < 2) continue;
#pragma unroll
        for (int c = 0; c < 2; ++c)
          others_[t].Fetch(shape_, walk->at[c], offset[c], to + (kOtherSlot + 2 * t + c) * kSlotBytes);
      }
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const Place at = walk->at[c];
#pragma unroll
        for (int i = 0; i < 2; ++i)
          own_[i].Fetch(shape_, at, offset[c], to + (kOwnSlot + 2 * i + c) * kSlotBytes);
        const bool seen = at.row < meeting_.end_row;
        static_assert(int64_t{kMaxCcdSide} * kMaxCcdSide * sizeof(float) <= int64_t{1} << 32);
        const unsigned of_ccd = (static_cast<unsigned>(at.row) * static_cast<unsigned>(shape_.ccd_columns) +
                                 static_cast<unsigned>(at.column)) *
                                static_cast<unsigned>(sizeof(float));
        const auto fetch = [&](int slot, const float* image) {
          CopyAsyncOrZero<sizeof(float)>(to + (slot + c) * kSlotBytes,
                                         reinterpret_cast<const char*>(image) + of_ccd, seen);
        };
        fetch(kIvarSlot, args_.image.ivar);
        if (kOwn) fetch(kPixelSlot, args_.image.pixels);
      }
      walk->Advance();
    }
    CopyAsyncCommit();
    return meets;
  }

  __device__ void Add(const double* from, unsigned meets, Sums* sums) {
    double mine[2][2], weighted[2][2];
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const double w = *reinterpret_cast<const float*>(from + (kIvarSlot + c) * kWarp);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        mine[i][c] = from[(kOwnSlot + 2 * i + c) * kWarp];
        weighted[i][c] = w * mine[i][c];
        if constexpr (kOwn) {
          const double pixel = *reinterpret_cast<const float*>(from + (kPixelSlot + c) * kWarp);
          sums->weight[i] += weighted[i][c];
          sums->data[i] = fma(weighted[i][c], pixel, sums->data[i]);
        }
      }
    }
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      if ((meets >> t & 1) == 0) continue;
      if (kOwn && t < 2) {
        MultiplyAdd16(weighted[0], weighted[1], mine[t % 2], sums->products[t]);
      } else {
        const double* const theirs = from + (kOtherSlot + 2 * t) * kWarp;
        MultiplyAdd16(weighted[0], weighted[1], {theirs[0], theirs[kWarp]}, sums->products[t]);
      }
    }
  }

  const NormalArgs& args_;
  const PsfShape& shape_;
  double* const slots_;
  const SharedAddress to_;
  const PlacedSpot (&own_)[2];
  const PlacedSpot others_[kTiles];
  const Meeting meeting_;
};

__device__ void KeepOwn(const NormalArgs& args, int local, int first, const Sums& sums) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    double data = sums.data[i], weight = sums.weight[i];
    for (int mask = 1; mask < 4; mask *= 2) {
      data += ShuffleXor(data, mask);
      weight += ShuffleXor(weight, mask);
    }
    const int bin = first + i * kTile + Line();
    if (threadIdx.x % 4 != 0 || bin >= args.psf.shape.bins) continue;
    const int64_t at = static_cast<int64_t>(local) * args.psf.shape.bins + bin;
    args.normal.data[at] = data;
    args.normal.weight[at] = weight;
  }
}

// Where the products of a warp's fibre with another go (NormalArrays). For a fibre with itself only those
// with later bins are kept; products outside the band are dropped.
struct KeptProducts {
  const NormalArrays& normal;
  int apart;
  int member, distance;  // place in the block; unknowns between the same bins of both fibres
  bool within;           // one block
  double* to;

  __device__ KeptProducts(const NormalArgs& args, int local, int fibres_apart)
      : normal(args.normal), apart(fibres_apart), member(args.fibres.MemberOf(local)) {
    const int block = args.fibres.BlockOf(local), later = args.fibres.BlockOf(local + apart) - block;
    distance = args.fibres.MemberOf(local + apart) - member;
    within = later == 0;
    to = normal.Diagonals(block, later);
  }
  __device__ void Keep(int bin, int other, double product) const {
    const int m = normal.blocks.fibres, k = other - bin;
    if (bin >= normal.bins || other >= normal.bins || abs(k) > normal.reach || (apart == 0 && k < 0)) return;
    // The lower unknown of a block is the column.
    const int unknown = bin * m + member, far = k * m + distance;
    const bool turned = within && far < 0;
    to[int64_t{turned ? -far : far} * normal.blocks.size + (turned ? unknown + far : unknown)] = product;
  }
  __device__ void Keep(int first, int other_first, const Sums& sums) const {
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
      for (int k = 0; k < 4; ++k)
        Keep(first + k / 2 * kTile + Line(), other_first + t * kTile + 2 * (threadIdx.x % 4) + k % 2,
             sums.products[t][k]);
    }
  }
};

__global__ void __launch_bounds__(kWarps* kWarp, 4) Products(NormalArgs args) {
  __shared__ double fetched[kWarps][2 * kSlots * kWarp];
  double* const slots = fetched[threadIdx.x / kWarp] + threadIdx.x % kWarp;
  const PsfShape& shape = args.psf.shape;
  const int first = blockIdx.x * kBins, reach = args.normal.reach;
  const int local = blockIdx.y * kWarps + threadIdx.x / kWarp;  // fibre, counted in the job
  if (local >= args.fibres.fibres) return;
  const int fibre = args.fibres.first_fibre + local;
  const int bundle_end = args.fibres.EndOf(args.fibres.BundleOf(local));
  const OwnBins own(args.psf, fibre, first);
  const int lane = threadIdx.x % kWarp;

  for (int apart = 0; apart <= args.normal.fibre_reach && local + apart < bundle_end; ++apart) {
    const KeptProducts products(args, local, apart);
    // Only later bins of the own fibre count.
    const int begin = apart == 0 ? first : max(first - reach, 0),
              end = min(first + kBins + reach, shape.bins);
    // The reach is the largest of the frame. Bins at either end that share no row with the warp's here are
    // left out; their products are zero.
    const int32_t* const rows = args.psf.first_row + static_cast<int64_t>(fibre + apart) * shape.bins;
    const auto left_out = [&](int other) {
      const bool meets = other < (apart == 0 ? first + kBins : begin) || other >= end ||
                         (rows[other] < own.extent.end && rows[other] + shape.spot_rows() > own.extent.first);
      const unsigned met = __ballot_sync(kAllLanes, meets);
      return met == 0 ? kWarp : __ffs(met) - 1;
    };
    const auto clear = [&](int from, int to) {
      for (int other = from; other < to; ++other)
        if (lane < kBins) products.Keep(first + lane, other, 0.0);
    };
    const int from = begin + left_out(begin + lane), to = max(end - left_out(end - 1 - lane), from);
    clear(begin, from);
    clear(to, end);
    for (int other_first = from; other_first < to; other_first += kOthers) {
      const OtherBins others = {fibre + apart, other_first, to};
      Sums sums;
      if (apart == 0 && other_first == first) {
        PairSum<true>(args, own, others, slots).Run(&sums);
        KeepOwn(args, local, first, sums);
      } else {
        PairSum<false>(args, own, others, slots).Run(&sums);
      }
      products.Keep(first, other_first, sums);
    }
  }
}

constexpr int kPriorThreads = 256;

__global__ void __launch_bounds__(kPriorThreads) MostWeight(NormalArgs args) {
  __shared__ double most[kPriorThreads / kWarp];
  const int bins = args.normal.bins;
  const double* const weight = args.normal.weight + static_cast<int64_t>(blockIdx.x) * bins;
  double own = 0;
  for (int j = threadIdx.x; j < bins; j += kPriorThreads) own = fmax(own, weight[j]);
  own = WarpMost(own);
  if (threadIdx.x % kWarp == 0) most[threadIdx.x / kWarp] = own;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int k = 1; k < kPriorThreads / kWarp; ++k) own = fmax(own, most[k]);
  args.normal.most_weight[blockIdx.x] = own;
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
  const int bundle = args.fibres.BundleOf(fibre);
  double most = 0;
  for (int i = args.fibres.FirstOf(bundle); i < args.fibres.EndOf(bundle); ++i)
    most = fmax(most, normal.most_weight[i]);
  const double floor = kMinWeight * most;
  const int64_t at = static_cast<int64_t>(fibre) * normal.bins + bin;
  diagonal += Prior(normal.weight[at], floor, args.regularize, args.psf.shape.fine_grid, diagonal);
  normal.weak[at] = IsWeak(normal.weight[at], floor);
}

}  // namespace

cudaError_t ComputeNormal(const NormalArgs& args, cudaStream_t stream) {
  const NormalArrays& normal = args.normal;
  const BlockPlan& blocks = normal.blocks;
  const int bins = normal.bins, fibres = args.fibres.fibres;
  const dim3 grid((bins + kBins - 1) / kBins, (fibres + kWarps - 1) / kWarps);
  const dim3 all((bins + kPriorThreads - 1) / kPriorThreads, blocks.count * blocks.fibres);
  cudaError_t cleared = cudaSuccess;
  if (blocks.fibres > 1) {  // blocks have entries that belong to no two overlapping fibres
    const size_t row = sizeof(double) * blocks.count * blocks.size;
    cleared = FirstError(
        {cudaMemsetAsync(normal.own.values, 0, row * normal.own.diagonals, stream),
         cudaMemsetAsync(normal.between, 0, row * normal.later_blocks * (2 * blocks.reach + 1), stream)});
  }
  return FirstError({cleared, Launch(Products, grid, kWarps * kWarp, 0, stream, args),
                     Launch(MostWeight, fibres, kPriorThreads, 0, stream, args),
                     Launch(AddPrior, all, kPriorThreads, 0, stream, args)});
}

}  // namespace spexd::cuda
