// The scan. Floor for a frame of 450 stars: operands are written and products read once, 0.3 GB: 70 us on an
// H200.
#include "core/analysis/velocity/shared/continuum_matrix.h"
#include "core/analysis/velocity/shared/fit_steps.h"
#include "core/analysis/velocity/shared/small_matrix.h"
#include "cuda/analysis/velocity/scan.h"
#include "cuda/kernels/common/block_sum.cuh"

namespace spexd::cuda {
namespace {

constexpr int kThreads = 256;

dim3 BlocksFor(int64_t columns, int targets) {
  return dim3(static_cast<unsigned>((columns + kThreads - 1) / kThreads), static_cast<unsigned>(targets));
}

__global__ void Weigh(WeighArgs args) {
  const int i = blockIdx.x, bins = static_cast<int>(args.spectra.bins), degree = args.degree;
  const int64_t row = static_cast<int64_t>(args.rows[i]) * bins;
  double chi2 = 0;
  for (int j = threadIdx.x; j < bins; j += blockDim.x) {
    const bool inner = j >= args.edge && j < bins - args.edge;
    const double w = inner ? args.spectra.ivar[row + j] : 0, f = args.spectra.flux[row + j];
    chi2 += w * f * f;
    for (int n = 0; n <= 2 * degree; ++n) {
      const double t = args.polynomials[static_cast<int64_t>(n) * bins + j];
      args.weights[(static_cast<int64_t>(i) * (2 * degree + 1) + n) * bins + j] = static_cast<float>(w * t);
      if (n > degree) continue;
      args.data[(static_cast<int64_t>(i) * (degree + 1) + n) * bins + j] = static_cast<float>(w * f * t);
    }
  }
  chi2 = BlockSum<kThreads>(chi2);
  if (threadIdx.x != 0) return;
  args.chi2[i] = chi2;
}

// kMax: the largest degree; with kExact the only one, so that matrices stay in registers.
template <int kMax, bool kExact>
__global__ void Solve(ScanArgs args) {
  const int64_t columns = static_cast<int64_t>(args.templates) * args.steps;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  const int64_t target = blockIdx.y;
  const int degree = kExact ? kMax : args.degree;
  constexpr int kStride = kMax + 1;
  double moments[2 * kMax + 1], a[kStride * kStride], b[kStride], sum = 0;
  for (int64_t row = args.first_row[target]; row < args.first_row[target + 1]; ++row) {
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
    sum += chi2;
  }
  args.chi2[target * columns + column] = sum;
}

__global__ void Profile(ProfileArgs args) {
  const int v = blockIdx.x * blockDim.x + threadIdx.x, steps = args.steps;
  if (v >= steps) return;
  const int64_t columns = static_cast<int64_t>(args.templates) * steps, target = blockIdx.y;
  const auto chi2 = [&](int arm, int t, int at) {
    return args.chi2[(static_cast<int64_t>(arm) * args.targets + target) * columns +
                     static_cast<int64_t>(t) * steps + at];
  };
  const auto sum = [&](int t, int at) {
    double all = 0;
    for (int arm = 0; arm < args.arms; ++arm) all += chi2(arm, t, at);
    return all;
  };
  int which = 0;
  double best = sum(0, v);
  for (int t = 1; t < args.templates; ++t) {
    const double value = sum(t, v);
    if (value < best) {
      best = value;
      which = t;
    }
  }
  const int64_t at = target * steps + v;
  args.best[at] = best;
  args.which[at] = which;
  args.refined[at] = v == 0 || v + 1 == steps
                         ? args.velocities[v]
                         : RefinedVelocity(sum(which, v - 1), best, sum(which, v + 1), args.velocities[v],
                                           args.velocities[v + 1]);
  for (int arm = 0; arm < args.arms; ++arm)
    args.of_arms[static_cast<int64_t>(arm) * args.targets * steps + at] = chi2(arm, which, v);
}

}  // namespace

cudaError_t WeighSpectra(const WeighArgs& args, cudaStream_t stream) {
  return Launch(Weigh, dim3(static_cast<unsigned>(args.row_count)), kThreads, 0, stream, args);
}

cudaError_t SolveScan(const ScanArgs& args, cudaStream_t stream) {
  const dim3 all = BlocksFor(static_cast<int64_t>(args.templates) * args.steps, args.targets);
  constexpr int kUsual = 3;
  if (args.degree == kUsual) {
    auto* const solve = Solve<kUsual, true>;
    return Launch(solve, all, kThreads, 0, stream, args);
  }
  auto* const solve = Solve<kMaxContinuumDegree, false>;
  return Launch(solve, all, kThreads, 0, stream, args);
}

cudaError_t ProfileScan(const ProfileArgs& args, cudaStream_t stream) {
  return Launch(Profile, BlocksFor(args.steps, args.targets), kThreads, 0, stream, args);
}

}  // namespace spexd::cuda
