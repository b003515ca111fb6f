// Square roots of bands too wide for registers: a warp takes one recurrence, eight poles to a block. Columns
// of the factor lie in device memory, the moving window in shared memory where it fits.
#include "cuda/kernels/device.cuh"
#include "cuda/kernels/fibre.cuh"
#include "cuda/kernels/roots.cuh"

namespace spexd::cuda {
namespace {

constexpr int kMostBlocks = 256;  // that loop over the recurrences: they have a scratch each

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
  const int end = bins.core - bins.first;
  const auto fetch = [&](int j) {
    if (j >= end) {
      const double* from = columns + static_cast<int64_t>(j) * at.stride;
      double* to = column + j % 2 * memory.column_stride;
      for (int k = lane; k <= width_of(j); k += kWarp) CopyAsync8(to + k, from + k);
      if (lane < 2) CopyAsync8(to + memory.column_stride - 2 + lane, from + at.stride - 2 + lane);
    }
    CopyAsyncCommit();
  };
  fetch(count - 1);
  for (int j = count - 1, slot = (count - 1) % slots; j >= end;
       --j, slot = slot == 0 ? slots - 1 : slot - 1) {
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
  double* const shared = DynamicShared();
  const int warp = threadIdx.x / kWarp;
  const WideScratch at(job.most_width, job.roots.extended);
  const WideMemory memory(width, kInside);
  double* block = job.pole_scratch + static_cast<int64_t>(blockIdx.x) * kPoleBlock * at.total;
  double *own = block + warp * at.total, *inside = shared + warp * memory.total;
  for (int k = blockIdx.x; k < RootTasks(job.roots.count, job.fibres); k += gridDim.x) {
    const RootTask task(job, k);
    const int group = GroupOf(job, task.fibre), widest = job.wide[group * job.roots.count + task.chunk];
    if (task.pole_block >= job.pole_blocks[task.fibre] || widest <= above || widest > width) continue;
    const ChunkBins bins(job.roots, job.psf.shape.bins, task.chunk);
    const int pole = task.fibre * kMaxPoles + task.pole_block * kPoleBlock + warp;
    SolveWide(job, task.fibre, group, bins, job.pole_shift[pole], job.pole_weight[pole], own, at,
              kInside ? inside : own + at.window, inside, memory);
    __syncthreads();
    double* sums = SumsAt(job, task.pole_block, task.fibre, bins.first);
    for (int i = (bins.core - bins.first) * kPoleSums + threadIdx.x;
         i < (bins.core_end - bins.first) * kPoleSums; i += blockDim.x) {
      double sum = 0;
      for (int p = 0; p < kPoleBlock; ++p) sum += block[p * at.total + at.sums + i];
      sums[i] = sum;
    }
    __syncthreads();
  }
}

int Blocks(int chunks, int fibres) { return min(RootTasks(chunks, fibres), kMostBlocks); }

int64_t Bytes(int width, bool inside) {
  return int64_t{kPoleBlock} * WideMemory(width, inside).total * static_cast<int64_t>(sizeof(double));
}

template <bool kInside>
cudaError_t LaunchWide(const JobView& job, int above, int width, cudaStream_t stream) {
  if (width <= above) return cudaSuccess;
  return Launch(Wide<kInside>, Blocks(job.roots.count, job.fibres), kPoleBlock * kWarp, Bytes(width, kInside),
                stream, job, above, width);
}

}  // namespace

int64_t WideRootScratch(const ExtractPlan& plan, int fibres) {
  if (plan.most_width <= kMostTiled) return 0;
  return int64_t{Blocks(plan.roots.count, fibres)} * kPoleBlock *
         WideScratch(plan.most_width, plan.roots.extended).total;
}

cudaError_t ConfigureResolution(int shared_bytes) {
  return FirstError({AllowShared(Wide<true>, shared_bytes), AllowShared(Wide<false>, shared_bytes)});
}

cudaError_t WideRoots(const JobView& job, cudaStream_t stream) {
  int inside = job.most_width;
  while (Bytes(inside, true) > job.shared_bytes) --inside;
  return FirstError({LaunchWide<true>(job, kMostTiled, inside, stream),
                     LaunchWide<false>(job, max(kMostTiled, inside), job.most_width, stream)});
}

}  // namespace spexd::cuda
