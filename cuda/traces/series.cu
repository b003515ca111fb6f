// Trace shifts: the fit of a series to many measurements (core/traces/shifts/series.h). A round has five
// kernels. The first makes the normal equations and the step. For each of two medians, one kernel counts the
// upper halves of all values' keys, and another the lower halves of the keys around the middle. In each
// kernel the block that ends last computes what depends on all blocks.
//
// Floor of a round for 64,500 measurements: 2 MB are read 5 times from the level-2 cache, 3 us; 5 launches,
// about 12 us.
#include <cmath>

#include "core/traces/shifts/series_formula.h"
#include "core/traces/shifts/small_cholesky.h"
#include "cuda/kernels/common/machine.cuh"
#include "cuda/traces/trace_arrays.h"

namespace spexd::cuda {
namespace {

constexpr int kSumThreads = 256;  // measurements of a block's tile
constexpr int kParts = 4;         // parts of a sum, one thread each
constexpr int kRow = kSumThreads + kParts;
constexpr int kKeyThreads = 1024;

// Maps a value, rounded to float, to an integer that sorts like it.
__device__ uint32_t KeyOf(double value) {
  const uint32_t bits = static_cast<uint32_t>(__float_as_int(static_cast<float>(value)));
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
__device__ double ValueOf(uint32_t key) {
  const uint32_t bits = (key & 0x80000000u) != 0 ? key ^ 0x80000000u : ~key;
  return __int_as_float(static_cast<int>(bits));
}

// Returns whether this block is the last one of the grid to call this. All threads must call it.
__device__ bool EndsLast(SeriesState* state) {
  __shared__ int last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(&state->ended, 1) == static_cast<int>(gridDim.x) - 1;
    if (last) state->ended = 0;
  }
  __syncthreads();
  __threadfence();
  return last != 0;
}

__global__ void __launch_bounds__(kSumThreads) Begin(TraceArrays a, SeriesProblem problem, int64_t count) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kSumThreads + threadIdx.x;
  if (i == 0) {
    SeriesState* const state = a.series;
    state->problem = problem;
    state->floor = problem.first_floor;
    state->round = state->settled = state->used = state->measured = state->changed = state->ended = 0;
  }
  if (i >= count) return;
  const bool measured = a.measured.info[i] > 0 && isfinite(a.measured.value[i]);
  a.use[i] = measured;
  if (!measured) a.measured.info[i] = 0;
}

// Row and column of element `index` of a lower triangle.
struct Entry {
  int row, column;
  __device__ explicit Entry(int index) : row(0), column(index) {
    while (column > row) column -= ++row;
  }
};
__device__ int IndexOf(int row, int column) { return row * (row + 1) / 2 + column; }

// Computes the step of a round from all sums, which are replaced by the factor: Cholesky's method, with the
// right-hand side as last row. All threads must call it.
__device__ void Solve(double* sums, SeriesState* state) {
  __shared__ double diagonal[kMaxSeriesTerms], root[kMaxSeriesTerms];
  const int n = state->problem.count, all = SeriesSums(n);
  for (int k = threadIdx.x; k < n; k += kSumThreads) {
    sums[IndexOf(k, k)] += state->problem.prior[k];
    sums[IndexOf(n, k)] -= state->problem.before[k] * state->problem.prior[k];
    diagonal[k] = sums[IndexOf(k, k)];
  }
  __syncthreads();
  for (int k = threadIdx.x; k < all; k += kSumThreads) state->sums[k] = sums[k];
  __syncthreads();
  for (int m = 0; m < n; ++m) {
    const double pivot = PositivePivot(sums[IndexOf(m, m)], diagonal[m]);
    for (int k = m + 1 + static_cast<int>(threadIdx.x); k <= n; k += kSumThreads)
      sums[IndexOf(k, m)] /= pivot;
    if (threadIdx.x == 0) root[m] = pivot;
    __syncthreads();
    for (int k = IndexOf(m + 1, 0) + static_cast<int>(threadIdx.x); k < all; k += kSumThreads) {
      const Entry at(k);
      if (at.column > m) sums[k] -= sums[IndexOf(at.row, m)] * sums[IndexOf(at.column, m)];
    }
    __syncthreads();
  }
  double* const right = sums + IndexOf(n, 0);
  for (int m = n - 1; m >= 0; --m) {
    const double step = right[m] / root[m];
    const int l = threadIdx.x;
    if (l == m) state->step[m] = step;
    if (l < m) right[l] -= sums[IndexOf(m, l)] * step;
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  state->judged = JudgedFloor(state->floor, state->problem.first_floor);
  state->measured = 0;
}

__global__ void __launch_bounds__(kSumThreads) Sum(TraceArrays a, int64_t count) {
  SeriesState* const state = a.series;
  if (state->settled) return;
  const int n = state->problem.count, sums = SeriesSums(n);
  double* const basis = DynamicShared();  // [term or value, measurement]
  double* const weight = basis + (n + 1) * kRow;
  double* const total = weight + kRow;  // [sum]
  for (int k = threadIdx.x; k < sums; k += kSumThreads) total[k] = 0;
  for (int64_t tile = blockIdx.x; tile * kSumThreads < count; tile += gridDim.x) {
    const int64_t i = tile * kSumThreads + threadIdx.x;
    const bool used = i < count && a.use[i] != 0;
    double own[kMaxSeriesTerms];
    if (used) SeriesBasis(state->problem.terms, n, a.measured.u[i], a.measured.t[i], own);
    for (int k = 0; k < n; ++k) basis[k * kRow + threadIdx.x] = used ? own[k] : 0;
    basis[n * kRow + threadIdx.x] = used ? a.measured.value[i] : 0;
    weight[threadIdx.x] = used ? 1 / (1 / a.measured.info[i] + state->floor * state->floor) : 0;
    __syncthreads();
    const int part = threadIdx.x % kParts;
    for (int first = 0; first < sums * kParts; first += kSumThreads) {
      const int index = (first + static_cast<int>(threadIdx.x)) / kParts;
      const Entry at(min(index, sums - 1));
      const double *one = basis + at.row * kRow, *other = basis + at.column * kRow;
      double sum = 0;
#pragma unroll 8
      for (int m = part; m < kSumThreads; m += kParts) sum += weight[m] * one[m] * other[m];
      sum += __shfl_xor_sync(kAllLanes, sum, 1);
      sum += __shfl_xor_sync(kAllLanes, sum, 2);
      if (part == 0 && index < sums) total[index] += sum;
    }
    __syncthreads();
  }
  for (int k = threadIdx.x; k < sums; k += kSumThreads) {
    a.series_sums[static_cast<int64_t>(blockIdx.x) * sums + k] = total[k];
  }
  if (!EndsLast(state)) return;
  double* const parts = basis;  // [part, sum]
  for (int item = threadIdx.x; item < sums * kParts; item += kSumThreads) {
    const int blocks = gridDim.x, part = item / sums;
    const double* from = a.series_sums + item % sums;
    double sum = 0;
#pragma unroll 8
    for (int block = part; block < blocks; block += kParts) sum += from[static_cast<int64_t>(block) * sums];
    parts[item] = sum;
  }
  __syncthreads();
  for (int k = threadIdx.x; k < sums; k += kSumThreads) {
    total[k] = (parts[k] + parts[sums + k]) + (parts[2 * sums + k] + parts[3 * sums + k]);
  }
  __syncthreads();
  Solve(total, state);
}

// Finds the values in which two ranks lie, among kKeyGroup counts each. All threads of a block must call it.
struct Found {
  uint32_t value, rank;  // rank: position within the value
};
struct TwoFound {
  Found of[2];
};
__device__ TwoFound FindAmong(const uint32_t* first, const uint32_t* second, uint32_t rank,
                              uint32_t second_rank) {
  __shared__ uint32_t sums[kKeyThreads / kWarp];
  __shared__ TwoFound result;
  const int group = threadIdx.x / kKeyGroup, own = threadIdx.x % kKeyGroup;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const uint32_t count = group == 0 ? first[own] : group == 1 ? second[own] : 0;
  uint32_t sum = count;  // of the lanes up to this one
  for (int step = 1; step < kWarp; step *= 2) {
    const uint32_t more = __shfl_sync(kAllLanes, sum, max(lane - step, 0));
    if (lane >= step) sum += more;
  }
  if (lane == kWarp - 1) sums[warp] = sum;
  __syncthreads();
  uint32_t begin = sum - count;
  for (int k = group * (kKeyGroup / kWarp); k < warp; ++k) begin += sums[k];
  const uint32_t wanted = group == 0 ? rank : second_rank;
  if (group < 2 && wanted >= begin && wanted - begin < count) {
    result.of[group] = {static_cast<uint32_t>(own), wanted - begin};
  }
  __syncthreads();
  const TwoFound found = result;
  __syncthreads();
  return found;
}

// Finds two ranks among the halves of keys that histograms count.
__device__ TwoFound FindRanks(const uint32_t* first, const uint32_t* second, uint32_t rank,
                              uint32_t second_rank) {
  const TwoFound group = FindAmong(first + kKeyHalf, second + kKeyHalf, rank, second_rank);
  const uint32_t base = group.of[0].value * kKeyGroup, second_base = group.of[1].value * kKeyGroup;
  TwoFound found = FindAmong(first + base, second + second_base, group.of[0].rank, group.of[1].rank);
  found.of[0].value += base;
  found.of[1].value += second_base;
  return found;
}

// Clears histograms with all threads of the grid.
__device__ void Clear(uint32_t* counts, int tables) {
  const int threads = gridDim.x * kKeyThreads;
  for (int k = blockIdx.x * kKeyThreads + threadIdx.x; k < tables * kKeyCounts; k += threads) counts[k] = 0;
}

// Counts upper halves of keys: with kJudge of pulls, otherwise of the squared floors of measurements that are
// no outliers.
template <bool kJudge>
__global__ void __launch_bounds__(kKeyThreads) UpperHalves(TraceArrays a, int64_t count) {
  SeriesState* const state = a.series;
  if (state->settled) return;
  __shared__ uint32_t groups[kKeyGroup];
  static_assert(kKeyGroup * kKeyGroup == kKeyHalf);
  if (threadIdx.x < kKeyGroup) groups[threadIdx.x] = 0;
  Clear(a.histogram + kKeyCounts, 2);
  __syncthreads();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kKeyThreads + threadIdx.x;
  if (i < count && a.measured.info[i] > 0) {
    const double variance = 1 / a.measured.info[i], judged = variance + state->judged * state->judged;
    double value = 0;
    bool counts = true;
    if (kJudge) {
      double basis[kMaxSeriesTerms], model = 0;
      SeriesBasis(state->problem.terms, state->problem.count, a.measured.u[i], a.measured.t[i], basis);
      for (int k = 0; k < state->problem.count; ++k) model += state->step[k] * basis[k];
      const double residual = a.measured.value[i] - model;
      a.residual2[i] = residual * residual;
      value = residual * residual / judged;
    } else {
      counts = a.residual2[i] < state->limit * judged;
      if (counts != (a.use[i] != 0)) atomicOr(&state->changed, 1);
      a.use[i] = counts;
      value = FloorSquared(a.residual2[i], variance);
    }
    if (counts) {
      const uint32_t key = KeyOf(value);
      a.keys[i] = key;
      atomicAdd(&a.histogram[key >> 16], 1u);
      atomicAdd(&groups[key >> 24], 1u);
    }
  }
  __syncthreads();
  int* const all = kJudge ? &state->measured : &state->used;
  if (threadIdx.x < kKeyGroup && groups[threadIdx.x] > 0) {
    atomicAdd(&a.histogram[kKeyHalf + threadIdx.x], groups[threadIdx.x]);
    atomicAdd(all, static_cast<int>(groups[threadIdx.x]));
  }
  if (!EndsLast(state) || *all == 0) return;
  const TwoFound found = FindRanks(a.histogram, a.histogram, static_cast<uint32_t>(*all - 1) / 2,
                                   static_cast<uint32_t>(*all) / 2);
  if (threadIdx.x >= 2) return;
  state->high[threadIdx.x] = found.of[threadIdx.x].value;
  state->rank[threadIdx.x] = found.of[threadIdx.x].rank;
}

// Counts lower halves of keys; finds the median and what follows from it.
template <bool kJudge>
__global__ void __launch_bounds__(kKeyThreads) LowerHalves(TraceArrays a, int64_t count) {
  SeriesState* const state = a.series;
  if (state->settled) return;
  Clear(a.histogram, 1);
  uint32_t *const low = a.histogram + kKeyCounts, *const second = low + kKeyCounts;
  const int all = kJudge ? state->measured : state->used;
  const bool apart = state->high[0] != state->high[1];
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kKeyThreads + threadIdx.x;
  if (all > 0 && i < count && a.measured.info[i] > 0 && (kJudge || a.use[i] != 0)) {
    const uint32_t key = a.keys[i], high = key >> 16, half = key & 0xffff;
    if (high == state->high[0] || (apart && high == state->high[1])) {
      uint32_t* const counts = high == state->high[0] ? low : second;
      atomicAdd(&counts[half], 1u);
      atomicAdd(&counts[kKeyHalf + half / kKeyGroup], 1u);
    }
  }
  if (!EndsLast(state)) return;
  double median = 0;
  if (all > 0) {
    const TwoFound found = FindRanks(low, apart ? second : low, state->rank[0], state->rank[1]);
    median = 0.5 * (ValueOf(state->high[0] << 16 | found.of[0].value) +
                    ValueOf(state->high[1] << 16 | found.of[1].value));
  }
  if (threadIdx.x != 0) return;
  if (kJudge) {
    state->limit = OutlierLimit(state->problem.block_clip, median);
    state->changed = 0;
    state->used = 0;
    return;
  }
  const double next = NextFloor(median);
  state->settled = IsSettled(state->round, state->changed == 0, next, state->floor) ||
                   state->round + 1 == kMaxSeriesRounds;
  state->floor = next;
  ++state->round;
}

int Blocks(int64_t count, int threads) {
  return static_cast<int>(count < 1 ? 1 : (count + threads - 1) / threads);
}

}  // namespace

cudaError_t BeginSeries(const TraceArrays& arrays, const SeriesProblem& problem, int64_t count,
                        cudaStream_t stream) {
  return Launch(Begin, dim3(Blocks(count, kSumThreads)), kSumThreads, 0, stream, arrays, problem, count);
}

cudaError_t StepSeries(const TraceArrays& arrays, int64_t count, int terms, cudaStream_t stream) {
  const int blocks = Blocks(count, kSumThreads);
  // Bases and weights come first, then the sums. Parts of sums reuse the memory of the bases.
  const auto shared_of = [](int n) { return ((n + 2) * kRow + SeriesSums(n)) * static_cast<int>(sizeof(double)); };
  const int shared = shared_of(terms);
  // The limit belongs to the kernel, not to the launch, and concurrent measurements need the same one.
  return FirstError(
      {AllowShared(Sum, shared_of(kMaxSeriesTerms)), Launch(Sum, dim3(blocks < kSeriesBlocks ? blocks : kSeriesBlocks),
                                        kSumThreads, shared, stream, arrays, count)});
}

cudaError_t JudgeSeries(const TraceArrays& arrays, int64_t count, cudaStream_t stream) {
  const dim3 blocks(Blocks(count, kKeyThreads));
  return FirstError({Launch(UpperHalves<true>, blocks, kKeyThreads, 0, stream, arrays, count),
                     Launch(LowerHalves<true>, blocks, kKeyThreads, 0, stream, arrays, count)});
}

cudaError_t FindSeriesFloor(const TraceArrays& arrays, int64_t count, cudaStream_t stream) {
  const dim3 blocks(Blocks(count, kKeyThreads));
  return FirstError({Launch(UpperHalves<false>, blocks, kKeyThreads, 0, stream, arrays, count),
                     Launch(LowerHalves<false>, blocks, kKeyThreads, 0, stream, arrays, count)});
}

}  // namespace spexd::cuda
