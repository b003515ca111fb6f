// Stage "solve": A f = b of each bundle by conjugate gradients, preconditioned with the fibres' factored
// precisions P. Work is divided into chunks of fibres, each taken by a warp or a block. The first steps are
// kernels over all bundles. After them, one block per bundle does the steps that the bundle still needs.
//
// Floor of a step for a frame (500 fibres of 2350 bins, two tiles below the diagonal one): factors read
// twice, 0.45 GB, A once, 0.45 GB: 0.22 ms; 0.6 Gflop.
#include "core/model/tolerances.h"
#include "cuda/kernels/common/block_sum.cuh"
#include "cuda/kernels/factor/substitution.cuh"
#include "cuda/kernels/solve.h"

namespace spexd::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kTogether = 5;  // blocks of these that share a multiprocessor
constexpr int kSteps = 20;    // steps done for all bundles, before bundles are finished one by one
constexpr int kFinishWarps = 16;
constexpr int kTeam = 128;  // threads that share a part's bins where bins are independent

// A fibre and a chunk of its bins.
struct Part {
  int fibre, chunk;
  ChunkRange range;
  __device__ Part(const SolveArgs& args, int number)
      : fibre(number / args.chunks.count),
        chunk(number % args.chunks.count),
        range(args.chunks, args.normal.bins, chunk) {}
};

// ---- Sums over a bundle, from one number per part

enum Sum { kDataNorm, kResidual, kNextResidual, kProjection, kNextProjection, kCurvature };
static_assert(kCurvature < kSolveSums);

__device__ double* SumsOf(const SolveArgs& args, int which) {
  return args.solve.sums + static_cast<int64_t>(which) * args.fibres.fibres * args.chunks.count;
}
__device__ double& SumOf(const SolveArgs& args, int which, const Part& part) {
  return SumsOf(args, which)[part.fibre * args.chunks.count + part.chunk];
}
// Stores a part's sum over a warp; KeepTeamSum stores the sum over a block of kTeam threads.
__device__ void KeepSum(const SolveArgs& args, int which, const Part& part, double own) {
  own = WarpSum(own);
  if (threadIdx.x % kWarp == 0) SumOf(args, which, part) = own;
}
__device__ void KeepTeamSum(const SolveArgs& args, int which, const Part& part, double own) {
  own = BlockSum<kTeam>(own);
  if (threadIdx.x == 0) SumOf(args, which, part) = own;
}
__device__ double BundleSum(const SolveArgs& args, int which, int bundle) {
  const int first = args.fibres.FirstOf(bundle) * args.chunks.count;
  const int end = args.fibres.EndOf(bundle) * args.chunks.count;
  double own = 0;
  for (int i = first + static_cast<int>(threadIdx.x) % kWarp; i < end; i += kWarp)
    own += SumsOf(args, which)[i];
  return WarpSum(own);
}
// Each step writes what the next one reads.
__device__ int ResidualOf(int step) { return step % 2 == 0 ? kResidual : kNextResidual; }
__device__ int ProjectionOf(int step) { return step % 2 == 0 ? kProjection : kNextProjection; }

// Whether the bundle has converged. Call it once the step has its projection r^T P^-1 r, which is the squared
// error in the norm of A. If that no longer falls, the remaining error is rounding.
__device__ bool IsDone(const SolveArgs& args, int step, int bundle) {
  const double norm = BundleSum(args, kDataNorm, bundle),
               residual = BundleSum(args, ResidualOf(step), bundle);
  if (!(residual > 0)) return true;  // also if it is NaN
  if (residual > kFluxResidual * kFluxResidual * norm) return false;
  const double error = BundleSum(args, ProjectionOf(step), bundle);
  return error <= kFluxError * kFluxError ||
         (step > 0 && error >= kFalling * BundleSum(args, ProjectionOf(step + 1), bundle));
}

__device__ int64_t At(const SolveArgs& args, int fibre, int bin) {
  return static_cast<int64_t>(fibre) * args.normal.bins + bin;
}
__device__ double Diagonal(const SolveArgs& args, int fibre, int bin) {
  const JobFibres& fibres = args.fibres;
  return args.normal.Diagonals(fibres.BlockOf(fibre), 0)[bin * fibres.block + fibres.MemberOf(fibre)];
}

// Whether a part and those coupled to it have converged, judged by the previous step's projection.
__device__ bool IsIdle(const SolveArgs& args, int step, const Part& part) {
  if (step == 0) return false;
  const int bundle = args.fibres.BundleOf(part.fibre), lane = static_cast<int>(threadIdx.x) % kWarp;
  const int first = max(part.fibre - args.normal.fibre_reach, args.fibres.FirstOf(bundle));
  const int end = min(part.fibre + args.normal.fibre_reach + 1, args.fibres.EndOf(bundle));
  bool busy = false;
  for (int i = lane; i < 3 * (end - first); i += kWarp) {
    const int chunk = min(max(part.chunk + i % 3 - 1, 0), args.chunks.count - 1);
    const double error = SumsOf(args, ProjectionOf(step + 1))[(first + i / 3) * args.chunks.count + chunk];
    busy |= !(error <= kIdle * kFluxError * kFluxError);
  }
  return __ballot_sync(kAllLanes, busy) == 0;
}

// A part's values [extended], in `values` [fibre, chunk, extended] or, if that is null, in shared memory.
__device__ double* ValuesOf(const SolveArgs& args, const Part& part, double* values) {
  if (values == nullptr) return DynamicShared() + threadIdx.x / kWarp * args.chunks.extended;
  const int64_t number = static_cast<int64_t>(part.fibre) * args.chunks.count + part.chunk;
  return values + number * args.chunks.extended;
}
__device__ Substitution SubstitutionOf(const SolveArgs& args, const Part& part, double* values) {
  return {args.solve.factors, args.chunks, part.fibre, part.range, ValuesOf(args, part, values)};
}

// ---- A

// sum + matrix[k * stride] x[k * step] over k in [0, count). Loads of several k are under way together.
template <int kStep>
__device__ __forceinline__ double AddProducts(const double* matrix, int stride, const double* x, int count,
                                              double sum) {
  constexpr int kTogether = 10;
  for (int first = 0; first < count; first += kTogether) {
    double a[kTogether], b[kTogether];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const int k = min(first + i, count - 1);
      a[i] = matrix[int64_t{k} * stride];
      b[i] = x[k * kStep];
    }
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      if (first + i < count) sum = fma(a[i], b[i], sum);
    }
  }
  return sum;
}

// Entry `bin` of A x for a fibre, with all couplings within its bundle. x: [fibre, bin].
__device__ double Multiply(const SolveArgs& args, int fibre, int bin, const double* x) {
  const NormalArrays& normal = args.normal;
  const int bundle = args.fibres.BundleOf(fibre), begin = args.fibres.FirstOf(bundle),
            end = args.fibres.EndOf(bundle), block = args.fibres.BlockOf(fibre),
            member = args.fibres.MemberOf(fibre);
  const int m = args.fibres.block, size = normal.blocks.size, unknown = bin * m + member;
  const int back = min(normal.reach, bin), on = min(normal.reach, normal.bins - 1 - bin);
  double sum = 0;
#pragma unroll 1
  for (int i = 0; i <= 2 * normal.later_blocks; ++i) {  // this block, the next, the one before, ...
    const int apart = i % 2 == 0 ? -i / 2 : i / 2 + 1, first = fibre - member + apart * m;
#pragma unroll 1
    for (int other = max(first, begin); other < min(first + m, end); ++other) {
      const double* const values = normal.Diagonals(apart < 0 ? block + apart : block, abs(apart)) + unknown;
      const double* const of_other = x + At(args, other, bin);
      // Bin + k of the other fibre is unknown + far + k m there. From k = `later` on it is the later unknown.
      const int far = other - first - member, later = apart > 0 ? -back : apart < 0 ? on + 1 : far < 0;
      sum = AddProducts<1>(values + int64_t{far + later * m} * size, m * size, of_other + later,
                           on + 1 - later, sum);
      sum = AddProducts<-1>(values - int64_t{far + (later - 1) * m} * (size - 1), m * (size - 1),
                            of_other + later - 1, later + back, sum);
    }
  }
  return sum;
}

// ---- A step of conjugate gradients, in four phases; each needs the previous phase of the whole bundle

// Threads that share a part's bins: a warp or a whole block.
struct Team {
  int thread, count;

  template <typename Use>
  __device__ void ForBins(const Part& part, const Use& use) const {
    for (int bin = part.range.core + thread; bin < part.range.core_end; bin += count) use(bin);
  }
};
__device__ Team WarpTeam() { return {static_cast<int>(threadIdx.x) % kWarp, kWarp}; }
__device__ Team BlockTeam() { return {static_cast<int>(threadIdx.x), kTeam}; }

// `values`: see ValuesOf.
__device__ void Precondition(const SolveArgs& args, int step, const Part& part, double* values) {
  double* const out = args.solve.preconditioned + At(args, part.fibre, 0);
  double product = 0;
  if (IsIdle(args, step, part)) {
    WarpTeam().ForBins(part, [&](int bin) { out[bin] = 0; });
  } else {
    const Substitution substitution = SubstitutionOf(args, part, values);
    const double* const residual = args.solve.residual + At(args, part.fibre, 0);
    substitution.Solve([&](int bin) { return residual[bin]; });
    substitution.ForKept([&](int bin, double x) {
      out[bin] = x;
      product = fma(x, residual[bin], product);
    });
  }
  KeepSum(args, ProjectionOf(step), part, product);
}

// The next direction; parts at rest take none.
__device__ void Direct(const SolveArgs& args, int step, const Part& part, const Team& team) {
  const int bundle = args.fibres.BundleOf(part.fibre);
  const bool idle = IsIdle(args, step, part);
  const double beta = step == 0 ? 0
                                : BundleSum(args, ProjectionOf(step), bundle) /
                                      BundleSum(args, ProjectionOf(step + 1), bundle);
  double* const direction = args.solve.direction + At(args, part.fibre, 0);
  const double* const preconditioned = args.solve.preconditioned + At(args, part.fibre, 0);
  team.ForBins(part, [&](int bin) {
    const double before = step == 0 ? 0 : beta * direction[bin];
    direction[bin] = idle ? 0 : before + preconditioned[bin];
  });
}

// A times the direction. Returns this thread's contribution to the direction's curvature.
__device__ double Apply(const SolveArgs& args, int step, const Part& part, const Team& team) {
  const bool idle = IsIdle(args, step, part);
  double curvature = 0;
  team.ForBins(part, [&](int bin) {
    const int64_t i = At(args, part.fibre, bin);
    const double product = idle ? 0 : Multiply(args, part.fibre, bin, args.solve.direction);
    args.solve.product[i] = product;
    curvature = fma(args.solve.direction[i], product, curvature);
  });
  return curvature;
}

// Returns this thread's contribution to the residual.
__device__ double Advance(const SolveArgs& args, int step, const Part& part, const Team& team) {
  const int bundle = args.fibres.BundleOf(part.fibre);
  const double alpha = BundleSum(args, ProjectionOf(step), bundle) / BundleSum(args, kCurvature, bundle);
  double norm = 0;
  team.ForBins(part, [&](int bin) {
    const int64_t i = At(args, part.fibre, bin);
    const double residual = fma(-alpha, args.solve.product[i], args.solve.residual[i]);
    args.solve.flux[i] = fma(alpha, args.solve.direction[i], args.solve.flux[i]);
    args.solve.residual[i] = residual;
    norm += residual * residual / Diagonal(args, part.fibre, bin);
  });
  return norm;
}

// Whether an earlier step found that the part's bundle has converged.
__device__ bool WasDone(const SolveArgs& args, const Part& part) {
  return args.solve.done[args.fibres.BundleOf(part.fibre)] != 0;
}

template <typename Phase>
__device__ void ForOwnPart(const SolveArgs& args, const Phase& phase) {
  const int number = blockIdx.x * kWarps + threadIdx.x / kWarp;
  if (number >= args.fibres.fibres * args.chunks.count) return;
  const Part part(args, number);
  phase(part);
}

__global__ void __launch_bounds__(kTeam) Begin(SolveArgs args) {
  const Part part(args, blockIdx.x);
  double norm = 0;
  BlockTeam().ForBins(part, [&](int bin) {
    const int64_t i = At(args, part.fibre, bin);
    const double data = args.normal.data[i];
    args.solve.flux[i] = 0;
    args.solve.residual[i] = data;
    norm += data * data / Diagonal(args, part.fibre, bin);
  });
  KeepTeamSum(args, kDataNorm, part, norm);
  if (threadIdx.x != 0) return;
  SumOf(args, kResidual, part) = SumOf(args, kDataNorm, part);
  args.solve.done[args.fibres.BundleOf(part.fibre)] = 0;
}

__global__ void __launch_bounds__(kWarps* kWarp, kTogether)
    PreconditionAll(SolveArgs args, int step, double* values) {
  ForOwnPart(args, [&](const Part& part) {
    if (!WasDone(args, part)) Precondition(args, step, part, values);
  });
}
__global__ void __launch_bounds__(kTeam) DirectAll(SolveArgs args, int step) {
  const Part part(args, blockIdx.x);
  const int bundle = args.fibres.BundleOf(part.fibre);
  if (WasDone(args, part)) return;
  if (!IsDone(args, step, bundle)) {
    Direct(args, step, part, BlockTeam());
  } else if (threadIdx.x == 0) {
    args.solve.done[bundle] = 1;
  }
}
__global__ void __launch_bounds__(kTeam) ApplyAll(SolveArgs args, int step) {
  const Part part(args, blockIdx.x);
  if (!WasDone(args, part)) KeepTeamSum(args, kCurvature, part, Apply(args, step, part, BlockTeam()));
}
__global__ void __launch_bounds__(kTeam) AdvanceAll(SolveArgs args, int step) {
  const Part part(args, blockIdx.x);
  if (!WasDone(args, part))
    KeepTeamSum(args, ResidualOf(step + 1), part, Advance(args, step, part, BlockTeam()));
}

// The steps that a bundle still needs, done by one block. The first step is already preconditioned.
__global__ void __launch_bounds__(kFinishWarps* kWarp) Finish(SolveArgs args, int first_step) {
  const int bundle = blockIdx.x, warp = threadIdx.x / kWarp;
  const int first = args.fibres.FirstOf(bundle) * args.chunks.count,
            end = args.fibres.EndOf(bundle) * args.chunks.count;
  for (int step = first_step; step < kMostRefinements; ++step) {
    if (args.solve.done[bundle] != 0 || IsDone(args, step, bundle)) return;
    for (int i = first + warp; i < end; i += kFinishWarps) Direct(args, step, Part(args, i), WarpTeam());
    __syncthreads();
    for (int i = first + warp; i < end; i += kFinishWarps) {
      const Part part(args, i);
      KeepSum(args, kCurvature, part, Apply(args, step, part, WarpTeam()));
    }
    __syncthreads();
    for (int i = first + warp; i < end; i += kFinishWarps) {
      const Part part(args, i);
      KeepSum(args, ResidualOf(step + 1), part, Advance(args, step, part, WarpTeam()));
    }
    __syncthreads();
    for (int i = first + warp; i < end; i += kFinishWarps)
      Precondition(args, step + 1, Part(args, i), args.solve.flux_values);
    __syncthreads();
  }
}

// The exact residual b - A f.
__global__ void __launch_bounds__(kTeam) Remain(SolveArgs args) {
  const Part part(args, blockIdx.x);
  double norm = 0;
  BlockTeam().ForBins(part, [&](int bin) {
    const double left =
        args.normal.data[At(args, part.fibre, bin)] - Multiply(args, part.fibre, bin, args.solve.flux);
    norm += left * left / Diagonal(args, part.fibre, bin);
  });
  KeepTeamSum(args, kResidual, part, norm);
}

__global__ void __launch_bounds__(kWarp) KeepResidual(SolveArgs args) {
  const double norm = BundleSum(args, kDataNorm, blockIdx.x), left = BundleSum(args, kResidual, blockIdx.x);
  if (threadIdx.x != 0) return;
  std::byte* const bundle = args.output.bundles + blockIdx.x * args.output.bundle_bytes;
  *reinterpret_cast<double*>(bundle + args.output.residual) = norm > 0 ? sqrt(left / norm) : sqrt(left);
}

__global__ void __launch_bounds__(kWarps* kWarp, kTogether) Alternate(SolveArgs args, double* values) {
  ForOwnPart(args, [&](const Part& part) {
    const Substitution substitution = SubstitutionOf(args, part, values);
    substitution.Solve([](int bin) { return bin % 2 == 0 ? 1.0 : -1.0; });
    substitution.ForKept([&](int bin, double x) { args.solve.alternating[At(args, part.fibre, bin)] = x; });
  });
}

int Parts(const SolveArgs& args) { return args.fibres.fibres * args.chunks.count; }
int Blocks(const SolveArgs& args) { return (Parts(args) + kWarps - 1) / kWarps; }

// Shared memory for the values of a block's parts, in bytes; 0 if that is too much.
int64_t ValueBytes(const SolveArgs& args) {
  const int64_t bytes = int64_t{kWarps} * args.chunks.extended * static_cast<int64_t>(sizeof(double));
  return bytes <= args.shared_bytes ? bytes : 0;
}

}  // namespace

cudaError_t ConfigureSolve(int shared_bytes) {
  return FirstError({AllowShared(Alternate, shared_bytes), AllowShared(PreconditionAll, shared_bytes)});
}

// Both run at the same time: where values exceed shared memory, each has an array of its own.
cudaError_t SolveAlternating(const SolveArgs& args, cudaStream_t stream) {
  const int64_t bytes = ValueBytes(args);
  double* const values = bytes > 0 ? nullptr : args.solve.alternating_values;
  return Launch(Alternate, Blocks(args), kWarps * kWarp, bytes, stream, args, values);
}

cudaError_t SolveFlux(const SolveArgs& args, cudaStream_t stream) {
  const int blocks = Blocks(args), threads = kWarps * kWarp, parts = Parts(args);
  const int64_t bytes = ValueBytes(args);
  double* const values = bytes > 0 ? nullptr : args.solve.flux_values;
  cudaError_t error = Launch(Begin, parts, kTeam, 0, stream, args);
  for (int step = 0; step < kSteps && error == cudaSuccess; ++step) {
    error = FirstError({Launch(PreconditionAll, blocks, threads, bytes, stream, args, step, values),
                        Launch(DirectAll, parts, kTeam, 0, stream, args, step),
                        Launch(ApplyAll, parts, kTeam, 0, stream, args, step),
                        Launch(AdvanceAll, parts, kTeam, 0, stream, args, step)});
  }
  return FirstError({error, Launch(PreconditionAll, blocks, threads, bytes, stream, args, kSteps, values),
                     Launch(Finish, args.fibres.bundles, kFinishWarps * kWarp, 0, stream, args, kSteps),
                     Launch(Remain, parts, kTeam, 0, stream, args),
                     Launch(KeepResidual, args.fibres.bundles, kWarp, 0, stream, args)});
}

}  // namespace spexd::cuda
