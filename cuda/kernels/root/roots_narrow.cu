// Square roots of bands of usual width, so narrow that a thread keeps the window of one recurrence in
// registers. A warp has 4 fibres, with 8 poles of each side by side in lanes.
//
// Floor for a frame (500 fibres, 16 poles, band of 12): 10.6 Gflop, 0.32 ms. In this implementation the
// factors go through memory, 2 x 2.3 GB, 1.1 ms: no cache holds them.
#include <algorithm>

#include "cuda/kernels/root/roots.cuh"

namespace spexd::cuda {
namespace {

// Maximum number of blocks. Each takes recurrences until none is left, and has its own scratch. This is four
// for each multiprocessor of a large device: with other kernels beside them, more are no faster.
constexpr int kMaxBlocks = 528;
constexpr int64_t kMaxBytes = int64_t{5} << 28;
constexpr int kFibres = kNarrowFibres;

constexpr int kStages = 4;  // bins being fetched from device memory where factors are read back
constexpr int kRows = 8;    // bins being fetched where P is read

constexpr int kWidth = kMaxNarrow;
static_assert(kWidth >= kResolutionHalfWidth && kWidth % 2 != 0);
// Values that a lane keeps of a bin, in pairs: 1 / D, the column of D L^T, and both right-hand sides.
constexpr int kKept = kWidth + 3;

// Rows of P and fluxes of a warp's fibres that are being fetched: a ring of bins, each [fibre, diagonal or
// flux].
struct Rows {
  static constexpr int kOfFibre = kWidth + 3, kSize = kOfFibre * kFibres;
  double* ring;
  const double *p, *flux;  // of the lane's fibre, from the first bin on
  int64_t stride;          // from diagonal to diagonal
  int count;

  __device__ void Fetch(int j) const {
    const int lane = threadIdx.x % kPoleGroup;
    double* const to = At(j);
    if (j < count) {
      for (int k = lane; k <= kWidth; k += kPoleGroup) CopyAsync8(to + k, p + k * stride + j);
      if (lane == 0) CopyAsync8(to + kWidth + 1, flux + j);
    }
    CopyAsyncCommit();
  }
  // The row of bin j, which was fetched kRows - 1 calls ago.
  __device__ __forceinline__ void Take(int j, double (&row)[kOfFibre]) const {
    CopyAsyncWait<kRows - 2>();
    __syncwarp();
    Fetch(j + kRows - 1);
    const double2* const from = reinterpret_cast<const double2*>(At(j));
#pragma unroll
    for (int k = 0; k < kOfFibre; k += 2) {
      const double2 two = from[k / 2];
      row[k] = two.x;
      row[k + 1] = two.y;
    }
  }
  __device__ double* At(int j) const {
    return ring + j % kRows * kSize + static_cast<int>(threadIdx.x) % kWarp / kPoleGroup * kOfFibre;
  }
};

__device__ __forceinline__ void FactorNarrow(const RootArgs& args, int fibre, const ChunkRange& bins,
                                             double shift, double* kept, double* ring) {
  const int64_t all = args.precision.size;
  const Rows rows = {ring, args.precision.values + fibre * args.precision.diagonals * all + bins.first,
                     args.flux + fibre * all + bins.first, all, bins.count()};
  for (int j = 0; j < kRows - 1; ++j) rows.Fetch(j);
  // Contributions of earlier columns, to be subtracted from later ones; entry (a, b) is row j + a, column j +
  // b.
  double s[kWidth][kWidth], ones[kWidth], fluxes[kWidth];
#pragma unroll
  for (int a = 0; a < kWidth; ++a) {
    ones[a] = fluxes[a] = 0;
#pragma unroll
    for (int b = 0; b <= a; ++b) s[a][b] = 0;
  }
  for (int j = 0; j < bins.count(); ++j) {
    double row[Rows::kOfFibre], c[kWidth + 1];
    rows.Take(j, row);
#pragma unroll
    for (int k = 0; k <= kWidth; ++k) c[k] = row[k] + (k < kWidth ? s[k][0] : 0.0);
    // The shift is a lower bound of the pivot, whatever the rounding errors.
    const double reciprocal = Reciprocal(fmax(c[0] + shift, shift));
    const double z_ones = 1 + ones[0], z_flux = row[kWidth + 1] + fluxes[0];
    if (j >= bins.core - bins.first) {  // a halo before the core is not read again
      auto* const to = reinterpret_cast<double2*>(kept);
      to[0] = {reciprocal, c[1]};
#pragma unroll
      for (int k = 2; k < kWidth; k += 2) to[k / 2 * kWarp] = {c[k], c[k + 1]};
      to[(kWidth + 1) / 2 * kWarp] = {z_ones, z_flux};
      kept += kKept * kWarp;
    }
#pragma unroll
    for (int a = 1; a <= kWidth; ++a) {
      const double l = -c[a] * reciprocal;
      ones[a - 1] = fma(l, z_ones, a < kWidth ? ones[a] : 0.0);
      fluxes[a - 1] = fma(l, z_flux, a < kWidth ? fluxes[a] : 0.0);
#pragma unroll
      for (int b = 1; b <= a; ++b) s[a - 1][b - 1] = fma(l, c[b], a < kWidth ? s[a][b] : 0.0);
    }
  }
}

// Bins of a lane's factor that are being read back: a ring, each bin as it was kept.
struct KeptBins {
  static constexpr int kStride = kKept * kWarp;
  const double* kept;
  double* ring;
  int first;

  __device__ __forceinline__ void Fetch(int j) const {
    if (j >= first) {
      double* to = At(j);
      const double* from = kept + static_cast<int64_t>(j - first) * kStride;
#pragma unroll
      for (int k = 0; k < kKept; k += 2) CopyAsync16(to + k * kWarp, from + k * kWarp);
    }
    CopyAsyncCommit();
  }
  __device__ double* At(int j) const { return ring + j % kStages * kStride; }
  // Values 2 pair and 2 pair + 1 of bin j.
  __device__ double2 Pair(int j, int pair) const {
    return reinterpret_cast<const double2*>(At(j))[pair * kWarp];
  }
};

// The inverse's entries (j + 1 + a, j + 1 + b) for b <= a, and the solutions behind bin j.
struct InverseWindow {
  double v[kWidth][kWidth], ones[kWidth], fluxes[kWidth];

  __device__ __forceinline__ void Clear() {
#pragma unroll
    for (int a = 0; a < kWidth; ++a) {
      ones[a] = fluxes[a] = 0;
#pragma unroll
      for (int b = 0; b <= a; ++b) v[a][b] = 0;
    }
  }
  // Computes the inverse's column of the bin before, from the factor's column l and 1 / D.
  __device__ __forceinline__ void Column(double reciprocal, const double (&l)[kWidth + 1],
                                         double (&column)[kWidth + 1]) const {
    column[0] = reciprocal;
#pragma unroll
    for (int r = 1; r <= kWidth; ++r) {
      double even = 0, odd = 0;
#pragma unroll
      for (int t = 1; t <= kWidth; ++t) {
        const double entry = t <= r ? v[r - 1][t - 1] : v[t - 1][r - 1];
        if (t % 2 == 0) {
          even = fma(-entry, l[t], even);
        } else {
          odd = fma(-entry, l[t], odd);
        }
      }
      column[r] = even + odd;
    }
#pragma unroll
    for (int r = 1; r <= kWidth; ++r) column[0] = fma(-column[r], l[r], column[0]);
  }
  __device__ __forceinline__ void Push(const double (&column)[kWidth + 1], double x_ones, double x_flux) {
#pragma unroll
    for (int a = kWidth - 1; a >= 1; --a) {
#pragma unroll
      for (int b = a; b >= 1; --b) v[a][b] = v[a - 1][b - 1];
      v[a][0] = column[a];
      ones[a] = ones[a - 1];
      fluxes[a] = fluxes[a - 1];
    }
    v[0][0] = column[0];
    ones[0] = x_ones;
    fluxes[0] = x_flux;
  }
};

// Destination of a lane's contribution: a fibre's sums over the poles of a slot; null: none. The first group
// of poles begins the sums.
struct PoleShare {
  double weight;
  double* sums;
  bool begins;
};

__device__ __forceinline__ void InvertNarrow(const ChunkRange& bins, const double* kept, double* ring,
                                             const PoleShare& share) {
  const KeptBins factor = {kept, ring, bins.core - bins.first};
  InverseWindow window;
  window.Clear();
  const int count = bins.count();
  for (int k = 0; k < kStages - 1; ++k) factor.Fetch(count - 1 - k);
#pragma unroll 2
  for (int j = count - 1; j >= factor.first; --j) {
    CopyAsyncWait<kStages - 2>();
    const double2 solutions = factor.Pair(j, (kWidth + 1) / 2);
    double c[kWidth + 1], l[kWidth + 1], x_ones = solutions.x, x_flux = solutions.y;
#pragma unroll
    for (int k = 0; k < kWidth; k += 2) {
      const double2 two = factor.Pair(j, k / 2);
      c[k] = two.x;
      c[k + 1] = two.y;
    }
    const double reciprocal = c[0];
#pragma unroll
    for (int k = 1; k <= kWidth; ++k) {
      x_ones = fma(-c[k], window.ones[k - 1], x_ones);
      x_flux = fma(-c[k], window.fluxes[k - 1], x_flux);
      l[k] = c[k] * reciprocal;
    }
    factor.Fetch(j - kStages + 1);
    x_ones *= reciprocal;
    x_flux *= reciprocal;
    double column[kWidth + 1];
    window.Column(reciprocal, l, column);
    window.Push(column, x_ones, x_flux);
    const int bin = bins.first + j;
    if (bin >= bins.core_end) continue;
    double value[kPoleSums];
#pragma unroll
    for (int k = 0; k < kPoleSums - 2; ++k) value[k] = share.weight * column[k];
    value[kPoleSums - 2] = share.weight * x_ones;
    value[kPoleSums - 1] = share.weight * x_flux;
    const double sum = SumEach(value);
    if (share.sums == nullptr) continue;
    double& to = share.sums[static_cast<int64_t>(bin) * kPoleSums + threadIdx.x % kPoleSums];
    to = share.begins ? sum : to + sum;
  }
}

__global__ void __launch_bounds__(kWarp, 8) Narrow(RootArgs args) {
  double* const shared = DynamicShared();
  const int lane = threadIdx.x;
  double* kept = args.resolution.scratch +
                 static_cast<int64_t>(blockIdx.x) * args.chunks.behind() * kKept * kWarp + 2 * lane;
  const int32_t* const tasks = TasksOf(args, kNarrowRoot);
  const int count = args.resolution.task_count[kNarrowRoot];
  while (true) {
    const int first = NextTask(args, kNarrowRoot, kNarrowFibres);
    if (first >= count) return;
    const int number = tasks[first + lane / kPoleGroup];
    const bool active = number >= 0;
    const RootTask task(args, active ? number : tasks[first]);
    const ChunkRange bins(args.chunks, args.precision.size, task.chunk);
    const int rounds = __reduce_max_sync(kAllLanes, task.end - task.group);
    for (int round = 0; round < rounds; ++round) {
      const bool runs = active && task.group + round < task.end;
      const int pole = task.FirstPole(args, task.group + round) + lane % kPoleGroup;
      // Lanes without a task compute harmless values.
      const double shift = runs ? args.resolution.pole_shift[pole] : 1,
                   weight = runs ? args.resolution.pole_weight[pole] : 0;
      FactorNarrow(args, task.fibre, bins, shift, kept, shared);
      CopyAsyncWait<0>();
      __syncwarp();
      InvertNarrow(bins, kept, shared + 2 * lane,
                   {weight, runs ? SumsAt(args, task.slot, task.fibre, 0) : nullptr, round == 0});
      __syncwarp();  // the next fibres' rows overwrite what other lanes have read
    }
  }
}

int64_t ScratchOfBlock(const ChunkPlan& roots) { return int64_t{roots.behind()} * kKept * kWarp; }
int Blocks(const ChunkPlan& roots, int fibres) {
  const int tasks = (RootTasks(roots.count, fibres) + kFibres - 1) / kFibres;
  return RootBlocks(tasks, kMaxBlocks, ScratchOfBlock(roots), kMaxBytes);
}

}  // namespace

int64_t NarrowRootScratch(const RootShape& shape) {
  if (!HasNarrow(shape.usual_width)) return 0;
  return Blocks(shape.chunks, shape.fibres) * ScratchOfBlock(shape.chunks);
}

cudaError_t NarrowRoots(const RootArgs& args, cudaStream_t stream) {
  if (!HasNarrow(args.usual_width)) return cudaSuccess;
  constexpr int kBytes = std::max(kStages * kKept * kWarp, kRows * Rows::kSize) * sizeof(double);
  return Launch(Narrow, Blocks(args.chunks, args.fibres), kWarp, kBytes, stream, args);
}

}  // namespace spexd::cuda
