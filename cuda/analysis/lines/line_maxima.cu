// Lines: the stack of a row's traces at each redshift, and its maxima. A block to a row.
//
// Floor for a frame: traces read, 19 MB: 4 us; 0.6 GFLOP: 10 us. Each redshift gathers from nine lines, whose
// traces stay in the first cache: 40 us.
#include "core/analysis/edge_bins.h"
#include "core/analysis/lines/line_constants.h"
#include "cuda/analysis/common/block_median.cuh"
#include "cuda/analysis/lines/lines.h"
#include "cuda/kernels/common/machine.cuh"

namespace spexd::cuda {
namespace {

constexpr int kThreads = 512;

struct Gain {
  float dchi2;
  uint32_t seen, significant;  // groups, as in StackMaxima
};

__device__ Gain GainAt(const LinesArgs& args, const LineTrace* traces, const float* typical, int z) {
  Gain gain = {0, 0, 0};
  for (int g = 0; g < args.stack.groups; ++g) {
    const StackedGroup& group = args.stack.group[g];
    const LineTrace* const trace = traces + static_cast<int64_t>(group.filter) * args.bins;
    float signal = 0, information = 0;
    for (int k = 0; k < group.lines; ++k) {
      const StackedLine& line = group.line[k];
      if (z < line.first || z >= line.end) continue;
      const LinePosition at = line.at[z - line.first];
      const LineTrace low = trace[at.bin], high = trace[at.bin + 1];
      signal += line.ratio * ((1 - at.part) * low.signal + at.part * high.signal);
      information += line.ratio * line.ratio * ((1 - at.part) * low.information + at.part * high.information);
    }
    const float least = static_cast<float>(kMinInformation) * typical[group.filter] * group.max_ratio2;
    if (!(information > least)) continue;
    gain.seen |= 1u << g;
    if (!(signal > 0)) continue;  // no line has negative flux
    const float own = signal * signal / information;
    gain.dchi2 += own;
    if (own > static_cast<float>(kSignificantGain)) gain.significant |= 1u << g;
  }
  return gain;
}

// The largest gain of a single line at a bin that no line of the redshift explains, of this thread's bins.
__device__ float MostUnexplained(const LinesArgs& args, const LineTrace* trace, float typical, int redshift) {
  const LineStackArrays& stack = args.stack;
  const float least = static_cast<float>(kMinInformation) * typical;
  const double growth = exp(redshift * stack.step);
  float most = 0;
  for (int j = kEdgeBins + static_cast<int>(threadIdx.x); j < args.bins - kEdgeBins; j += kThreads) {
    const float signal = trace[j].signal, information = trace[j].information;
    if (!(information > least) || !(signal * signal > most * information) || !(signal > 0)) continue;
    if (IsExplained(stack.first_wave + j * stack.bin, growth, stack.known_line, stack.known)) continue;
    most = signal * signal / information;
  }
  return most;
}

// A maximum as one integer, of equal ones the first: dchi2 is not negative.
__device__ uint64_t KeyOf(float dchi2, int z) {
  return static_cast<uint64_t>(static_cast<uint32_t>(__float_as_int(dchi2))) << 32 |
         (0xffffffffu - static_cast<uint32_t>(z));
}
__device__ int RedshiftOf(uint64_t key) { return static_cast<int>(0xffffffffu - static_cast<uint32_t>(key)); }
__device__ float Dchi2Of(uint64_t key) { return __int_as_float(static_cast<int>(key >> 32)); }

// The largest key of all threads, 0 if there is none. `scratch`: a key for each warp.
__device__ uint64_t BlockMost(uint64_t key, uint64_t* scratch) {
  for (int mask = kWarp / 2; mask > 0; mask /= 2) {
    const uint64_t other = __shfl_xor_sync(kAllLanes, key, mask);
    key = other > key ? other : key;
  }
  if (threadIdx.x % kWarp == 0) scratch[threadIdx.x / kWarp] = key;
  __syncthreads();
  for (int w = 0; w < kThreads / kWarp; ++w) key = scratch[w] > key ? scratch[w] : key;
  return key;
}

__global__ void __launch_bounds__(kThreads) FindMaxima(LinesArgs args) {
  __shared__ int scratch[2 * kMaxWarps];
  __shared__ uint64_t keys[3][kThreads / kWarp];
  const int row = blockIdx.x, redshifts = args.stack.redshifts;
  const LineTrace* const traces = args.traces + static_cast<int64_t>(row) * kLineFilters * args.bins;
  float typical[kLineFilters];
  for (int f = 0; f < kLineFilters; ++f) {
    const LineTrace* const inner = traces + static_cast<int64_t>(f) * args.bins + kEdgeBins;
    const int size = args.bins - 2 * kEdgeBins;
    typical[f] = BlockMedian([&](int k) { return KeyOfFloat(inner[k].information); }, size, size, scratch);
  }
  float* const dchi2 = args.dchi2 + static_cast<int64_t>(row) * redshifts;
  uint64_t own = 0;
  for (int z = threadIdx.x; z < redshifts; z += kThreads) {
    dchi2[z] = GainAt(args, traces, typical, z).dchi2;
    const uint64_t key = KeyOf(dchi2[z], z);
    own = key > own ? key : own;
  }
  const uint64_t best = BlockMost(own, keys[0]);
  const int at = RedshiftOf(best);
  own = 0;
  for (int z = threadIdx.x; z < redshifts; z += kThreads) {
    if (abs(z - at) <= args.stack.near) continue;
    const uint64_t key = KeyOf(dchi2[z], z);
    own = key > own ? key : own;
  }
  const uint64_t second = BlockMost(own, keys[1]);
  const uint64_t unexplained =
      BlockMost(KeyOf(MostUnexplained(args, traces, typical[0], at), 0), keys[2]);
  if (threadIdx.x != 0) return;
  LineMaxima maxima = {};
  maxima.best = at;
  maxima.dchi2 = Dchi2Of(best);
  const Gain gain = GainAt(args, traces, typical, at);
  maxima.seen = gain.seen;
  maxima.significant = gain.significant;
  maxima.before = at > 0 ? dchi2[at - 1] : 0;
  maxima.after = at + 1 < redshifts ? dchi2[at + 1] : 0;
  maxima.wide_before = dchi2[MirroredRedshift(at, -args.stack.wide, redshifts)];
  maxima.wide_after = dchi2[MirroredRedshift(at, args.stack.wide, redshifts)];
  maxima.unexplained = Dchi2Of(unexplained);
  maxima.second = second == 0 ? -1 : RedshiftOf(second);
  maxima.second_dchi2 = Dchi2Of(second);
  args.maxima[row] = maxima;
}

}  // namespace

cudaError_t StackLines(const LinesArgs& args, cudaStream_t stream) {
  return Launch(FindMaxima, dim3(args.rows), kThreads, 0, stream, args);
}

}  // namespace spexd::cuda
