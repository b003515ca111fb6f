// Templates at the velocities of a scan. Floor for a frame: its resolution is read four times (51 MB each,
// half of it from the L2 cache), and the shifted templates are written once (68 MB for 45 templates at 81
// velocities): 60 us on an H200. docs/performance.md has measured times.
#include "core/analysis/velocity/shared/spline_position.h"
#include "core/analysis/velocity/shared/spline_weights.h"
#include "core/analysis/velocity/shared/template_filter.h"
#include "core/model/frame.h"
#include "cuda/analysis/velocity/templates.h"
#include "cuda/kernels/common/device.cuh"

namespace spexd::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kMedianBlocks = 64;  // blocks for each diagonal

dim3 BlocksFor(int64_t count) { return dim3(static_cast<unsigned>((count + kThreads - 1) / kThreads)); }

// Maps floats to unsigned integers that sort like them, and back.
__device__ inline uint32_t KeyOf(float value) {
  const uint32_t bits = static_cast<uint32_t>(__float_as_int(value));
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
__device__ inline float ValueOf(uint32_t key) {
  return __int_as_float(static_cast<int>((key & 0x80000000u) != 0 ? key & 0x7fffffffu : ~key));
}

// Calls body(key) for this thread's share of a diagonal's values.
template <typename Body>
__device__ inline void ForEachKey(const ResolutionArgs& args, int diagonal, const Body& body) {
  const int inner = args.bins - 2 * args.edge;
  for (int i = blockIdx.x; i < args.row_count; i += gridDim.x) {
    const float* const row =
        args.resolution + (static_cast<int64_t>(args.rows[i]) * kResolutionDiagonals + diagonal) * args.bins +
        args.edge;
    for (int j = threadIdx.x; j < inner; j += blockDim.x) body(KeyOf(row[j]));
  }
}

// Counts values in buckets of the `bits` bits from `shift` on; only values whose higher bits are the ones
// found.
__global__ void CountBuckets(ResolutionArgs args, int shift, int bits) {
  __shared__ uint32_t counts[kMedianBuckets];
  const int diagonal = blockIdx.y;
  for (int k = threadIdx.x; k < kMedianBuckets; k += blockDim.x) counts[k] = 0;
  __syncthreads();
  const uint32_t found = args.states[diagonal].bits;
  const bool all = shift + bits == 32;
  ForEachKey(args, diagonal, [&](uint32_t key) {
    if (all || key >> (shift + bits) == found) atomicAdd(&counts[key >> shift & ((1u << bits) - 1)], 1u);
  });
  __syncthreads();
  for (int k = threadIdx.x; k < kMedianBuckets; k += blockDim.x) {
    if (counts[k] != 0) atomicAdd(&args.buckets[diagonal * kMedianBuckets + k], counts[k]);
  }
}

// Finds the bucket that contains the rank, and empties all buckets. Each warp processes a diagonal.
__global__ void ChooseBucket(ResolutionArgs args, int bits) {
  __shared__ uint32_t sums[kWarp];
  const int lane = threadIdx.x, each = (1 << bits) / kWarp;
  uint32_t* const buckets = args.buckets + blockIdx.x * kMedianBuckets;
  uint32_t sum = 0;
  for (int k = 0; k < each; ++k) sum += buckets[lane * each + k];
  sums[lane] = sum;
  __syncwarp();
  MedianState& state = args.states[blockIdx.x];
  if (lane == 0) {
    uint32_t rank = state.rank;
    int part = 0;
    while (part < kWarp - 1 && rank >= sums[part]) rank -= sums[part++];
    int bucket = part * each;
    while (bucket < (part + 1) * each - 1 && rank >= buckets[bucket]) rank -= buckets[bucket++];
    state.bits = state.bits << bits | static_cast<uint32_t>(bucket);
    state.rank = rank;
    state.no_larger = buckets[bucket];
  }
  __syncwarp();
  for (int k = lane; k < kMedianBuckets; k += kWarp) buckets[k] = 0;
}

__global__ void StartMedians(ResolutionArgs args) {
  for (int k = threadIdx.x; k < kResolutionDiagonals * kMedianBuckets; k += blockDim.x) args.buckets[k] = 0;
  const uint32_t count = static_cast<uint32_t>(args.row_count) * (args.bins - 2 * args.edge);
  if (threadIdx.x < kResolutionDiagonals) args.states[threadIdx.x] = {0, (count - 1) / 2, 0, 0xffffffffu};
}

// Finds the least value above the lower of the two middle values.
__global__ void FindNext(ResolutionArgs args) {
  MedianState& state = args.states[blockIdx.y];
  const uint32_t found = state.bits;
  uint32_t next = 0xffffffffu;
  ForEachKey(args, blockIdx.y, [&](uint32_t key) {
    if (key > found) next = min(next, key);
  });
  if (next != 0xffffffffu) atomicMin(&state.next, next);
}

__global__ void WidthOfMedians(ResolutionArgs args) {
  if (threadIdx.x != 0) return;
  const uint32_t count = static_cast<uint32_t>(args.row_count) * (args.bins - 2 * args.edge);
  double sum = 0, second = 0;
  for (int k = 0; k < kResolutionDiagonals; ++k) {
    const MedianState& state = args.states[k];
    // `rank` counts among equal values: the upper middle value is either equal, or it is `next`.
    const bool equal = count % 2 != 0 || state.rank + 1 < state.no_larger;
    const double low = ValueOf(state.bits), high = equal ? low : ValueOf(state.next);
    const double median = fmax(0.0, 0.5 * (low + high)), offset = k - kResolutionHalfWidth;
    sum += median;
    second += median * offset * offset;
  }
  *args.sigma = sum > 0 ? sqrt(second / sum) : 0;
}

// Computes the weights of the filter. Each thread processes a sample.
__global__ void WeighSamples(SmoothArgs args) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j >= args.samples) return;
  const double wave = exp(args.first + args.step * j), sigma = *args.sigma * args.bin;
  double total = 0;
  for (int k = -args.half; k <= args.half; ++k) {
    const double weight = GaussianFilterWeight(wave, k * args.step, sigma);
    args.weights[static_cast<int64_t>(k + args.half) * args.samples + j] = weight;
    total += weight;
  }
  for (int k = 0; k <= 2 * args.half; ++k) args.weights[static_cast<int64_t>(k) * args.samples + j] /= total;
}

__global__ void Smooth(SmoothArgs args) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x, last = args.samples - 1;
  if (j > last) return;
  const double* const flux = args.flux + static_cast<int64_t>(blockIdx.y) * args.samples;
  double sum = 0;
  for (int k = -args.half; k <= args.half; ++k) {
    const int from = min(max(j + k, 0), last);
    sum += args.weights[static_cast<int64_t>(k + args.half) * args.samples + j] * flux[from];
  }
  args.smooth[static_cast<int64_t>(blockIdx.y) * args.samples + j] = sum;
}

// Computes spline coefficients by the inverse filter, mirrored at the ends.
__global__ void MakeCoefficients(SmoothArgs args) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x, last = args.samples - 1;
  if (j > last) return;
  const double* const smooth = args.smooth + static_cast<int64_t>(blockIdx.y) * args.samples;
  double weight = CardinalSpline(0), sum = weight * smooth[j];
  for (int k = 1; k <= kCardinalReach; ++k) {
    weight *= kSplinePole;
    const int below = abs(j - k), above = last - abs(last - j - k);
    sum += weight * (smooth[min(below, last)] + smooth[max(above, 0)]);
  }
  args.coefficients[static_cast<int64_t>(blockIdx.y) * args.samples + j] = sum;
}

__global__ void Shift(ShiftArgs args) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j >= args.bins) return;
  const int v = blockIdx.y;
  const VelocityShift shift = ShiftOf(args.velocities[v], args.step);
  const SplinePosition position = PositionOf(args.log_wave[j], shift, args.first, args.samples);
  const std::array<double, 4> w = SplineWeights(position.u);
  for (int t = blockIdx.z; t < args.templates; t += gridDim.z) {
    const double* const taps =
        args.coefficients + static_cast<int64_t>(t) * args.samples + position.sample - 1;
    const double value = w[0] * taps[0] + w[1] * taps[1] + w[2] * taps[2] + w[3] * taps[3];
    const int64_t at = (static_cast<int64_t>(t) * args.steps + v) * args.bins + j;
    args.values[at] = static_cast<float>(value);
    args.squares[at] = static_cast<float>(value * value);
  }
}

}  // namespace

cudaError_t MeasureResolution(const ResolutionArgs& args, cudaStream_t stream) {
  const dim3 blocks(kMedianBlocks, kResolutionDiagonals);
  cudaError_t error = Launch(StartMedians, dim3(1), kThreads, 0, stream, args);
  int shift = 32;
  for (const int bits : {11, 11, 10}) {
    shift -= bits;
    error = FirstError({error, Launch(CountBuckets, blocks, kThreads, 0, stream, args, shift, bits),
                        Launch(ChooseBucket, dim3(kResolutionDiagonals), kWarp, 0, stream, args, bits)});
  }
  return FirstError({error, Launch(FindNext, blocks, kThreads, 0, stream, args),
                     Launch(WidthOfMedians, dim3(1), kWarp, 0, stream, args)});
}

cudaError_t SmoothTemplates(const SmoothArgs& args, cudaStream_t stream) {
  dim3 blocks = BlocksFor(args.samples);
  const cudaError_t error = Launch(WeighSamples, blocks, kThreads, 0, stream, args);
  blocks.y = static_cast<unsigned>(args.templates);
  return FirstError({error, Launch(Smooth, blocks, kThreads, 0, stream, args),
                     Launch(MakeCoefficients, blocks, kThreads, 0, stream, args)});
}

cudaError_t ShiftTemplates(const ShiftArgs& args, cudaStream_t stream) {
  dim3 blocks = BlocksFor(args.bins);
  blocks.y = static_cast<unsigned>(args.steps);
  blocks.z = static_cast<unsigned>(args.templates < 8 ? args.templates : 8);
  return Launch(Shift, blocks, kThreads, 0, stream, args);
}

}  // namespace spexd::cuda
