// Stage "solve": A f = b of each bundle by conjugate gradients, preconditioned by the fibres' precisions P, which are
// factored. Work is cut into chunks of fibres, a warp each; the first steps are kernels over all bundles, what is left
// of a bundle that needs more is done by a block alone.
//
// Floor of a step for a frame (500 fibres of 2350 bins, two tiles below the diagonal one): factors read twice, 0.45 GB,
// A once, 0.45 GB: 0.22 ms; 0.6 Gflop.
#include "cuda/kernels/solve.h"

#include "core/model/tolerances.h"
#include "cuda/kernels/band.cuh"

namespace spexd::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kSteps = 12;       // by all, before bundles are finished one by one
constexpr int kFinishWarps = 16;

// A fibre and a chunk of its bins.
struct Part {
  int fibre, chunk;
  ChunkRange range;
  __device__ Part(const SolveArgs& args, int number)
      : fibre(number / args.chunks.count),
        chunk(number % args.chunks.count),
        range(args.chunks, args.normal.bins, chunk) {}
};

// ---- Sums over a bundle, from a number that each part leaves

enum Sum { kDataNorm, kResidual, kNextResidual, kProjection, kNextProjection, kCurvature };
static_assert(kCurvature < kSolveSums);

__device__ double* SumsOf(const SolveArgs& args, int which) {
  return args.solve.sums + static_cast<int64_t>(which) * args.fibres.fibres * args.chunks.count;
}
__device__ void KeepSum(const SolveArgs& args, int which, const Part& part, double own) {
  own = WarpSum(own);
  if (threadIdx.x % kWarp == 0) SumsOf(args, which)[part.fibre * args.chunks.count + part.chunk] = own;
}
__device__ double BundleSum(const SolveArgs& args, int which, int bundle) {
  const int first = args.fibres.FirstOf(bundle) * args.chunks.count;
  const int end = args.fibres.EndOf(bundle) * args.chunks.count;
  double own = 0;
  for (int i = first + static_cast<int>(threadIdx.x) % kWarp; i < end; i += kWarp) own += SumsOf(args, which)[i];
  return WarpSum(own);
}
// Each step writes what the next one reads.
__device__ int ResidualOf(int step) { return step % 2 == 0 ? kResidual : kNextResidual; }
__device__ int ProjectionOf(int step) { return step % 2 == 0 ? kProjection : kNextProjection; }

// Whether nothing is left to be done for a bundle; a step that finds so says it to the next by a residual of 0.
__device__ bool IsOver(const SolveArgs& args, int step, int bundle) {
  return !(BundleSum(args, ResidualOf(step), bundle) > 0);  // also where it is not a number
}
// Once the step has its projection, r^T P^-1 r: the error's square in the norm of A. What is left of it is rounding
// where it falls no more.
__device__ bool IsDone(const SolveArgs& args, int step, int bundle) {
  constexpr double kFalling = 0.25;
  const double norm = BundleSum(args, kDataNorm, bundle), residual = BundleSum(args, ResidualOf(step), bundle);
  if (!(residual > 0)) return true;
  if (residual > kFluxResidual * kFluxResidual * norm) return false;
  const double error = BundleSum(args, ProjectionOf(step), bundle);
  return error <= kFluxError * kFluxError ||
         (step > 0 && error >= kFalling * BundleSum(args, ProjectionOf(step + 1), bundle));
}

__device__ int64_t At(const SolveArgs& args, int fibre, int bin) {
  return static_cast<int64_t>(fibre) * args.normal.bins + bin;
}
__device__ double Diagonal(const SolveArgs& args, int fibre, int bin) {
  return args.normal.own[At(args, fibre * (args.normal.reach + 1), bin)];
}

// ---- P^-1

// One fibre's factor, and a chunk's values on their way: [tile row of the chunk, kTile].
struct Substitution {
  const SolveArgs& args;
  const Part& part;
  const LanePlaces& at;
  double* values;

  __device__ int first_tile() const { return part.range.first / kTile; }
  __device__ int tiles() const { return TilesOf(part.range.count()); }
  __device__ const double* Tile(int column, int k) const {
    const FactorArrays& factors = args.solve.factors;
    const int64_t column_at = static_cast<int64_t>(part.fibre) * factors.columns + first_tile() + column;
    return factors.values + (column_at * (1 + factors.tiles) + k) * kTileSize;
  }
  __device__ FactorDepths depths() const {
    return {args.solve.factors.depths + part.fibre * args.chunks.count, args.chunks};
  }

  // What is fetched ahead of its use: two tiles beside the diagonal one, and that.
  struct Tiles {
    double inverse[2], beside[2][2];
  };
  __device__ __forceinline__ Tiles RowTiles(int row) const {
    Tiles of = {};
#pragma unroll
    for (int k = 1; k <= 2; ++k) {
      if (row >= k && row < tiles() && depths().Reaches(first_tile() + row, k)) LoadPair(Tile(row - k, k), of.beside[k - 1]);
    }
    return of;
  }
  __device__ __forceinline__ Tiles ColumnTiles(int column) const {
    Tiles of = {};
    if (column < 0) return of;
    LoadPair(Tile(column, 0), of.inverse);
#pragma unroll
    for (int k = 1; k <= 2; ++k) {
      if (column + k < tiles() && k <= depths().Of(first_tile() + column)) LoadPair(Tile(column, k), of.beside[k - 1]);
    }
    return of;
  }

  // z = b less what the tiles before take.
  template <typename Right>
  __device__ void Forward(const Right& right) const {
    Tiles next = RowTiles(0);
    for (int row = 0; row < tiles(); ++row) {
      const Tiles now = next;
      next = RowTiles(row + 1);
      const int bin = part.range.first + row * kTile + at.row;
      const double own = bin < args.normal.bins ? right(bin) : 0;
      double sum = 0;
#pragma unroll
      for (int k = 1; k <= 2; ++k) {
        if (k > row) continue;
        const double* const z = values + (row - k) * kTile + at.column;
        sum = fma(now.beside[k - 1][0], z[0], fma(now.beside[k - 1][1], z[1], sum));
      }
      const int back = min(row, depths().Before(first_tile() + row));
#pragma unroll 1
      for (int k = 3; k <= back; ++k) {
        if (!depths().Reaches(first_tile() + row, k)) continue;
        double y[2];
        LoadPair(Tile(row - k, k), y);
        const double* const z = values + (row - k) * kTile + at.column;
        sum = fma(y[0], z[0], fma(y[1], z[1], sum));
      }
      sum += ShuffleXor(sum, 1);
      sum += ShuffleXor(sum, 2);
      if (at.column == 0) values[row * kTile + at.row] = own - sum;
      __syncwarp();
    }
  }

  // x = L^-T L^-1 z less what the tiles behind take.
  __device__ void Backward() const {
    Tiles next = ColumnTiles(tiles() - 1);
    for (int row = tiles() - 1; row >= 0; --row) {
      const Tiles now = next;
      next = ColumnTiles(row - 1);
      const double* const z = values + row * kTile + at.column;
      double u = fma(now.inverse[0], z[0], now.inverse[1] * z[1]);
      u += ShuffleXor(u, 1);
      u += ShuffleXor(u, 2);
      double x0 = now.inverse[0] * u, x1 = now.inverse[1] * u;
      const int behind = min(tiles() - 1 - row, depths().Of(first_tile() + row));
#pragma unroll
      for (int k = 1; k <= 2; ++k) {
        if (k > behind) continue;
        const double other = values[(row + k) * kTile + at.row];
        x0 = fma(-now.beside[k - 1][0], other, x0);
        x1 = fma(-now.beside[k - 1][1], other, x1);
      }
#pragma unroll 1
      for (int k = 3; k <= behind; ++k) {
        double y[2];
        LoadPair(Tile(row, k), y);
        const double other = values[(row + k) * kTile + at.row];
        x0 = fma(-y[0], other, x0);
        x1 = fma(-y[1], other, x1);
      }
#pragma unroll
      for (int mask = 4; mask < kWarp; mask *= 2) {
        x0 += ShuffleXor(x0, mask);
        x1 += ShuffleXor(x1, mask);
      }
      __syncwarp();
      if (at.row == 0) {
        values[row * kTile + at.column] = x0;
        values[row * kTile + at.column + 1] = x1;
      }
      __syncwarp();
    }
  }

  // Calls use(bin, x) for the bins that are kept, a lane each in turn.
  template <typename Use>
  __device__ void ForKept(const Use& use) const {
    for (int bin = part.range.core + static_cast<int>(threadIdx.x) % kWarp; bin < part.range.core_end; bin += kWarp)
      use(bin, values[bin - part.range.first]);
  }
};

// In shared memory where that is enough for the block.
__device__ double* ValuesOf(const SolveArgs& args, const Part& part) {
  if (args.values_in_shared) return DynamicShared() + threadIdx.x / kWarp * args.chunks.extended;
  const int64_t number = static_cast<int64_t>(part.fibre) * args.chunks.count + part.chunk;
  return args.solve.values + number * args.chunks.extended;
}

// ---- A

// Entry `bin` of A x for a fibre, all couplings within its bundle; x(fibre, bin).
template <typename Vector>
__device__ double Multiply(const SolveArgs& args, int fibre, int bin, const Vector& x) {
  const NormalArrays& normal = args.normal;
  const int reach = normal.reach, bundle = args.fibres.BundleOf(fibre);
  const int back = min(reach, bin), on = min(reach, normal.bins - 1 - bin);
  const double* const own = normal.own + At(args, fibre * (reach + 1), 0);
  double sum = own[bin] * x(fibre, bin);
  for (int k = 1; k <= on; ++k) sum = fma(own[static_cast<int64_t>(k) * normal.bins + bin], x(fibre, bin + k), sum);
  for (int k = 1; k <= back; ++k)
    sum = fma(own[static_cast<int64_t>(k) * normal.bins + bin - k], x(fibre, bin - k), sum);
  for (int apart = 1; apart <= normal.fibre_reach; ++apart) {
    const int later = fibre + apart, earlier = fibre - apart;
    const auto between = [&](int first, int k) {
      return normal.between + At(args, ((apart - 1) * args.fibres.fibres + first) * (2 * reach + 1) + k + reach, 0);
    };
    if (later < args.fibres.EndOf(bundle)) {
      for (int k = -back; k <= on; ++k) sum = fma(between(fibre, k)[bin], x(later, bin + k), sum);
    }
    if (earlier >= args.fibres.FirstOf(bundle)) {
      for (int k = -on; k <= back; ++k) sum = fma(between(earlier, k)[bin - k], x(earlier, bin - k), sum);
    }
  }
  return sum;
}

// ---- A step of conjugate gradients, in three phases; each wants the one before of all of the bundle

__device__ void Precondition(const SolveArgs& args, int step, const Part& part) {
  const LanePlaces at;
  const Substitution substitution = {args, part, at, ValuesOf(args, part)};
  const double* const residual = args.solve.residual + At(args, part.fibre, 0);
  substitution.Forward([&](int bin) { return residual[bin]; });
  substitution.Backward();
  double product = 0;
  substitution.ForKept([&](int bin, double x) {
    args.solve.preconditioned[At(args, part.fibre, bin)] = x;
    product = fma(x, residual[bin], product);
  });
  KeepSum(args, ProjectionOf(step), part, product);
}

__device__ void Direct(const SolveArgs& args, int step, const Part& part) {
  const int bundle = args.fibres.BundleOf(part.fibre);
  const double beta = step == 0 ? 0
                                : BundleSum(args, ProjectionOf(step), bundle) /
                                      BundleSum(args, ProjectionOf(step + 1), bundle);
  const double* const before = args.solve.direction[(step + 1) % 2];
  const auto direction = [&](int fibre, int bin) {
    const int64_t i = At(args, fibre, bin);
    return step == 0 ? args.solve.preconditioned[i] : fma(beta, before[i], args.solve.preconditioned[i]);
  };
  double curvature = 0;
  for (int bin = part.range.core + static_cast<int>(threadIdx.x) % kWarp; bin < part.range.core_end; bin += kWarp) {
    const double own = direction(part.fibre, bin), product = Multiply(args, part.fibre, bin, direction);
    args.solve.direction[step % 2][At(args, part.fibre, bin)] = own;
    args.solve.product[At(args, part.fibre, bin)] = product;
    curvature = fma(own, product, curvature);
  }
  KeepSum(args, kCurvature, part, curvature);
}

__device__ void Advance(const SolveArgs& args, int step, const Part& part, bool done) {
  const int bundle = args.fibres.BundleOf(part.fibre);
  if (done) {
    KeepSum(args, ResidualOf(step + 1), part, 0);
    return;
  }
  const double alpha = BundleSum(args, ProjectionOf(step), bundle) / BundleSum(args, kCurvature, bundle);
  double norm = 0;
  for (int bin = part.range.core + static_cast<int>(threadIdx.x) % kWarp; bin < part.range.core_end; bin += kWarp) {
    const int64_t i = At(args, part.fibre, bin);
    const double residual = fma(-alpha, args.solve.product[i], args.solve.residual[i]);
    args.solve.flux[i] = fma(alpha, args.solve.direction[step % 2][i], args.solve.flux[i]);
    args.solve.residual[i] = residual;
    norm += residual * residual / Diagonal(args, part.fibre, bin);
  }
  KeepSum(args, ResidualOf(step + 1), part, norm);
}

template <typename Phase>
__device__ void ForOwnPart(const SolveArgs& args, const Phase& phase) {
  const int number = blockIdx.x * kWarps + threadIdx.x / kWarp;
  if (number >= args.fibres.fibres * args.chunks.count) return;
  const Part part(args, number);
  phase(part, args.fibres.BundleOf(part.fibre));
}

__global__ void __launch_bounds__(kWarps* kWarp) Begin(SolveArgs args) {
  ForOwnPart(args, [&](const Part& part, int) {
    double norm = 0;
    for (int bin = part.range.core + static_cast<int>(threadIdx.x) % kWarp; bin < part.range.core_end; bin += kWarp) {
      const int64_t i = At(args, part.fibre, bin);
      const double data = args.normal.data[i];
      args.solve.flux[i] = 0;
      args.solve.residual[i] = data;
      norm += data * data / Diagonal(args, part.fibre, bin);
    }
    KeepSum(args, kDataNorm, part, norm);
    KeepSum(args, kResidual, part, norm);
  });
}

__global__ void __launch_bounds__(kWarps* kWarp) PreconditionAll(SolveArgs args, int step) {
  ForOwnPart(args, [&](const Part& part, int bundle) {
    if (!IsOver(args, step, bundle)) Precondition(args, step, part);
  });
}
__global__ void __launch_bounds__(kWarps* kWarp) DirectAll(SolveArgs args, int step) {
  ForOwnPart(args, [&](const Part& part, int bundle) {
    if (!IsDone(args, step, bundle)) Direct(args, step, part);
  });
}
__global__ void __launch_bounds__(kWarps* kWarp) AdvanceAll(SolveArgs args, int step) {
  ForOwnPart(args, [&](const Part& part, int bundle) { Advance(args, step, part, IsDone(args, step, bundle)); });
}

// The steps that a bundle still needs, by a block; the first is preconditioned.
__global__ void __launch_bounds__(kFinishWarps* kWarp) Finish(SolveArgs args, int first_step) {
  const int bundle = blockIdx.x, warp = threadIdx.x / kWarp;
  const int first = args.fibres.FirstOf(bundle) * args.chunks.count,
            end = args.fibres.EndOf(bundle) * args.chunks.count;
  for (int step = first_step; step < kMostRefinements; ++step) {
    if (IsDone(args, step, bundle)) return;
    for (int i = first + warp; i < end; i += kFinishWarps) Direct(args, step, Part(args, i));
    __syncthreads();
    for (int i = first + warp; i < end; i += kFinishWarps) Advance(args, step, Part(args, i), false);
    __syncthreads();
    for (int i = first + warp; i < end; i += kFinishWarps) Precondition(args, step + 1, Part(args, i));
    __syncthreads();
  }
}

// What is left of b, exactly.
__global__ void __launch_bounds__(kWarps* kWarp) Remain(SolveArgs args) {
  ForOwnPart(args, [&](const Part& part, int) {
    const auto flux = [&](int fibre, int bin) { return args.solve.flux[At(args, fibre, bin)]; };
    double norm = 0;
    for (int bin = part.range.core + static_cast<int>(threadIdx.x) % kWarp; bin < part.range.core_end; bin += kWarp) {
      const double left = args.normal.data[At(args, part.fibre, bin)] - Multiply(args, part.fibre, bin, flux);
      norm += left * left / Diagonal(args, part.fibre, bin);
    }
    KeepSum(args, kResidual, part, norm);
  });
}

__global__ void __launch_bounds__(kWarp) KeepResidual(SolveArgs args) {
  const double norm = BundleSum(args, kDataNorm, blockIdx.x), left = BundleSum(args, kResidual, blockIdx.x);
  if (threadIdx.x != 0) return;
  std::byte* const bundle = args.output.bundles + blockIdx.x * args.output.bundle_bytes;
  *reinterpret_cast<double*>(bundle + args.output.residual) = norm > 0 ? sqrt(left / norm) : sqrt(left);
}

__global__ void __launch_bounds__(kWarps* kWarp) Alternate(SolveArgs args) {
  ForOwnPart(args, [&](const Part& part, int) {
    const LanePlaces at;
    const Substitution substitution = {args, part, at, ValuesOf(args, part)};
    substitution.Forward([](int bin) { return bin % 2 == 0 ? 1.0 : -1.0; });
    substitution.Backward();
    substitution.ForKept([&](int bin, double x) { args.solve.alternating[At(args, part.fibre, bin)] = x; });
  });
}

int Blocks(const SolveArgs& args) { return (args.fibres.fibres * args.chunks.count + kWarps - 1) / kWarps; }

// Of shared memory for the values of a block's parts, 0 where that is too much.
int64_t ValueBytes(const SolveArgs& args) {
  constexpr int64_t kMostBytes = 48 << 10;  // what any kernel may take
  const int64_t bytes = int64_t{kWarps} * args.chunks.extended * static_cast<int64_t>(sizeof(double));
  return bytes <= kMostBytes ? bytes : 0;
}

}  // namespace

cudaError_t SolveAlternating(const SolveArgs& args, cudaStream_t stream) {
  SolveArgs inside = args;
  inside.values_in_shared = ValueBytes(args) > 0;
  return Launch(Alternate, Blocks(args), kWarps * kWarp, ValueBytes(args), stream, inside);
}

cudaError_t SolveFlux(const SolveArgs& args, cudaStream_t stream) {
  const int blocks = Blocks(args), threads = kWarps * kWarp;
  const int64_t bytes = ValueBytes(args);
  SolveArgs inside = args;
  inside.values_in_shared = bytes > 0;
  cudaError_t error = Launch(Begin, blocks, threads, 0, stream, args);
  for (int step = 0; step < kSteps && error == cudaSuccess; ++step) {
    error = FirstError({Launch(PreconditionAll, blocks, threads, bytes, stream, inside, step),
                        Launch(DirectAll, blocks, threads, 0, stream, args, step),
                        Launch(AdvanceAll, blocks, threads, 0, stream, args, step)});
  }
  return FirstError({error, Launch(PreconditionAll, blocks, threads, bytes, stream, inside, kSteps),
                     Launch(Finish, args.fibres.bundles, kFinishWarps * kWarp, 0, stream, args, kSteps),
                     Launch(Remain, blocks, threads, 0, stream, args),
                     Launch(KeepResidual, args.fibres.bundles, kWarp, 0, stream, args)});
}

}  // namespace spexd::cuda
