// Lines: the stack of a target's traces in all its arms and exposures, at each redshift, and its maxima. Each
// block processes a target.
//
// Floor for a frame: traces are read, 19 MB: 4 us; 0.6 GFLOP: 10 us. Each redshift gathers from nine lines,
// whose traces stay in the first-level cache: 40 us.
#include "core/analysis/edge_bins.h"
#include "core/analysis/lines/line_constants.h"
#include "cuda/analysis/common/block_median.cuh"
#include "cuda/analysis/lines/lines.h"
#include "cuda/kernels/common/machine.cuh"

namespace spexd::cuda {
namespace {

constexpr int kThreads = 512, kMedianThreads = 256;
constexpr float kInfinity = __builtin_huge_valf();

struct Gain {
  float dchi2;
  uint32_t seen, significant;  // groups, as in StackMaxima
};

// The rows of a target in each arm. With kFrame a target is one row of one arm, which the compiler knows: the
// stack then has no loops over arms and rows.
template <bool kFrame>
struct RowsOf {
  int arms, first, end;

  __device__ RowsOf(const StackArgs& args, int target)
      : arms(kFrame ? 1 : args.arms),
        first(kFrame ? target : args.first_row[target]),
        end(kFrame ? target + 1 : args.first_row[target + 1]) {}
};

// Returns the gain at redshift z. Signals and informations of all arms and exposures are added before the
// gain is computed. A group counts where it has more information than the least typical information of those
// that see a line of it.
template <bool kFrame>
__device__ Gain GainAt(const StackArgs& args, const RowsOf<kFrame>& rows, int z) {
  Gain gain = {0, 0, 0};
  for (int g = 0; g < args.stack.groups; ++g) {
    float signal = 0, information = 0, least = kInfinity;
    for (int a = 0; a < rows.arms; ++a) {
      const LineArm& arm = args.arm[a];
      const StackedGroup& group = arm.group[g];
      for (int row = rows.first; row < rows.end; ++row) {
        const int64_t at_row = static_cast<int64_t>(row) * kLineFilters + group.filter;
        const LineTrace* const trace = arm.traces + at_row * arm.bins;
        bool seen = false;
        for (int k = 0; k < group.lines; ++k) {
          const StackedLine& line = group.line[k];
          if (z < line.first || z >= line.end) continue;
          seen = true;
          const LinePosition at = line.at[z - line.first];
          const LineTrace low = trace[at.bin], high = trace[at.bin + 1];
          signal += line.ratio * ((1 - at.part) * low.signal + at.part * high.signal);
          information +=
              line.ratio * line.ratio * ((1 - at.part) * low.information + at.part * high.information);
        }
        if (!seen) continue;
        const float typical = args.typical[static_cast<int64_t>(a) * args.rows * kLineFilters + at_row];
        const float own = static_cast<float>(kMinInformation) * typical * group.max_ratio2;
        if (own > 0) least = min(least, own);  // ignored if most of its bins have no information
      }
    }
    if (!(information > (least < kInfinity ? least : 0))) continue;
    gain.seen |= 1u << g;
    if (!(signal > 0)) continue;  // no line has negative flux
    const float own = signal * signal / information;
    gain.dchi2 += own;
    if (own > static_cast<float>(kSignificantGain)) gain.significant |= 1u << g;
  }
  return gain;
}

// Returns the largest gain, among this thread's bins, of a single line at a bin that no line of the redshift
// explains.
template <bool kFrame>
__device__ float MostUnexplained(const StackArgs& args, const RowsOf<kFrame>& rows, int redshift) {
  const double growth = exp(redshift * args.stack.step);
  float most = 0;
  for (int a = 0; a < rows.arms; ++a) {
    const LineArm& arm = args.arm[a];
    for (int row = rows.first; row < rows.end; ++row) {
      const int64_t at_row = static_cast<int64_t>(row) * kLineFilters;
      const LineTrace* const trace = arm.traces + at_row * arm.bins;
      const float least = static_cast<float>(kMinInformation) *
                          args.typical[static_cast<int64_t>(a) * args.rows * kLineFilters + at_row];
      for (int j = kEdgeBins + static_cast<int>(threadIdx.x); j < arm.bins - kEdgeBins; j += kThreads) {
        const float signal = trace[j].signal, information = trace[j].information;
        if (!(information > least) || !(signal * signal > most * information) || !(signal > 0)) continue;
        if (IsExplained(arm.first_wave + j * arm.bin, growth, args.stack.known_line, args.stack.known))
          continue;
        most = signal * signal / information;
      }
    }
  }
  return most;
}

// Packs a maximum into one integer; of equal maxima the first is largest. REQUIRES: dchi2 >= 0.
__device__ uint64_t KeyOf(float dchi2, int z) {
  return static_cast<uint64_t>(static_cast<uint32_t>(__float_as_int(dchi2))) << 32 |
         (0xffffffffu - static_cast<uint32_t>(z));
}
__device__ int RedshiftOf(uint64_t key) { return static_cast<int>(0xffffffffu - static_cast<uint32_t>(key)); }
__device__ float Dchi2Of(uint64_t key) { return __int_as_float(static_cast<int>(key >> 32)); }

// Returns the largest key of all threads, 0 if there is none. `scratch`: one key for each warp.
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

// Finds the typical information: each block processes a row of an arm and a filter.
__global__ void __launch_bounds__(kMedianThreads) TypicalInformation(StackArgs args) {
  __shared__ int scratch[2 * kMaxWarps];
  const LineArm& arm = args.arm[blockIdx.y];
  const int size = arm.bins - 2 * kEdgeBins;
  const LineTrace* const inner = arm.traces + static_cast<int64_t>(blockIdx.x) * arm.bins + kEdgeBins;
  const float median =
      BlockMedian([&](int k) { return KeyOfFloat(inner[k].information); }, size, size, scratch);
  if (threadIdx.x == 0)
    args.typical[static_cast<int64_t>(blockIdx.y) * gridDim.x + blockIdx.x] = median;
}

template <bool kFrame>
__global__ void __launch_bounds__(kThreads) FindMaxima(StackArgs args) {
  __shared__ uint64_t keys[3][kThreads / kWarp];
  const int target = blockIdx.x, redshifts = args.stack.redshifts;
  const RowsOf<kFrame> rows(args, target);
  float* const dchi2 = args.dchi2 + static_cast<int64_t>(target) * redshifts;
  uint64_t own = 0;
  for (int z = threadIdx.x; z < redshifts; z += kThreads) {
    dchi2[z] = GainAt(args, rows, z).dchi2;
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
  const uint64_t unexplained = BlockMost(KeyOf(MostUnexplained(args, rows, at), 0), keys[2]);
  if (threadIdx.x != 0) return;
  LineMaxima maxima = {};
  maxima.best = at;
  maxima.dchi2 = Dchi2Of(best);
  const Gain gain = GainAt(args, rows, at);
  maxima.seen = gain.seen;
  maxima.significant = gain.significant;
  maxima.before = at > 0 ? dchi2[at - 1] : 0;
  maxima.after = at + 1 < redshifts ? dchi2[at + 1] : 0;
  maxima.wide_before = dchi2[MirroredRedshift(at, -args.stack.wide, redshifts)];
  maxima.wide_after = dchi2[MirroredRedshift(at, args.stack.wide, redshifts)];
  maxima.unexplained = Dchi2Of(unexplained);
  maxima.second = second == 0 ? -1 : RedshiftOf(second);
  maxima.second_dchi2 = Dchi2Of(second);
  args.maxima[target] = maxima;
}

}  // namespace

cudaError_t StackLines(const StackArgs& args, cudaStream_t stream) {
  const cudaError_t error =
      Launch(TypicalInformation, dim3(args.rows * kLineFilters, args.arms), kMedianThreads, 0, stream, args);
  if (error != cudaSuccess) return error;
  return Launch(args.frame ? FindMaxima<true> : FindMaxima<false>, dim3(args.targets), kThreads, 0, stream, args);
}

}  // namespace spexd::cuda
