// Stage "resolution": number of poles of the square root of each chunk of a fibre, and the poles
// (core/extract/pole_formula.h). A chunk's spectrum lies within that of its fibre: only chunks with a hole
// need the poles that it asks for.
//
// Floor for a frame: P read once, 0.15 GB, 0.04 ms.
#include "core/extract/pole_formula.h"
#include "cuda/kernels/factor/band.cuh"
#include "cuda/kernels/root/resolution.h"

namespace spexd::cuda {
namespace {

constexpr int kThreads = 128;

// Maximum of `own` over the threads of a block.
__device__ double BlockMost(double own, double* shared) {
  own = WarpMost(own);
  __syncthreads();
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = own;
  __syncthreads();
  for (int k = 0; k < kThreads / kWarp; ++k) own = fmax(own, shared[k]);
  return own;
}

// Gershgorin's bound of row j.
__device__ double RowSum(const Band& p, int j, int most) {
  double sum = fabs(p.At(j, j));
  for (int k = 1; k <= p.WidthOf(j); ++k) sum += fabs(p.At(j + k, j));
  for (int k = 1; k <= min(j, most); ++k) sum += fabs(p.At(j, j - k));
  return sum;
}

__global__ void __launch_bounds__(kThreads) BoundAndPlan(RootArgs args) {
  __shared__ double shared[kThreads / kWarp];
  const int fibre = blockIdx.y, bins = args.precision.size, part = fibre * args.chunks.count + blockIdx.x;
  const ChunkRange range(args.chunks, bins, blockIdx.x);
  const Band p(args.precision, fibre);
  const double* const alternating = args.alternating + static_cast<int64_t>(fibre) * bins;
  double own_p = 0, own_c = 0;
  int widest = 0;
  for (int j = max(range.first - args.precision.diagonals, 0) + static_cast<int>(threadIdx.x); j < range.end;
       j += kThreads)
    widest = max(widest, p.WidthOf(j));
  widest = static_cast<int>(BlockMost(widest, shared));
  for (int j = range.first + static_cast<int>(threadIdx.x); j < range.end; j += kThreads) {
    own_p = fmax(own_p, RowSum(p, j, widest));
    own_c = fmax(own_c, fabs(alternating[j]));
  }
  const SpectrumBounds bounds = BoundsOf(BlockMost(own_p, shared), BlockMost(own_c, shared));
  const int poles = PolesNeeded(bounds.least, bounds.most);
  DeviceCheck(poles >= 1 && poles <= kMaxPoles);
  const PoleFormula formula(bounds.least, bounds.most, poles);
  double* const shift = args.resolution.pole_shift + part * kMaxPoles;
  double* const weight = args.resolution.pole_weight + part * kMaxPoles;
  // Groups are filled up with poles of no weight.
  if (threadIdx.x < kMaxPoles) {
    const Pole pole = formula.At(min(static_cast<int>(threadIdx.x), poles - 1));
    shift[threadIdx.x] = pole.shift;
    weight[threadIdx.x] = static_cast<int>(threadIdx.x) < poles ? pole.weight : 0;
  }
  __syncthreads();
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
