// Stage "resolution": Q = P^(1/2) of each fibre as far as it is reported, by poles
// (core/extract/pole_plan.h): for each one a banded factorisation of P + shift, two solves and the inverse
// near the diagonal.
//
// Usual bands are so narrow that a thread keeps the window of one recurrence in registers; 8 poles of a fibre
// lie side by side in lanes, 4 fibres in a warp. Where the data ask for wider ones, a warp takes one
// recurrence, with the window in shared memory.
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
constexpr int kMostWideBlocks = 1024;
constexpr int kMiddleWidth = 24;  // bands that are a little wider than usual have a launch of their own
constexpr int kMostShared = 200 * 1024;
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

// The largest width of each chunk, which decides how it is solved.
__global__ void __launch_bounds__(kWarp) FindWidest(JobView job) {
  const ChunkBins bins(job.roots, job.psf.shape.bins, blockIdx.x);
  const int32_t* widths = job.widths + static_cast<int64_t>(blockIdx.y) * job.psf.shape.bins;
  int widest = 0;
  for (int j = bins.first + threadIdx.x; j < bins.end; j += kWarp) widest = max(widest, widths[j]);
  widest = __reduce_max_sync(kAllLanes, widest);
  if (threadIdx.x == 0) job.wide[blockIdx.y * job.roots.count + blockIdx.x] = widest;
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
      if (sums != nullptr && bin >= bins.core)
        sums[static_cast<int64_t>(bin) * kPoleSums + lane % kPoleSums] = sum;
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

// ---- Wide bands: a warp to a pole, eight poles to a block. Columns of the factor lie in device memory, the
// moving window in shared memory where it fits.

__host__ __device__ inline int WideTasks(int chunks, int fibres) { return kPoleBlocks * chunks * fibres; }

// In device memory, of one warp, in doubles.
struct WideScratch {
  int64_t columns, sums, window, total;
  int stride;  // of a column: 1 / D, D L^T below it, and both right-hand sides
  __host__ __device__ WideScratch(int most_width, int extended_bins) {
    stride = most_width + 3;
    columns = 0;
    sums = int64_t{extended_bins} * stride;
    window = sums + int64_t{kPoleSums} * extended_bins;
    total = window + int64_t{most_width + 1} * (most_width + 2);
  }
};

// Of one warp, for bands of up to `width`: a square ring of what a window of bins holds, [slot of a bin][slot
// of another], with a stride that avoids bank conflicts; sums for both right-hand sides; two columns.
struct WideMemory {
  int slots, stride, right, column, column_stride, total;
  __host__ __device__ WideMemory(int width, bool window_inside) {
    slots = width + 1;
    stride = slots | 1;
    right = window_inside ? slots * stride : 0;
    column = right + 2 * slots;
    column_stride = width + 3;
    total = column + 2 * column_stride;
  }
};

// to[i] += factor * from[i] for i < count.
__device__ __forceinline__ void AddScaled(double factor, const double* from, int count, double* to) {
  int i = 0;
#pragma unroll 1
  for (; i + 4 <= count; i += 4) {
    const double t0 = fma(factor, from[i], to[i]), t1 = fma(factor, from[i + 1], to[i + 1]);
    const double t2 = fma(factor, from[i + 2], to[i + 2]), t3 = fma(factor, from[i + 3], to[i + 3]);
    to[i] = t0;
    to[i + 1] = t1;
    to[i + 2] = t2;
    to[i + 3] = t3;
  }
#pragma unroll 1
  for (; i < count; ++i) to[i] = fma(factor, from[i], to[i]);
}

// Adds a[i * stride] * b[i], i < count, to two sums.
__device__ __forceinline__ void AddProducts(const double* a, int stride, const double* b, int count,
                                            double (&sum)[2]) {
  int i = 0;
#pragma unroll 1
  for (; i + 4 <= count; i += 4, a += 4 * stride) {
    const double a0 = a[0], a1 = a[stride], a2 = a[2 * stride], a3 = a[3 * stride];
    sum[0] = fma(a0, b[i], sum[0]);
    sum[1] = fma(a1, b[i + 1], sum[1]);
    sum[0] = fma(a2, b[i + 2], sum[0]);
    sum[1] = fma(a3, b[i + 3], sum[1]);
  }
#pragma unroll 1
  for (; i < count; ++i, a += stride) sum[0] = fma(*a, b[i], sum[0]);
}

// One recurrence by one warp. Sums go to scratch.
__device__ void SolveWide(const JobView& job, int fibre, int group, const ChunkBins& bins, double shift,
                          double weight, double* scratch, const WideScratch& at, double* window,
                          double* shared, const WideMemory& memory) {
  const int lane = threadIdx.x % kWarp, count = bins.count(), slots = memory.slots;
  const int64_t all = job.psf.shape.bins;
  const double* p = job.precision + fibre * (job.most_width + 1) * all + bins.first;
  const double* flux = job.flux + fibre * all + bins.first;
  const int32_t* widths = job.widths + group * all + bins.first;
  double *columns = scratch + at.columns, *right = shared + memory.right, *column = shared + memory.column;
  const auto width_of = [&](int j) { return min(widths[j], count - 1 - j); };
  const auto next = [&](int slot) { return slot + 1 == slots ? 0 : slot + 1; };
  const auto ahead = [&](int slot, int k) { return slot + k >= slots ? slot + k - slots : slot + k; };

  // Forward: the window and `right` hold what earlier columns take off those to come.
  for (int i = lane; i < slots * memory.stride; i += kWarp) window[i] = 0;
  for (int i = lane; i < 2 * slots; i += kWarp) right[i] = 0;
  __syncwarp();
  for (int j = 0, slot = 0; j < count; ++j, slot = next(slot)) {
    const int width = width_of(j);
    double* out = columns + static_cast<int64_t>(j) * at.stride;
    double pivot = 0;
    for (int k = lane; k <= width; k += kWarp) {
      double& taken = window[ahead(slot, k) * memory.stride + slot];
      const double c = p[k * all + j] + taken;
      taken = 0;  // for the bin that takes this one's slot
      column[k] = c;
      if (k == 0) {
        pivot = c + shift;
      } else {
        out[k] = c;
      }
    }
    const double reciprocal = Reciprocal(fmax(Shuffle(pivot, 0), shift));
    const double ones = 1 + right[slot], fluxes = flux[j] + right[slots + slot];
    if (lane == 0) {
      out[0] = reciprocal;
      out[at.stride - 2] = ones;
      out[at.stride - 1] = fluxes;
    }
    __syncwarp();
    if (lane == 0) right[slot] = right[slots + slot] = 0;
    for (int a = lane + 1; a <= width; a += kWarp) {
      const int slot_a = ahead(slot, a);
      const double l = -column[a] * reciprocal;
      right[slot_a] = fma(l, ones, right[slot_a]);
      right[slots + slot_a] = fma(l, fluxes, right[slots + slot_a]);
      // Columns 1..a behind this one's slot, up to the ring's end and from its start on.
      double* row = window + slot_a * memory.stride;
      const int before = min(a, slots - 1 - slot);
      AddScaled(l, column + 1, before, row + slot + 1);
      AddScaled(l, column + 1 + before, a - before, row);
    }
    __syncwarp();
  }

  // Backward: the window holds the inverse, both triangles, and `right` the solutions.
  const auto fetch = [&](int j) {
    if (j >= 0) {
      const double* from = columns + static_cast<int64_t>(j) * at.stride;
      double* to = column + j % 2 * memory.column_stride;
      for (int k = lane; k <= width_of(j); k += kWarp) CopyAsync8(to + k, from + k);
      if (lane < 2) CopyAsync8(to + memory.column_stride - 2 + lane, from + at.stride - 2 + lane);
    }
    CopyAsyncCommit();
  };
  fetch(count - 1);
  for (int j = count - 1, slot = (count - 1) % slots; j >= 0; --j, slot = slot == 0 ? slots - 1 : slot - 1) {
    const int width = width_of(j);
    fetch(j - 1);
    CopyAsyncWait<1>();
    __syncwarp();
    const double* c = column + j % 2 * memory.column_stride;
    const double reciprocal = c[0];
    double ones = 0, fluxes = 0, diagonal = 0;
    for (int r = lane + 1; r <= width; r += kWarp) {
      const int slot_r = ahead(slot, r);
      ones = fma(-c[r], right[slot_r], ones);
      fluxes = fma(-c[r], right[slots + slot_r], fluxes);
      double products[2] = {0, 0};
      const int before = min(width, slots - 1 - slot);
      AddProducts(window + (slot + 1) * memory.stride + slot_r, memory.stride, c + 1, before, products);
      AddProducts(window + slot_r, memory.stride, c + 1 + before, width - before, products);
      const double sum = -(products[0] + products[1]) * reciprocal;
      diagonal = fma(-sum, c[r] * reciprocal, diagonal);
      window[slot_r * memory.stride + slot] = sum;
      window[slot * memory.stride + slot_r] = sum;
    }
    ones = (c[memory.column_stride - 2] + WarpSum(ones)) * reciprocal;
    fluxes = (c[memory.column_stride - 1] + WarpSum(fluxes)) * reciprocal;
    diagonal = reciprocal + WarpSum(diagonal);
    if (lane == 0) {
      window[slot * memory.stride + slot] = diagonal;
      right[slot] = ones;
      right[slots + slot] = fluxes;
    }
    __syncwarp();
    if (lane < kPoleSums) {
      const double value = lane < kPoleSums - 2
                               ? (lane <= width ? window[ahead(slot, lane) * memory.stride + slot] : 0.0)
                           : lane == kPoleSums - 2 ? ones
                                                   : fluxes;
      scratch[at.sums + static_cast<int64_t>(j) * kPoleSums + lane] = weight * value;
    }
    __syncwarp();
  }
  CopyAsyncWait<0>();
}

// Takes the chunks whose largest width lies in (above, width]; kInside: their windows fit into shared memory.
template <bool kInside>
__global__ void __launch_bounds__(kPoleBlock* kWarp) Wide(JobView job, int above, int width) {
  extern __shared__ double shared[];
  const int warp = threadIdx.x / kWarp;
  const WideScratch at(job.most_width, job.roots.extended);
  const WideMemory memory(width, kInside);
  double* block = job.pole_scratch + static_cast<int64_t>(blockIdx.x) * kPoleBlock * at.total;
  double *own = block + warp * at.total, *inside = shared + warp * memory.total;
  for (int task = blockIdx.x; task < WideTasks(job.roots.count, job.fibres); task += gridDim.x) {
    const int fibre = task % job.fibres, chunk = task / job.fibres % job.roots.count,
              pole_block = task / job.fibres / job.roots.count;
    const int group = GroupOf(job, fibre), widest = job.wide[group * job.roots.count + chunk];
    if (pole_block >= job.pole_blocks[fibre] || widest <= above || widest > width) continue;
    const ChunkBins bins(job.roots, job.psf.shape.bins, chunk);
    const int pole = fibre * kMaxPoles + pole_block * kPoleBlock + warp;
    SolveWide(job, fibre, group, bins, job.pole_shift[pole], job.pole_weight[pole], own, at,
              kInside ? inside : own + at.window, inside, memory);
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
  double flux = root[kPoleSums - 1] / s / width, ivar = s * s * width * width;
  // Rounded, it could not be told any more; ivar 0 is what JudgeBins goes by.
  if (sizeof(Real) == sizeof(float) && !IsReportable(flux, ivar)) flux = ivar = 0;
  static_cast<Real*>(job.out_flux)[out] = Rounded<Real>(flux);
  static_cast<Real*>(job.out_ivar)[out] = Rounded<Real>(ivar);
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
  Narrow<kWidth><<<NarrowBlocks(job.roots.count, job.fibres), kWarp, kBytes, stream>>>(job);
  return cudaGetLastError();
}

int64_t WideBytes(int width, bool inside) {
  return int64_t{kPoleBlock} * WideMemory(width, inside).total * static_cast<int64_t>(sizeof(double));
}

template <bool kInside>
void LaunchWide(const JobView& job, int above, int width, cudaStream_t stream) {
  Wide<kInside>
      <<<WideBlocks(job.roots.count, job.fibres), kPoleBlock * kWarp, WideBytes(width, kInside), stream>>>(
          job, above, width);
}

}  // namespace

int64_t SquareRootScratch(const ExtractPlan& plan, int fibres) {
  const int64_t narrow =
      int64_t{NarrowBlocks(plan.roots.count, fibres)} * plan.roots.extended * (kMostNarrow + 3) * kWarp;
  const int64_t wide = int64_t{WideBlocks(plan.roots.count, fibres)} * kPoleBlock *
                       WideScratch(plan.most_width, plan.roots.extended).total;
  return plan.most_usual_width <= kMostNarrow && narrow > wide ? narrow : wide;
}

cudaError_t ConfigureResolution() {
  for (const auto kernel : {Wide<true>, Wide<false>}) {
    const cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kMostShared);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

cudaError_t PlanPoles(const JobView& job, cudaStream_t stream) {
  BoundAndPlan<<<job.fibres, kThreads, 0, stream>>>(job);
  return cudaGetLastError();
}

cudaError_t SquareRoot(const JobView& job, cudaStream_t stream) {
  const int usual = job.usual_width;
  FindWidest<<<dim3(job.roots.count, job.groups), kWarp, 0, stream>>>(job);
  cudaError_t error = cudaSuccess;
  if (usual <= kLeastRootWidth) {
    error = LaunchNarrow<kLeastRootWidth>(job, stream);
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
  const int narrow = usual <= kMostNarrow ? usual : -1;
  const int middle = min(kMiddleWidth, job.most_width);
  if (middle > narrow) LaunchWide<true>(job, narrow, middle, stream);
  int inside = job.most_width;
  while (WideBytes(inside, true) > kMostShared) --inside;
  if (inside > middle) LaunchWide<true>(job, max(middle, narrow), inside, stream);
  if (job.most_width > inside) LaunchWide<false>(job, max(inside, narrow), job.most_width, stream);
  return cudaGetLastError();
}

cudaError_t ReportSpectra(const JobView& job, cudaStream_t stream) {
  const int64_t count = static_cast<int64_t>(job.psf.shape.bins) * kPoleSums;
  AddBlocks<<<dim3(static_cast<unsigned>((count + kThreads - 1) / kThreads), job.fibres), kThreads, 0,
              stream>>>(job);
  const dim3 grid((job.psf.shape.output_bins() + kThreads - 1) / kThreads, job.fibres);
  if (job.float32) {
    Report<float><<<grid, kThreads, 0, stream>>>(job);
  } else {
    Report<double><<<grid, kThreads, 0, stream>>>(job);
  }
  return cudaGetLastError();
}

}  // namespace spexd::cuda
