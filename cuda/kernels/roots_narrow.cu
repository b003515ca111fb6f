// Square roots of usual bands, so narrow that a thread keeps the window of one recurrence in registers: 8
// poles of a fibre lie side by side in lanes, 4 fibres in a warp.
//
// Floor for a frame (500 fibres, 16 poles, band of 12): 10.6 Gflop, 0.32 ms. As laid out here the factors go
// through memory, 2 x 2.3 GB, 1.1 ms: no cache holds them.
#include "cuda/kernels/device.cuh"
#include "cuda/kernels/fibre.cuh"
#include "cuda/kernels/roots.cuh"

namespace spexd::cuda {
namespace {

constexpr int kMostBlocks = 1024;  // that loop over the recurrences: they have a scratch each

constexpr int kStages = 4;  // bins on their way from device memory

// What a lane keeps of a bin: 1 / D, the column of D L^T, and both right-hand sides.
template <int kWidth>
inline constexpr int kKept = kWidth + 3;

template <int kWidth>
__device__ __forceinline__ void FactorNarrow(const JobView& job, int fibre, const ChunkBins& bins,
                                             double shift, double* kept) {
  const int64_t all = job.psf.shape.bins;
  const double* p = job.precision + fibre * (job.most_width + 1) * all + bins.first;
  const double* flux = job.flux + fibre * all + bins.first;
  // What earlier columns take off those to come; entry (a, b) is of row j + a, column j + b.
  double s[kWidth][kWidth], ones[kWidth], fluxes[kWidth];
#pragma unroll
  for (int a = 0; a < kWidth; ++a) {
    ones[a] = fluxes[a] = 0;
#pragma unroll
    for (int b = 0; b <= a; ++b) s[a][b] = 0;
  }
  for (int j = 0; j < bins.count(); ++j, ++p, ++flux, kept += kKept<kWidth> * kWarp) {
    double c[kWidth + 1];
#pragma unroll
    for (int k = 0; k <= kWidth; ++k) c[k] = p[k * all] + (k < kWidth ? s[k][0] : 0.0);
    // The shift bounds the pivot from below, whatever rounding did.
    const double reciprocal = Reciprocal(fmax(c[0] + shift, shift));
    const double z_ones = 1 + ones[0], z_flux = *flux + fluxes[0];
    kept[0] = reciprocal;
#pragma unroll
    for (int k = 1; k <= kWidth; ++k) kept[k * kWarp] = c[k];
    kept[(kWidth + 1) * kWarp] = z_ones;
    kept[(kWidth + 2) * kWarp] = z_flux;
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

template <int kWidth>
__device__ __forceinline__ void InvertNarrow(const JobView& job, int fibre, const ChunkBins& bins,
                                             double weight, const double* kept, double* stage, double* sums) {
  const int lane = threadIdx.x % kWarp;
  constexpr int kStride = kKept<kWidth> * kWarp;
  const int end = bins.core - bins.first;
  const auto fetch = [&](int j) {
    if (j >= end) {
      double* to = stage + j % kStages * kStride;
      const double* from = kept + static_cast<int64_t>(j) * kStride;
#pragma unroll
      for (int k = 0; k < kKept<kWidth>; ++k) CopyAsync8(to + k * kWarp, from + k * kWarp);
    }
    CopyAsyncCommit();
  };
  // The inverse's entries (j + 1 + a, j + 1 + b), and the solutions behind j.
  double v[kWidth][kWidth], ones[kWidth], fluxes[kWidth];
#pragma unroll
  for (int a = 0; a < kWidth; ++a) {
    ones[a] = fluxes[a] = 0;
#pragma unroll
    for (int b = 0; b <= a; ++b) v[a][b] = 0;
  }
  const int count = bins.count();
  for (int k = 0; k < kStages - 1; ++k) fetch(count - 1 - k);
  for (int j = count - 1; j >= end; --j) {
    CopyAsyncWait<kStages - 2>();
    const double* from = stage + j % kStages * kStride;
    const double reciprocal = from[0];
    double l[kWidth + 1], x_ones = from[(kWidth + 1) * kWarp], x_flux = from[(kWidth + 2) * kWarp];
#pragma unroll
    for (int k = 1; k <= kWidth; ++k) {
      const double c = from[k * kWarp];
      x_ones = fma(-c, ones[k - 1], x_ones);
      x_flux = fma(-c, fluxes[k - 1], x_flux);
      l[k] = c * reciprocal;
    }
    fetch(j - kStages + 1);
    x_ones *= reciprocal;
    x_flux *= reciprocal;
    double column[kWidth + 1];
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
    const int bin = bins.first + j;
    if (bin < bins.core_end) {
      double value[kPoleSums];
#pragma unroll
      for (int k = 0; k < kPoleSums - 2; ++k) value[k] = weight * column[k];
      value[kPoleSums - 2] = weight * x_ones;
      value[kPoleSums - 1] = weight * x_flux;
      const double sum = SumEach(value);
      if (sums != nullptr) sums[static_cast<int64_t>(bin) * kPoleSums + lane % kPoleSums] = sum;
    }
  }
}

__host__ __device__ inline int NarrowTasks(int chunks, int fibres) {
  return kPoleBlocks * chunks * ((fibres + 3) / 4);
}

template <int kWidth>
__global__ void __launch_bounds__(kWarp, 8) Narrow(JobView job) {
  static_assert(kWidth >= kResolutionHalfWidth);
  double* const shared = DynamicShared();
  const int lane = threadIdx.x;
  const int quads = (job.fibres + 3) / 4;
  double* kept =
      job.pole_scratch + static_cast<int64_t>(blockIdx.x) * job.roots.extended * kKept<kWidth> * kWarp + lane;
  for (int task = blockIdx.x; task < NarrowTasks(job.roots.count, job.fibres); task += gridDim.x) {
    const int quad = task % quads, chunk = task / quads % job.roots.count,
              pole_block = task / quads / job.roots.count;
    const int fibre = min(quad * 4 + lane / kPoleBlock, job.fibres - 1);
    const bool active = quad * 4 + lane / kPoleBlock < job.fibres && pole_block < job.pole_blocks[fibre] &&
                        job.wide[GroupOf(job, fibre) * job.roots.count + chunk] <= job.usual_width;
    if (!__any_sync(kAllLanes, active)) continue;
    const ChunkBins bins(job.roots, job.psf.shape.bins, chunk);
    const int pole = fibre * kMaxPoles + pole_block * kPoleBlock + lane % kPoleBlock;
    // Lanes without a task of their own compute something harmless.
    const double shift = active ? job.pole_shift[pole] : 1, weight = active ? job.pole_weight[pole] : 0;
    FactorNarrow<kWidth>(job, fibre, bins, shift, kept);
    InvertNarrow<kWidth>(job, fibre, bins, weight, kept, shared + lane,
                         active ? SumsAt(job, pole_block, fibre, 0) : nullptr);
  }
}

int64_t ScratchOfBlock(const ChunkPlan& roots) {
  return int64_t{roots.extended} * kKept<kMostNarrow> * kWarp;
}
int Blocks(const ChunkPlan& roots, int fibres) {
  return RootBlocks(NarrowTasks(roots.count, fibres), kMostBlocks, ScratchOfBlock(roots));
}

template <int kWidth>
cudaError_t LaunchNarrow(const JobView& job, cudaStream_t stream) {
  constexpr int kBytes = kStages * kKept<kWidth> * kWarp * sizeof(double);
  return Launch(Narrow<kWidth>, Blocks(job.roots, job.fibres), kWarp, kBytes, stream, job);
}

}  // namespace

int64_t NarrowRootScratch(const RootShape& shape) {
  if (shape.usual_width > kMostNarrow) return 0;
  return Blocks(shape.chunks, shape.fibres) * ScratchOfBlock(shape.chunks);
}

cudaError_t NarrowRoots(const JobView& job, cudaStream_t stream) {
  switch (NarrowWidth(job.usual_width)) {
    case -1:
      return cudaSuccess;
    case 14:
      return LaunchNarrow<14>(job, stream);
    case 13:
      return LaunchNarrow<13>(job, stream);
    case 12:
      return LaunchNarrow<12>(job, stream);
    case 11:
      return LaunchNarrow<11>(job, stream);
    case 10:
    case 9:
      return LaunchNarrow<10>(job, stream);
    default:
      return LaunchNarrow<kLeastRootWidth>(job, stream);
  }
}

}  // namespace spexd::cuda
