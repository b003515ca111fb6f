// Stage "resolution": chooses the number of poles of each chunk's square root, the poles
// (core/extract/pole_formula.h), and how many diagonals they need. A chunk's spectrum lies within that of its
// fibre, and only chunks with a hole need as many poles as the fibre's spectrum demands.
//
// Floor for a frame: P read once, 0.15 GB, 0.04 ms.
#include "core/extract/band_rule.h"
#include "cuda/kernels/root/roots.cuh"

namespace spexd::cuda {
namespace {

constexpr int kThreads = 256;

// Returns the maximum of `own` over the threads of a block.
__device__ double BlockMost(double own, double* shared) {
  own = WarpMost(own);
  __syncthreads();
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = own;
  __syncthreads();
  for (int k = 0; k < kThreads / kWarp; ++k) own = fmax(own, shared[k]);
  return own;
}

// Gershgorin's bound for row j. Each column reaches at least as far as the ones before it.
__device__ double RowSum(const Band& p, int j) {
  double sum = 0;
  for (int k = 0, width = p.WidthOf(j); k <= width; ++k) sum += fabs(p.Value(j + k, j));
  for (int k = 1; k <= j && p.WidthOf(j - k) >= k; ++k) sum += fabs(p.Value(j, j - k));
  return sum;
}

__global__ void __launch_bounds__(kThreads) BoundAndPlan(RootArgs args) {
  __shared__ double shared[kThreads / kWarp];
  __shared__ int widest[kMaxPoles];
  const int fibre = blockIdx.y, bins = args.precision.size, part = fibre * args.chunks.count + blockIdx.x;
  const ChunkRange range(args.chunks, bins, blockIdx.x);
  const Band p(args.precision, fibre);
  const double* const alternating = args.alternating + static_cast<int64_t>(fibre) * bins;
  double own_p = 0, own_c = 0;
  for (int j = range.first + static_cast<int>(threadIdx.x); j < range.end; j += kThreads) {
    own_p = fmax(own_p, RowSum(p, j));
    own_c = fmax(own_c, fabs(alternating[j]));
  }
  const SpectrumBounds bounds = BoundsOf(BlockMost(own_p, shared), BlockMost(own_c, shared));
  const int poles = PolesNeeded(bounds.least, bounds.most);
  DeviceCheck(poles >= 1 && poles <= kMaxPoles && range.count() <= args.chunks.extended);
  const PoleFormula formula(bounds.least, bounds.most, poles);
  double* const shift = args.resolution.pole_shift + part * kMaxPoles;
  double* const weight = args.resolution.pole_weight + part * kMaxPoles;
  // Groups are filled up with poles of zero weight.
  if (threadIdx.x < kMaxPoles) {
    const Pole pole = formula.At(min(static_cast<int>(threadIdx.x), poles - 1));
    shift[threadIdx.x] = pole.shift;
    weight[threadIdx.x] = static_cast<int>(threadIdx.x) < poles ? pole.weight : 0;
    widest[threadIdx.x] = kResolutionHalfWidth;
  }
  __syncthreads();
  // A warp takes a diagonal: poles with shifts below `without` need it.
  const int lane = threadIdx.x % kWarp;
  for (int k = kResolutionHalfWidth + 1 + threadIdx.x / kWarp; k <= p.half_width; k += kThreads / kWarp) {
    double without = 0;
    for (int j = range.first + lane; j < range.end - k; j += kWarp) {
      if (k > p.WidthOf(j)) continue;
      const double entry = p.values[static_cast<int64_t>(k) * bins + j];
      const double most = fmax(fabs(alternating[j]), fabs(alternating[j + k]));
      without = fmax(without, args.conditioned ? ShiftWithout(entry, most) : HUGE_VAL);
    }
    without = WarpMost(without);
    for (int pole = lane; pole < kMaxPoles; pole += kWarp) {
      if (shift[pole] < without) atomicMax(&widest[pole], k);
    }
  }
  __syncthreads();
  if (threadIdx.x < kMaxPoles) args.resolution.widest[part * kMaxPoles + threadIdx.x] = widest[threadIdx.x];
  if (threadIdx.x == 0) {
    double total = 0;
    for (int k = 0; k < kMaxPoles; ++k) {
      total += weight[k];
      weight[k] *= shift[k];
    }
    args.resolution.pole_total[part] = total;
    args.resolution.poles[part] = poles;
  }
}

}  // namespace

cudaError_t PlanPoles(const RootArgs& args, cudaStream_t stream) {
  return Launch(BoundAndPlan, dim3(args.chunks.count, args.fibres), kThreads, 0, stream, args);
}

}  // namespace spexd::cuda
