// The least a frame of 450 stars costs: operands are written and products read once, 0.3 GB: 70 us on an
// H200.
#include "core/analysis/velocity/shared/continuum_matrix.h"
#include "core/analysis/velocity/shared/fit_steps.h"
#include "core/analysis/velocity/shared/small_matrix.h"
#include "cuda/analysis/velocity/scan.h"
#include "cuda/kernels/common/block_sum.cuh"

namespace spexd::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void Weigh(WeighArgs args) {
  const int i = blockIdx.x, bins = static_cast<int>(args.spectra.bins), degree = args.degree;
  const int64_t row = static_cast<int64_t>(args.rows[i]) * bins;
  double chi2 = 0, count = 0;
  for (int j = threadIdx.x; j < bins; j += blockDim.x) {
    const bool inner = j >= args.edge && j < bins - args.edge;
    const double w = inner ? args.spectra.ivar[row + j] : 0, f = args.spectra.flux[row + j];
    chi2 += w * f * f;
    count += w > 0 ? 1 : 0;
    for (int n = 0; n <= 2 * degree; ++n) {
      const double t = args.polynomials[static_cast<int64_t>(n) * bins + j];
      args.weights[(static_cast<int64_t>(i) * (2 * degree + 1) + n) * bins + j] = static_cast<float>(w * t);
      if (n > degree) continue;
      args.data[(static_cast<int64_t>(i) * (degree + 1) + n) * bins + j] = static_cast<float>(w * f * t);
    }
  }
  chi2 = BlockSum<kThreads>(chi2);
  count = BlockSum<kThreads>(count);
  if (threadIdx.x != 0) return;
  args.chi2[i] = chi2;
  args.with_data[i] = static_cast<int>(count);
}

// kMax: the largest degree, or the only one if kExact: then matrices stay in registers.
template <int kMax, bool kExact>
__global__ void Solve(ScanArgs args) {
  const int64_t columns = static_cast<int64_t>(args.templates) * args.steps;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  const int64_t row = blockIdx.y;
  const int degree = kExact ? kMax : args.degree;
  constexpr int kStride = kMax + 1;
  double moments[2 * kMax + 1], a[kStride * kStride], b[kStride];
  const float* const m = args.moments + row * (2 * degree + 1) * columns + column;
  const float* const d = args.data + row * (degree + 1) * columns + column;
#pragma unroll
  for (int n = 0; n <= 2 * degree; ++n) moments[n] = m[n * columns];
#pragma unroll
  for (int k = 0; k <= degree; ++k) b[k] = d[k * columns];
  ContinuumMatrix(moments, degree, kScanPrior, a, kStride);
  double chi2 = args.flat[row];
  if (SolvePositive(a, kStride, degree + 1, b)) {
#pragma unroll
    for (int k = 0; k <= degree; ++k) chi2 -= d[k * columns] * b[k];
  }
  args.chi2[row * columns + column] = chi2;
}

__global__ void Profile(ScanArgs args) {
  const int v = blockIdx.x * blockDim.x + threadIdx.x, steps = args.steps;
  if (v >= steps) return;
  const double* const chi2 = args.chi2 + static_cast<int64_t>(blockIdx.y) * args.templates * steps;
  int which = 0;
  double best = chi2[v];
  for (int t = 1; t < args.templates; ++t) {
    const double value = chi2[static_cast<int64_t>(t) * steps + v];
    if (value < best) {
      best = value;
      which = t;
    }
  }
  const int64_t at = static_cast<int64_t>(blockIdx.y) * steps + v;
  args.best[at] = best;
  args.which[at] = which;
  const double* const own = chi2 + static_cast<int64_t>(which) * steps;
  args.refined[at] = v == 0 || v + 1 == steps ? args.velocities[v]
                                              : RefinedVelocity(own[v - 1], best, own[v + 1],
                                                                args.velocities[v], args.velocities[v + 1]);
}

}  // namespace

cudaError_t WeighSpectra(const WeighArgs& args, cudaStream_t stream) {
  return Launch(Weigh, dim3(static_cast<unsigned>(args.row_count)), kThreads, 0, stream, args);
}

cudaError_t SolveScan(const ScanArgs& args, cudaStream_t stream) {
  const auto blocks = [&](int64_t columns) {
    return dim3(static_cast<unsigned>((columns + kThreads - 1) / kThreads),
                static_cast<unsigned>(args.row_count));
  };
  const dim3 all = blocks(static_cast<int64_t>(args.templates) * args.steps);
  constexpr int kUsual = 3;
  cudaError_t error = cudaSuccess;
  if (args.degree == kUsual) {
    auto* const solve = Solve<kUsual, true>;
    error = Launch(solve, all, kThreads, 0, stream, args);
  } else {
    auto* const solve = Solve<kMaxContinuumDegree, false>;
    error = Launch(solve, all, kThreads, 0, stream, args);
  }
  return FirstError({error, Launch(Profile, blocks(args.steps), kThreads, 0, stream, args)});
}

}  // namespace spexd::cuda
