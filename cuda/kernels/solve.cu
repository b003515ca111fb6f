// Stage "solve": A f = b of each bundle by conjugate gradients. Work is divided into chunks of fibres, each
// taken by a warp or a block. The first steps are kernels over all bundles. After them, one block per bundle
// does the steps that the bundle still needs.
//
// The preconditioner is M = sum over the chunks of F^T F: the rows of L^-1 that a chunk keeps, cut off a halo
// before it, where L L^T = P. It is symmetric and positive definite whatever is cut off, so that conjugate
// gradients converge; the longer the halos, the nearer M is to P^-1.
//
// Floor of a step for a frame (500 fibres of 2350 bins, two tiles below the diagonal one): factors read
// twice, 0.45 GB, A once, 0.45 GB: 0.22 ms; 0.6 Gflop.
#include <algorithm>

#include "core/model/tolerances.h"
#include "cuda/kernels/common/block_sum.cuh"
#include "cuda/kernels/factor/substitution.cuh"
#include "cuda/kernels/solve.h"

namespace spexd::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kTogether = 5;  // blocks of kWarps that share a multiprocessor
constexpr int kSteps = 20;    // steps done for all bundles, before bundles are finished one by one
constexpr int kMaxFinishWarps = 16;
constexpr int kTeam = 128;  // threads that share a part's bins where bins are independent

// A fibre and a chunk of its bins.
struct Part {
  int number, fibre, chunk, bundle;
  ChunkRange range;
  __device__ Part(const SolveArgs& args, int of_job)
      : number(of_job),
        fibre(number / args.chunks.count),
        chunk(number % args.chunks.count),
        bundle(args.fibres.BundleOf(fibre)),
        range(args.chunks, args.normal.bins, chunk) {}
};

// Calls use(bin) for a part's bins, which kThreads threads share: a warp or a whole block.
template <int kThreads, typename Use>
__device__ void ForBins(const Part& part, const Use& use) {
  for (int bin = part.range.core + static_cast<int>(threadIdx.x) % kThreads; bin < part.range.core_end;
       bin += kThreads)
    use(bin);
}

// ---- Sums over a bundle

enum Sum { kProjection, kResidual = kProjection + 3, kCurvature };
static_assert(kCurvature < kSolveSums);

__device__ double* SumsOf(const SolveArgs& args, int which) {
  return args.solve.sums + static_cast<int64_t>(which) * args.fibres.fibres * args.chunks.count;
}
// The place of a step's projection: a step writes its own, and reads those of the two previous steps.
__device__ int ProjectionOf(int step) { return kProjection + step % 3; }

// Stores the sums of `own` over the kThreads threads of a part. The last part of its bundle to do so adds up
// the sums of all parts, in the order of the parts, and calls use(state, totals) in one thread.
template <int kThreads, int kSums, typename Use>
__device__ void AddUp(const SolveArgs& args, const int (&which)[kSums], const Part& part,
                      double (&&own)[kSums], const Use& use) {
  for (double& sum : own) sum = kThreads == kWarp ? WarpSum(sum) : BlockSum<kThreads>(sum);
  if (kThreads > kWarp && threadIdx.x >= kWarp) return;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int first = args.fibres.FirstOf(part.bundle) * args.chunks.count,
            count = args.fibres.EndOf(part.bundle) * args.chunks.count - first;
  SolveState& state = args.solve.states[part.bundle];
  bool last = false;
  if (lane == 0) {
    for (int k = 0; k < kSums; ++k) SumsOf(args, which[k])[part.number] = own[k];
    __threadfence();
    last = atomicAdd(&state.arrived, 1u) % count == static_cast<unsigned>(count - 1);
  }
  if (__ballot_sync(kAllLanes, last) == 0) return;
  __threadfence();
  for (int k = 0; k < kSums; ++k) {
    const volatile double* const sums = SumsOf(args, which[k]) + first;
    own[k] = 0;
    for (int i = lane; i < count; i += kWarp) own[k] += sums[i];
    own[k] = WarpSum(own[k]);
  }
  if (lane == 0) use(state, own);
}

// Whether a bundle has converged. `projection` is its squared error in the norm of A, as M estimates it, and
// `before` that of the previous step. Once it stops falling, the remaining error is rounding.
__device__ bool IsDone(const SolveState& state, int step, double projection, double before) {
  if (!(state.residual > 0)) return true;  // also if it is NaN
  if (state.residual > kFluxResidual * kFluxResidual * state.norm) return false;
  return projection <= kFluxError * kFluxError || (step > 0 && projection >= kFalling * before);
}
// Whether an earlier step found that the part's bundle has converged.
__device__ bool WasDone(const SolveArgs& args, const Part& part) {
  return args.solve.states[part.bundle].steps != 0;
}

__device__ int64_t At(const SolveArgs& args, int fibre, int bin) {
  return static_cast<int64_t>(fibre) * args.normal.bins + bin;
}
__device__ double Diagonal(const SolveArgs& args, int fibre, int bin) {
  const JobFibres& fibres = args.fibres;
  return args.normal.Diagonals(fibres.BlockOf(fibre), 0)[bin * fibres.block + fibres.MemberOf(fibre)];
}

// Whether a part and those coupled to it have converged, judged by the previous step's projection. Such a
// part rests: it takes no direction, and its residual stays as it is.
__device__ bool IsIdle(const SolveArgs& args, int step, const Part& part) {
  if (step == 0) return false;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int first = max(part.fibre - args.normal.fibre_reach, args.fibres.FirstOf(part.bundle));
  const int end = min(part.fibre + args.normal.fibre_reach + 1, args.fibres.EndOf(part.bundle));
  bool busy = false;
  for (int i = lane; i < 3 * (end - first); i += kWarp) {
    const int chunk = min(max(part.chunk + i % 3 - 1, 0), args.chunks.count - 1);
    const double error = SumsOf(args, ProjectionOf(step - 1))[(first + i / 3) * args.chunks.count + chunk];
    busy |= !(error <= kIdle * kFluxError * kFluxError);
  }
  return __ballot_sync(kAllLanes, busy) == 0;
}

// Shared memory for a part's values.
__device__ double* ValuesOf(const SolveArgs& args) {
  return DynamicShared() + threadIdx.x / kWarp * args.chunks.extended;
}

// ---- A

// Returns `sum` plus the sum of matrix[k * stride] x[k * kStep] over k in [0, count). Loads of several k
// overlap.
template <int kStep>
__device__ __forceinline__ double AddProducts(const double* matrix, int64_t stride, const double* x,
                                              int count, double sum) {
  constexpr int kTogether = 7;
  for (; count > 0; count -= kTogether, x += kTogether * kStep) {
    double a[kTogether], b[kTogether];
#pragma unroll
    for (int i = 0; i < kTogether; ++i, matrix += stride) {
      if (i < count) {
        a[i] = *matrix;
        b[i] = x[i * kStep];
      }
    }
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      if (i < count) sum = fma(a[i], b[i], sum);
    }
  }
  return sum;
}

// Entry `bin` of A x for a fibre, with all couplings within its bundle. x: [fibre, bin].
__device__ double Multiply(const SolveArgs& args, int fibre, int bin, const double* x) {
  const NormalArrays& normal = args.normal;
  const JobFibres& fibres = args.fibres;
  const int bundle = fibres.BundleOf(fibre), begin = fibres.FirstOf(bundle), end = fibres.EndOf(bundle);
  const int m = fibres.block, block = fibres.BlockOf(fibre), member = fibres.MemberOf(fibre),
            size = normal.blocks.size, unknown = bin * m + member;
  const int back = min(normal.reach, bin), on = min(normal.reach, normal.bins - 1 - bin);
  double sum = 0;
  // These add the products with bins bin + k of fibre `other`, member + far of its block: add_later where the
  // other bin is the later unknown, for k >= least; add_earlier where it is the earlier one, for k <= most.
  const auto add_later = [&](const double* matrix, int other, int far, int least) {
    sum = AddProducts<1>(matrix + unknown + int64_t{far + least * m} * size, m * size,
                         x + At(args, other, bin + least), on + 1 - least, sum);
  };
  const auto add_earlier = [&](const double* matrix, int other, int far, int most) {
    sum = AddProducts<-1>(matrix + unknown - int64_t{far + most * m} * (size - 1), m * (size - 1),
                          x + At(args, other, bin + most), most + back + 1, sum);
  };
  const double* const own = normal.Diagonals(block, 0);
  int first = fibre - member;  // first fibre of the block
#pragma unroll 1
  for (int other = first; other < min(first + m, end); ++other) {
    const int far = other - fibre;
    add_later(own, other, far, far < 0 ? 1 : 0);
    add_earlier(own, other, far, far < 0 ? 0 : -1);
  }
#pragma unroll 1
  for (int apart = 1; apart <= normal.later_blocks; ++apart) {
    const int later = first + apart * m, earlier = first - apart * m;
#pragma unroll 1
    for (int other = later; other < min(later + m, end); ++other)
      add_later(normal.Diagonals(block, apart), other, other - later - member, -back);
#pragma unroll 1
    for (int other = earlier; other >= begin && other < earlier + m; ++other)
      add_earlier(normal.Diagonals(block - apart, apart), other, other - earlier - member, on);
  }
  return sum;
}

// ---- A step of conjugate gradients, in three phases; each needs the previous phase of the whole bundle.
// They do nothing once the bundle has converged.

// The residual of a step [fibre, bin].
__device__ double* ResidualOf(const SolveArgs& args, int step) {
  return args.solve.residual + step % 2 * At(args, args.fibres.fibres, 0);
}

// Completes the previous step, and preconditions the residual that it leaves.
__device__ void Precondition(const SolveArgs& args, int step, const Part& part) {
  if (WasDone(args, part)) return;
  const ChunkRange& range = part.range;
  const int64_t at = At(args, part.fibre, 0);
  const double alpha = args.solve.states[part.bundle].alpha;
  const double* const before = (step == 0 ? args.normal.data : ResidualOf(args, step - 1)) + at;
  double* const after = ResidualOf(args, step) + at;
  double *const flux = args.solve.flux + at, *const from_next = args.solve.from_next + at,
                *const preconditioned = args.solve.preconditioned + at;
  double norm = 0, projection = 0;
  const auto advance = [&](int bin) {
    const double residual = step == 0 ? before[bin] : fma(-alpha, args.solve.product[at + bin], before[bin]);
    if (bin >= range.core) {
      after[bin] = residual;
      flux[bin] = step == 0 ? 0 : fma(alpha, args.solve.direction[at + bin], flux[bin]);
      norm += residual * residual / Diagonal(args, part.fibre, bin);
    }
    return residual;
  };
  if (!IsIdle(args, step, part)) {
    const Substitution substitution(args.solve.factors, part.fibre, range.first, range.core_end,
                                    ValuesOf(args));
    projection = substitution.Solve(range.core, advance);
    substitution.ForEach(range.first, range.core_end, [&](int bin, double x) {
      (bin < range.core ? from_next : preconditioned)[bin] = x;
    });
  } else {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    for (int bin = range.first + lane; bin < range.core; bin += kWarp) from_next[bin] = 0;
    if (IsIdle(args, step - 1, part)) {
      ForBins<kWarp>(part, [&](int bin) { after[bin] = before[bin]; });
      norm = lane == 0 ? SumsOf(args, kResidual)[part.number] : 0;
    } else {
      ForBins<kWarp>(part, advance);
    }
  }
  AddUp<kWarp>(args, {ProjectionOf(step), kResidual}, part, {projection, norm},
               [&](SolveState& state, const double(&total)[2]) {
                 if (step == 0) state.norm = total[1];
                 state.residual = total[1];
                 state.beta = step == 0 ? 0 : total[0] / state.projection;
                 if (IsDone(state, step, total[0], state.projection)) state.steps = step + 1;
                 state.projection = total[0];
               });
}

// Computes the next direction.
__device__ void Direct(const SolveArgs& args, int step, const Part& part) {
  if (WasDone(args, part)) return;
  const bool idle = IsIdle(args, step, part);
  const double beta = args.solve.states[part.bundle].beta;
  double* const direction = args.solve.direction + At(args, part.fibre, 0);
  const double* const own = args.solve.preconditioned + At(args, part.fibre, 0);
  const double* const next = args.solve.from_next + At(args, part.fibre, 0);
  const int shared = part.range.core_end < args.normal.bins ? part.range.core_end - args.chunks.halo
                                                            : part.range.core_end;  // with the next chunk
  ForBins<kWarp>(part, [&](int bin) {
    const double before = step == 0 ? 0 : beta * direction[bin];
    direction[bin] = idle ? 0 : before + own[bin] + (bin < shared ? 0 : next[bin]);
  });
}

// Multiplies the direction by A.
template <int kThreads>
__device__ void Apply(const SolveArgs& args, int step, const Part& part) {
  if (WasDone(args, part)) return;
  const bool idle = IsIdle(args, step, part);
  double curvature = 0;
  ForBins<kThreads>(part, [&](int bin) {
    const int64_t i = At(args, part.fibre, bin);
    const double product = idle ? 0 : Multiply(args, part.fibre, bin, args.solve.direction);
    args.solve.product[i] = product;
    curvature = fma(args.solve.direction[i], product, curvature);
  });
  AddUp<kThreads>(args, {kCurvature}, part, {curvature}, [](SolveState& state, const double(&total)[1]) {
    state.alpha = state.projection / total[0];
  });
}

// Calls phase(part) for a warp's part.
template <typename Phase>
__device__ void ForOwnPart(const SolveArgs& args, const Phase& phase) {
  const int number = blockIdx.x * kWarps + threadIdx.x / kWarp;
  if (number < args.fibres.fibres * args.chunks.count) phase(Part(args, number));
}

__global__ void __launch_bounds__(kWarps* kWarp, kTogether) PreconditionAll(SolveArgs args, int step) {
  ForOwnPart(args, [&](const Part& part) { Precondition(args, step, part); });
}
__global__ void __launch_bounds__(kWarps* kWarp) DirectAll(SolveArgs args, int step) {
  ForOwnPart(args, [&](const Part& part) { Direct(args, step, part); });
}
__global__ void __launch_bounds__(kTeam, 8) ApplyAll(SolveArgs args, int step) {
  Apply<kTeam>(args, step, Part(args, blockIdx.x));
}

// Does the steps that a bundle still needs, one block per bundle. The first step is already preconditioned.
__global__ void __launch_bounds__(kMaxFinishWarps* kWarp) Finish(SolveArgs args, int first_step) {
  const int first = args.fibres.FirstOf(blockIdx.x) * args.chunks.count,
            end = args.fibres.EndOf(blockIdx.x) * args.chunks.count;
  const auto for_parts = [&](const auto& phase) {
    for (int i = first + static_cast<int>(threadIdx.x / kWarp); i < end; i += blockDim.x / kWarp)
      phase(Part(args, i));
    __syncthreads();
  };
  for (int step = first_step; step < kMaxRefinements && args.solve.states[blockIdx.x].steps == 0; ++step) {
    for_parts([&](const Part& part) { Direct(args, step, part); });
    for_parts([&](const Part& part) { Apply<kWarp>(args, step, part); });
    for_parts([&](const Part& part) { Precondition(args, step + 1, part); });
  }
}

// Computes the exact residual b - A f.
__global__ void __launch_bounds__(kTeam, 8) Remain(SolveArgs args) {
  const Part part(args, blockIdx.x);
  double norm = 0;
  ForBins<kTeam>(part, [&](int bin) {
    const double left =
        args.normal.data[At(args, part.fibre, bin)] - Multiply(args, part.fibre, bin, args.solve.flux);
    norm += left * left / Diagonal(args, part.fibre, bin);
  });
  AddUp<kTeam>(args, {kResidual}, part, {norm}, [&](const SolveState& state, const double(&total)[1]) {
    std::byte* const bundle = args.output.bundles + part.bundle * args.output.bundle_bytes;
    *reinterpret_cast<double*>(bundle + args.output.residual) =
        sqrt(state.norm > 0 ? total[0] / state.norm : total[0]);
  });
}

// Computes P^-1 (1, -1, 1, ...), with halos on both sides of a chunk.
__global__ void __launch_bounds__(kWarps* kWarp, kTogether) Alternate(SolveArgs args) {
  ForOwnPart(args, [&](const Part& part) {
    const Substitution substitution(args.solve.factors, part.fibre, part.range.first, part.range.end,
                                    ValuesOf(args));
    substitution.Solve(part.range.first, [](int bin) { return bin % 2 == 0 ? 1.0 : -1.0; });
    substitution.ForEach(part.range.core, part.range.core_end,
                         [&](int bin, double x) { args.solve.alternating[At(args, part.fibre, bin)] = x; });
  });
}

int Parts(const SolveArgs& args) { return args.fibres.fibres * args.chunks.count; }
int Blocks(const SolveArgs& args) { return (Parts(args) + kWarps - 1) / kWarps; }

// Shared memory for the values of a part of each warp, in bytes.
int64_t ValueBytes(const SolveArgs& args, int warps) {
  return int64_t{warps} * args.chunks.extended * static_cast<int64_t>(sizeof(double));
}

}  // namespace

cudaError_t ConfigureSolve(int shared_bytes) {
  return FirstError({AllowShared(Alternate, shared_bytes), AllowShared(PreconditionAll, shared_bytes),
                     AllowShared(Finish, shared_bytes)});
}

cudaError_t SolveAlternating(const SolveArgs& args, cudaStream_t stream) {
  return Launch(Alternate, Blocks(args), kWarps * kWarp, ValueBytes(args, kWarps), stream, args);
}

cudaError_t SolveFlux(const SolveArgs& args, cudaStream_t stream) {
  const int blocks = Blocks(args), threads = kWarps * kWarp, parts = Parts(args);
  const int64_t bytes = ValueBytes(args, kWarps);
  const int finish_warps =
      std::clamp(static_cast<int>(args.shared_bytes / ValueBytes(args, 1)), 1, kMaxFinishWarps);
  cudaError_t error = cudaMemsetAsync(args.solve.states, 0, args.fibres.bundles * sizeof(SolveState), stream);
  for (int step = 0; step < kSteps && error == cudaSuccess; ++step) {
    error = FirstError({Launch(PreconditionAll, blocks, threads, bytes, stream, args, step),
                        Launch(DirectAll, blocks, threads, 0, stream, args, step),
                        Launch(ApplyAll, parts, kTeam, 0, stream, args, step)});
  }
  return FirstError({error, Launch(PreconditionAll, blocks, threads, bytes, stream, args, kSteps),
                     Launch(Finish, args.fibres.bundles, finish_warps * kWarp, ValueBytes(args, finish_warps),
                            stream, args, kSteps),
                     Launch(Remain, parts, kTeam, 0, stream, args)});
}

}  // namespace spexd::cuda
