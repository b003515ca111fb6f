// Stage "resolution": Q = P^(1/2) of each fibre as far as it is reported, by poles (core/extract/pole_plan.h):
// for each one a banded factorisation of P + shift, two solves and the inverse near the diagonal.
//
// Usual bands are so narrow that a thread keeps the window of one recurrence in registers; 8 poles of a fibre
// lie side by side in lanes, 4 fibres in a warp. Beside holes bands are wide, and a warp takes one recurrence,
// with its columns in device memory.
//
// Floor for a frame (500 fibres, 16 poles, band of 12): factors written and read, 2 x 2.3 GB, 1.1 ms; 290
// multiply-adds a bin and pole, 11 Gflop, 0.33 ms.
#include "core/extract/formulas.h"
#include "core/extract/pole_formula.h"
#include "core/model/frame.h"
#include "cuda/kernels/chunk.cuh"
#include "cuda/kernels/fibre.cuh"
#include "cuda/kernels/kernels.h"

namespace spexd::cuda {
namespace {

constexpr int kThreads = 128;
// Blocks that loop over the recurrences, at most: they have a scratch each.
constexpr int kMostNarrowBlocks = 1024;
constexpr int kMostWideBlocks = 128;
constexpr int kMostNarrow = 14;
constexpr int kPoleBlocks = kMaxPoles / kPoleBlock;

// ---- The poles of each fibre

__global__ void __launch_bounds__(kThreads) BoundAndPlan(JobView job) {
  __shared__ double most_p[kThreads / kWarp], most_c[kThreads / kWarp];
  __shared__ double bounds[2];
  const int fibre = blockIdx.x, bins = job.psf.shape.bins;
  const int64_t at = static_cast<int64_t>(fibre) * (job.most_width + 1) * bins;
  const double *p = job.precision + at, *c = job.covariance + at;
  const int32_t* widths = job.widths + static_cast<int64_t>(GroupOf(job, fibre)) * bins;
  double own_p = 0, own_c = 0;
  for (int j = threadIdx.x; j < bins; j += kThreads) {
    double row_p = fabs(p[j]), row_c = c[j];
    for (int k = 1; k <= widths[j]; ++k) {
      row_p += fabs(p[static_cast<int64_t>(k) * bins + j]);
      row_c += fabs(c[static_cast<int64_t>(k) * bins + j]);
    }
    for (int k = 1; k <= j && widths[j - k] >= k; ++k) {
      row_p += fabs(p[static_cast<int64_t>(k) * bins + j - k]);
      row_c += fabs(c[static_cast<int64_t>(k) * bins + j - k]);
    }
    own_p = fmax(own_p, row_p);
    own_c = fmax(own_c, row_c);
  }
  for (int mask = kWarp / 2; mask > 0; mask /= 2) {
    own_p = fmax(own_p, ShuffleXor(own_p, mask));
    own_c = fmax(own_c, ShuffleXor(own_c, mask));
  }
  if (threadIdx.x % kWarp == 0) {
    most_p[threadIdx.x / kWarp] = own_p;
    most_c[threadIdx.x / kWarp] = own_c;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int k = 1; k < kThreads / kWarp; ++k) {
      own_p = fmax(own_p, most_p[k]);
      own_c = fmax(own_c, most_c[k]);
    }
    bounds[0] = fmin(0.25 / own_c, own_p);
    bounds[1] = own_p;
  }
  __syncthreads();
  const int poles = PolesNeeded(bounds[0], bounds[1]);
  const PoleFormula formula(bounds[0], bounds[1], poles);
  double* shift = job.pole_shift + fibre * kMaxPoles;
  double* weight = job.pole_weight + fibre * kMaxPoles;
  if (threadIdx.x < poles) {
    const Pole pole = formula.At(threadIdx.x);
    shift[threadIdx.x] = pole.shift;
    weight[threadIdx.x] = pole.weight;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    double total = 0;
    for (int k = 0; k < poles; ++k) {
      total += weight[k];
      weight[k] *= shift[k];
    }
    job.pole_total[fibre] = total;
    job.pole_blocks[fibre] = poles / kPoleBlock;
  }
}

// The last bin whose column reaches beyond its neighbours' usual width decides which kernel takes a chunk.
__device__ bool IsWide(const JobView& job, int group, const ChunkBins& bins, int narrow, int lane) {
  const int32_t* widths = job.widths + static_cast<int64_t>(group) * job.psf.shape.bins;
  bool wide = false;
  for (int j = bins.first + lane; j < bins.end; j += kWarp) wide |= widths[j] > narrow;
  return __any_sync(kAllLanes, wide);
}

__global__ void __launch_bounds__(kWarp) FlagWide(JobView job, int narrow) {
  const bool wide = IsWide(job, blockIdx.y, ChunkBins(job, blockIdx.x), narrow, threadIdx.x);
  if (threadIdx.x == 0) job.wide[blockIdx.y * job.chunks + blockIdx.x] = wide;
}

__device__ double* SumsAt(const JobView& job, int pole_block, int fibre, int bin) {
  return job.pole_sums +
         ((static_cast<int64_t>(pole_block) * job.fibres + fibre) * job.psf.shape.bins + bin) * kPoleSums;
}

// ---- Narrow bands

// The sum over 8 neighbouring lanes of 8 values each; lane l returns that of value l % 8.
__device__ __forceinline__ double SumOverPoles(double (&value)[kPoleSums], int lane) {
#pragma unroll
  for (int width = kPoleSums / 2; width > 0; width /= 2) {
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const bool high = (lane & width) != 0;
      const double keep = high ? value[k + width] : value[k], give = high ? value[k] : value[k + width];
      value[k] = keep + ShuffleXor(give, width);
    }
  }
  return value[0];
}

constexpr int kStages = 4;  // bins on their way from device memory

// What a lane keeps of a bin: 1 / D, the column of D L^T, and both right-hand sides.
template <int kWidth>
inline constexpr int kKept = kWidth + 3;

template <int kWidth>
__device__ __forceinline__ void FactorNarrow(const JobView& job, int fibre, const ChunkBins& bins, double shift,
                                             double* kept) {
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
  const auto fetch = [&](int j) {
    if (j >= 0) {
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
  for (int j = count - 1; j >= 0; --j) {
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
      const double sum = SumOverPoles(value, lane);
      if (sums != nullptr && bin >= bins.core) sums[static_cast<int64_t>(bin) * kPoleSums + lane % kPoleSums] = sum;
    }
  }
}

__host__ __device__ inline int NarrowTasks(int chunks, int fibres) {
  return kPoleBlocks * chunks * ((fibres + 3) / 4);
}

template <int kWidth>
__global__ void __launch_bounds__(kWarp, 8) Narrow(JobView job) {
  static_assert(kWidth >= kResolutionHalfWidth);
  extern __shared__ double shared[];
  const int lane = threadIdx.x;
  const int quads = (job.fibres + 3) / 4;
  double* kept = job.pole_scratch + static_cast<int64_t>(blockIdx.x) * job.extended_bins * kKept<kWidth> * kWarp + lane;
  for (int task = blockIdx.x; task < NarrowTasks(job.chunks, job.fibres); task += gridDim.x) {
    const int quad = task % quads, chunk = task / quads % job.chunks, pole_block = task / quads / job.chunks;
    const int fibre = min(quad * 4 + lane / kPoleBlock, job.fibres - 1);
    const bool active = quad * 4 + lane / kPoleBlock < job.fibres && pole_block < job.pole_blocks[fibre] &&
                        job.wide[GroupOf(job, fibre) * job.chunks + chunk] == 0;
    if (!__any_sync(kAllLanes, active)) continue;
    const ChunkBins bins(job, chunk);
    const int pole = fibre * kMaxPoles + pole_block * kPoleBlock + lane % kPoleBlock;
    // Lanes without a task of their own compute something harmless.
    const double shift = active ? job.pole_shift[pole] : 1, weight = active ? job.pole_weight[pole] : 0;
    FactorNarrow<kWidth>(job, fibre, bins, shift, kept);
    InvertNarrow<kWidth>(job, fibre, bins, weight, kept, shared + lane,
                         active ? SumsAt(job, pole_block, fibre, 0) : nullptr);
  }
}

// ---- Wide bands: a warp to a pole, eight poles to a block. A column of the factor, later of the inverse,
// has `stride` entries.

struct WideScratch {
  int64_t columns, reciprocal, solution, sums, total;
  __host__ __device__ WideScratch(int most_width, int extended_bins) {
    columns = 0;
    reciprocal = int64_t{extended_bins} * (most_width + 1);
    solution = reciprocal + extended_bins;
    sums = solution + 2 * int64_t{extended_bins};
    total = sums + int64_t{kPoleSums} * extended_bins;
  }
};

__host__ __device__ inline int WideTasks(int chunks, int fibres) { return kPoleBlocks * chunks * fibres; }

// One recurrence by one warp. l: room for a column. Sums go to scratch.
__device__ void SolveWide(const JobView& job, int fibre, int group, const ChunkBins& bins, double shift,
                          double weight, double* own, const WideScratch& at, double* l) {
  const int lane = threadIdx.x % kWarp, stride = job.most_width + 1, count = bins.count();
  const int64_t all = job.psf.shape.bins;
  const double* p = job.precision + fibre * stride * all + bins.first;
  const double* flux = job.flux + fibre * all + bins.first;
  const int32_t* widths = job.widths + group * all + bins.first;
  double *columns = own + at.columns, *reciprocal = own + at.reciprocal, *x = own + at.solution;
  const auto width_of = [&](int j) { return min(widths[j], count - 1 - j); };

  int earliest = 0;  // the first earlier column whose band reaches this one
  for (int j = 0; j < count; ++j) {
    while (earliest + width_of(earliest) < j) ++earliest;
    const int width = width_of(j);
    double* column = columns + static_cast<int64_t>(j) * stride;
    double pivot = 0;
    for (int k = lane; k <= width; k += kWarp) {
      double sum = p[k * all + j] + (k == 0 ? shift : 0.0);
      for (int i = earliest; i < j; ++i) {
        const double* from = columns + static_cast<int64_t>(i) * stride + (j - i);
        if (k <= width_of(i) - (j - i)) sum = fma(-from[k] * from[0], reciprocal[i], sum);
      }
      column[k] = sum;
      if (k == 0) pivot = sum;
    }
    double ones = 0, fluxes = 0;
    for (int i = earliest + lane; i < j; i += kWarp) {
      const double factor = columns[static_cast<int64_t>(i) * stride + (j - i)] * reciprocal[i];
      ones = fma(-factor, x[2 * i], ones);
      fluxes = fma(-factor, x[2 * i + 1], fluxes);
    }
    ones = WarpSum(ones);
    fluxes = WarpSum(fluxes);
    if (lane == 0) {
      reciprocal[j] = 1 / fmax(pivot, shift);
      x[2 * j] = 1 + ones;
      x[2 * j + 1] = flux[j] + fluxes;
    }
    __syncwarp();
  }

  for (int j = count - 1; j >= 0; --j) {
    const int width = width_of(j);
    double* column = columns + static_cast<int64_t>(j) * stride;
    const double own_reciprocal = reciprocal[j];
    double ones = 0, fluxes = 0;
    for (int k = 1 + lane; k <= width; k += kWarp) {
      ones = fma(-column[k], x[2 * (j + k)], ones);
      fluxes = fma(-column[k], x[2 * (j + k) + 1], fluxes);
      l[k] = column[k] * own_reciprocal;
    }
    ones = (x[2 * j] + WarpSum(ones)) * own_reciprocal;
    fluxes = (x[2 * j + 1] + WarpSum(fluxes)) * own_reciprocal;
    __syncwarp();
    double diagonal = 0;
    for (int r = 1 + lane; r <= width; r += kWarp) {
      double sum = 0;
      for (int t = 1; t <= width; ++t) {
        const int low = min(r, t), high = max(r, t);
        sum = fma(-columns[static_cast<int64_t>(j + low) * stride + (high - low)], l[t], sum);
      }
      diagonal = fma(-sum, l[r], diagonal);
      column[r] = sum;
    }
    diagonal = own_reciprocal + WarpSum(diagonal);
    if (lane == 0) {
      column[0] = diagonal;
      x[2 * j] = ones;
      x[2 * j + 1] = fluxes;
    }
    __syncwarp();
    if (lane < kPoleSums) {
      const double value = lane < kPoleSums - 2 ? (lane <= width ? column[lane] : 0.0)
                           : lane == kPoleSums - 2 ? ones
                                                   : fluxes;
      own[at.sums + static_cast<int64_t>(j) * kPoleSums + lane] = weight * value;
    }
    __syncwarp();
  }
}

__global__ void __launch_bounds__(kPoleBlock* kWarp) Wide(JobView job) {
  extern __shared__ double shared[];
  const int warp = threadIdx.x / kWarp;
  const WideScratch at(job.most_width, job.extended_bins);
  double* block = job.pole_scratch + static_cast<int64_t>(blockIdx.x) * kPoleBlock * at.total;
  for (int task = blockIdx.x; task < WideTasks(job.chunks, job.fibres); task += gridDim.x) {
    const int fibre = task % job.fibres, chunk = task / job.fibres % job.chunks,
              pole_block = task / job.fibres / job.chunks;
    const int group = GroupOf(job, fibre);
    if (pole_block >= job.pole_blocks[fibre] || job.wide[group * job.chunks + chunk] == 0) continue;
    const ChunkBins bins(job, chunk);
    const int pole = fibre * kMaxPoles + pole_block * kPoleBlock + warp;
    SolveWide(job, fibre, group, bins, job.pole_shift[pole], job.pole_weight[pole], block + warp * at.total, at,
              shared + warp * (job.most_width + 1));
    __syncthreads();
    double* sums = SumsAt(job, pole_block, fibre, bins.first);
    for (int i = threadIdx.x; i < bins.count() * kPoleSums; i += blockDim.x) {
      const int bin = bins.first + i / kPoleSums;
      if (bin < bins.core || bin >= bins.core_end) continue;
      double sum = 0;
      for (int k = 0; k < kPoleBlock; ++k) sum += block[k * at.total + at.sums + i];
      sums[i] = sum;
    }
    __syncthreads();
  }
}

// ---- The result

// Adds the pole blocks up: x / (x + s) = 1 - s / (x + s). Into block 0: Q's diagonals, Q 1 and Q f.
__global__ void __launch_bounds__(kThreads) AddBlocks(JobView job) {
  const int64_t count = static_cast<int64_t>(job.psf.shape.bins) * kPoleSums;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int fibre = blockIdx.y;
  if (i >= count) return;
  double sum = 0;
  for (int b = 0; b < job.pole_blocks[fibre]; ++b) sum += SumsAt(job, b, fibre, 0)[i];
  const int bin = static_cast<int>(i / kPoleSums), which = static_cast<int>(i % kPoleSums);
  const double total = job.pole_total[fibre];
  double of = 0;
  if (which == 0 || which == kPoleSums - 2) of = total;
  if (which == kPoleSums - 1) of = total * job.flux[static_cast<int64_t>(fibre) * job.psf.shape.bins + bin];
  SumsAt(job, 0, fibre, 0)[i] = of - sum;
}

template <typename Real>
__device__ Real Rounded(double value) {
  if constexpr (sizeof(Real) == sizeof(float)) return RoundToFloat(value);
  return value;
}

template <typename Real>
__global__ void __launch_bounds__(kThreads) Report(JobView job) {
  const PsfShape& shape = job.psf.shape;
  const int out_bins = shape.output_bins(), j = blockIdx.x * kThreads + threadIdx.x, fibre = blockIdx.y;
  if (j >= out_bins) return;
  const double* root = SumsAt(job, 0, fibre, j + shape.pad);
  const double s = root[kPoleSums - 2], width = shape.step;
  const int64_t out = static_cast<int64_t>(fibre) * out_bins + j;
  static_cast<Real*>(job.out_flux)[out] = Rounded<Real>(root[kPoleSums - 1] / s / width);
  static_cast<Real*>(job.out_ivar)[out] = Rounded<Real>(s * s * width * width);
  Real* resolution = static_cast<Real*>(job.out_resolution) +
                     static_cast<int64_t>(fibre) * kResolutionDiagonals * out_bins + j;
  for (int d = -kResolutionHalfWidth; d <= kResolutionHalfWidth; ++d) {
    // R[j + d, j]; pads reach further than d.
    const double value = root[min(d, 0) * kPoleSums + abs(d)] / root[d * kPoleSums + kPoleSums - 2];
    resolution[static_cast<int64_t>(d + kResolutionHalfWidth) * out_bins] =
        Rounded<Real>(isfinite(value) ? value : (d == 0 ? 1.0 : 0.0));
  }
}

int NarrowBlocks(int chunks, int fibres) { return min(NarrowTasks(chunks, fibres), kMostNarrowBlocks); }
int WideBlocks(int chunks, int fibres) { return min(WideTasks(chunks, fibres), kMostWideBlocks); }

template <int kWidth>
cudaError_t LaunchNarrow(const JobView& job, cudaStream_t stream) {
  constexpr int kBytes = kStages * kKept<kWidth> * kWarp * sizeof(double);
  Narrow<kWidth><<<NarrowBlocks(job.chunks, job.fibres), kWarp, kBytes, stream>>>(job);
  return cudaGetLastError();
}

}  // namespace

int64_t SquareRootScratch(const ExtractPlan& plan, int fibres) {
  const int64_t narrow = int64_t{NarrowBlocks(plan.chunks, fibres)} * plan.extended_bins * (kMostNarrow + 3) * kWarp;
  const int64_t wide = int64_t{WideBlocks(plan.chunks, fibres)} * kPoleBlock *
                       WideScratch(plan.most_width, plan.extended_bins).total;
  return plan.most_usual_width <= kMostNarrow && narrow > wide ? narrow : wide;
}

cudaError_t ConfigureResolution() { return cudaSuccess; }

cudaError_t PlanPoles(const JobView& job, cudaStream_t stream) {
  BoundAndPlan<<<job.fibres, kThreads, 0, stream>>>(job);
  return cudaGetLastError();
}

cudaError_t SquareRoot(const JobView& job, cudaStream_t stream) {
  const int usual = job.usual_width;
  FlagWide<<<dim3(job.chunks, job.groups), kWarp, 0, stream>>>(job, usual <= kMostNarrow ? usual : -1);
  cudaError_t error = cudaSuccess;
  if (usual <= 8) {
    error = LaunchNarrow<8>(job, stream);
  } else if (usual <= 10) {
    error = LaunchNarrow<10>(job, stream);
  } else if (usual == 11) {
    error = LaunchNarrow<11>(job, stream);
  } else if (usual == 12) {
    error = LaunchNarrow<12>(job, stream);
  } else if (usual == 13) {
    error = LaunchNarrow<13>(job, stream);
  } else if (usual == 14) {
    error = LaunchNarrow<14>(job, stream);
  }
  if (error != cudaSuccess) return error;
  const size_t bytes = kPoleBlock * (job.most_width + 1) * sizeof(double);
  Wide<<<WideBlocks(job.chunks, job.fibres), kPoleBlock * kWarp, bytes, stream>>>(job);
  return cudaGetLastError();
}

cudaError_t ReportSpectra(const JobView& job, cudaStream_t stream) {
  const int64_t count = static_cast<int64_t>(job.psf.shape.bins) * kPoleSums;
  AddBlocks<<<dim3(static_cast<unsigned>((count + kThreads - 1) / kThreads), job.fibres), kThreads, 0, stream>>>(job);
  const dim3 grid((job.psf.shape.output_bins() + kThreads - 1) / kThreads, job.fibres);
  if (job.float32) {
    Report<float><<<grid, kThreads, 0, stream>>>(job);
  } else {
    Report<double><<<grid, kThreads, 0, stream>>>(job);
  }
  return cudaGetLastError();
}

}  // namespace spexd::cuda
