// The least a frame of 450 stars costs, at 25 evaluations a fit: 600 operations a bin and evaluation, 0.5 ms
// on an H200. What takes the time is that a fit is a chain of short steps between which its block meets.
#include <algorithm>
#include <cmath>

#include "core/analysis/velocity/shared/continuum_matrix.h"
#include "core/analysis/velocity/shared/small_matrix.h"
#include "cuda/analysis/velocity/fit.h"
#include "cuda/analysis/velocity/star_model.cuh"

namespace spexd::cuda {
namespace {

constexpr int kThreads = 512, kWarps = kThreads / kWarp;
constexpr int kStride = kMostFitParameters, kMostTerms = kMostContinuumDegree + 1;
// Bounds of the templates that are mixed at a time: two blocks find room beside each other.
constexpr int kMostMixedBytes = 50 << 10, kLeastChunk = 32;

// What a block's threads share of a fit.
struct Shared {
  CornerWeights corners[kMostCorners];
  double x[kMostFitParameters], trial[kMostFitParameters];
  double moments[2 * kMostContinuumDegree + 1], b[kMostTerms], coefficients[kMostTerms];
  double factor[kMostTerms * kMostTerms];
  double cross[kMostTerms * kStride];
  FitCurvature curvature;
  double flat;        // chi-square of flux 0
  double chi2;        // of the last evaluation
  double point_chi2;  // of the point
  double damping;
  int solved;    // whether the last evaluation determined the continuum
  int tries;     // whether there is a step to try
  int accepted;  // whether the last evaluation is the point
};

class Fit {
 public:
  __device__ Fit(const FitArgs& args, const FitPlan& plan, Shared* shared)
      : args_(args),
        shared_(*shared),
        row_(args.starts[blockIdx.x].row),
        bins_(static_cast<int>(args.spectra.bins)),
        size_(args.axes.count + 2),
        terms_(args.degree + 1),
        star_(args.stars + static_cast<int64_t>(blockIdx.x) * (size_ + 1) * bins_),
        flux_(args.spectra.flux + row_ * bins_),
        ivar_(args.spectra.ivar + row_ * bins_),
        model_(args, plan, shared->corners, row_, star_) {}

  __device__ void Run() {
    Start();
    Evaluate(shared_.x);
    int evaluations = 1;
    if (threadIdx.x == 0) shared_.point_chi2 = shared_.chi2;
    bool solved = shared_.solved != 0, at_point = true;
    __syncthreads();
    for (int step = 0; solved && step < kMostFitSteps; ++step) {
      MakeCurvature();
      double gained = -1;
      while (gained < 0 && TakeStep()) {
        if (shared_.tries == 0) {
          Dampen();
          continue;
        }
        Evaluate(shared_.trial);
        ++evaluations;
        gained = Judge();
        at_point = gained >= 0;
      }
      if (gained < kEnoughGained) break;
      if (threadIdx.x == 0) shared_.damping = fmax(shared_.damping / 8, kLeastDamping);
      __syncthreads();
    }
    if (!at_point) Evaluate(shared_.x);
    End(solved, evaluations);
  }

 private:
  __device__ void Start() {
    if (threadIdx.x < size_) {
      const int q = threadIdx.x;
      shared_.x[q] = WithinRange(args_.starts[blockIdx.x].x[q], args_.ranges.least[q], args_.ranges.most[q]);
      shared_.trial[q] = shared_.x[q];
    }
    if (threadIdx.x == 0) shared_.damping = kFirstDamping;
    if (threadIdx.x / kWarp == 1) {
      double sum = 0;
      for (int j = args_.edge + Lane(); j < bins_ - args_.edge; j += kWarp) {
        sum += static_cast<double>(ivar_[j]) * flux_[j] * flux_[j];
      }
      sum = WarpSum(sum);
      if (Lane() == 0) shared_.flat = sum;
    }
    __syncthreads();
  }

  __device__ static int Lane() { return static_cast<int>(threadIdx.x) % kWarp; }

  // The star at x, its best continuum and chi-square. The block meets at the end.
  __device__ void Evaluate(const double* x) {
    model_.Evaluate(x);
    double *const squares = model_.spare(), *const products = squares + bins_;
    for (int j = threadIdx.x; j < bins_; j += kThreads) {
      const bool inner = j >= args_.edge && j < bins_ - args_.edge;
      const double m = star_[j], weighted = inner ? ivar_[j] * m : 0;
      squares[j] = weighted * m;
      products[j] = weighted * flux_[j];
    }
    __syncthreads();
    // A warp to a polynomial.
    for (int n = threadIdx.x / kWarp; n <= 2 * args_.degree; n += kWarps) {
      const double* const t = args_.polynomials + static_cast<int64_t>(n) * bins_;
      double moment = 0, b = 0;
      for (int j = Lane(); j < bins_; j += kWarp) {
        moment += squares[j] * t[j];
        b += products[j] * t[j];
      }
      moment = WarpSum(moment);
      b = WarpSum(b);
      if (Lane() == 0) {
        shared_.moments[n] = moment;
        if (n <= args_.degree) shared_.b[n] = b;
      }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      ContinuumMatrix(shared_.moments, args_.degree, kContinuumPrior, shared_.factor, terms_);
      for (int k = 0; k < terms_; ++k) shared_.coefficients[k] = shared_.b[k];
      shared_.solved = SolvePositive(shared_.factor, terms_, terms_, shared_.coefficients) ? 1 : 0;
      double chi2 = shared_.flat;
      for (int k = 0; shared_.solved != 0 && k < terms_; ++k) chi2 -= shared_.b[k] * shared_.coefficients[k];
      shared_.chi2 = chi2;
    }
    __syncthreads();
  }

  // H and g at the point, of which the last evaluation was. Products of float32 are enough for steps and
  // errors: chi-square decides.
  __device__ void MakeCurvature() {
    float* const continuum = reinterpret_cast<float*>(model_.spare());
    float* const weights = continuum + bins_;  // w C
    for (int j = threadIdx.x; j < bins_; j += kThreads) {
      double sum = 0;
      for (int k = 0; k < terms_; ++k) sum += shared_.coefficients[k] * Polynomial(k, j);
      const bool inner = j >= args_.edge && j < bins_ - args_.edge;
      continuum[j] = static_cast<float>(sum);
      weights[j] = inner ? ivar_[j] * continuum[j] : 0;
    }
    __syncthreads();
    // A warp to each of: the columns of J, the residual, the columns of D; times all columns of W J.
    for (int task = threadIdx.x / kWarp; task < size_ + 1 + terms_; task += kWarps) {
      float sums[kStride] = {};
      for (int j = Lane(); j < bins_; j += kWarp) {
        const float other = task < size_    ? continuum[j] * Derivative(task, j)
                            : task == size_ ? flux_[j] - continuum[j] * star_[j]
                                            : star_[j] * static_cast<float>(Polynomial(task - size_ - 1, j));
        const float weighted = weights[j] * other;
#pragma unroll
        for (int q = 0; q < kStride; ++q) {
          if (q < size_) sums[q] += weighted * Derivative(q, j);
        }
      }
      StoreSums(task, sums);
    }
    __syncthreads();
    if (threadIdx.x < size_) ProjectColumn(shared_.factor, terms_, threadIdx.x, shared_.cross);
    __syncthreads();
    if (threadIdx.x < size_ * size_) {
      ProjectElement(shared_.cross, terms_, threadIdx.x / size_, threadIdx.x % size_, shared_.curvature.h);
    }
    __syncthreads();
  }
  __device__ float Derivative(int q, int j) const { return star_[static_cast<int64_t>(q + 1) * bins_ + j]; }
  __device__ double Polynomial(int k, int j) const {
    return args_.polynomials[static_cast<int64_t>(k) * bins_ + j];
  }
  __device__ void StoreSums(int task, const float (&sums)[kStride]) {
#pragma unroll
    for (int q = 0; q < kStride; ++q) {
      const double sum = WarpSum(sums[q]);
      if (Lane() != 0 || q >= size_) continue;
      if (task == size_) {
        shared_.curvature.g[q] = sum;
      } else if (task > size_) {
        shared_.cross[(task - size_ - 1) * kStride + q] = sum;
      } else if (q <= task) {  // so that H is symmetric to the bit
        shared_.curvature.h[task * kStride + q] = shared_.curvature.h[q * kStride + task] = sum;
      }
    }
  }

  // Whether the damping may still be tried; then `trial` is set where it is enough for H (`tries`).
  __device__ bool TakeStep() {
    if (threadIdx.x == 0 && shared_.damping < kMostDamping) {
      shared_.tries =
          DampedStep(shared_.curvature, args_.ranges, shared_.x, shared_.damping, shared_.trial) ? 1 : 0;
    }
    __syncthreads();
    return shared_.damping < kMostDamping;
  }
  __device__ void Dampen() {
    __syncthreads();
    if (threadIdx.x == 0) shared_.damping *= 5;
    __syncthreads();
  }
  // What the trial gained, which is then the point; negative where it is refused.
  __device__ double Judge() {
    const bool better = shared_.solved != 0 && shared_.chi2 <= shared_.point_chi2;
    const double gained = better ? shared_.point_chi2 - shared_.chi2 : -1;
    __syncthreads();
    if (better && threadIdx.x < size_) shared_.x[threadIdx.x] = shared_.trial[threadIdx.x];
    if (threadIdx.x == 0 && better) shared_.point_chi2 = shared_.chi2;
    if (threadIdx.x == 0 && !better) shared_.damping *= 5;
    __syncthreads();
    return gained;
  }

  __device__ void End(bool solved, int evaluations) {
    FitOutcome& to = args_.outcomes[blockIdx.x];
    for (int j = threadIdx.x; j < bins_; j += kThreads) {
      args_.models[static_cast<int64_t>(blockIdx.x) * bins_ + j] = star_[j];
    }
    if (threadIdx.x < size_) {
      to.x[threadIdx.x] = shared_.x[threadIdx.x];
      to.errors[threadIdx.x] = nan("");
    }
    if (threadIdx.x < terms_) to.coefficients[threadIdx.x] = shared_.coefficients[threadIdx.x];
    if (solved) MakeCurvature();
    __syncthreads();
    if (threadIdx.x != 0) return;
    to.chi2 = shared_.point_chi2;
    to.evaluations = evaluations;
    to.solved = solved ? 1 : 0;
    to.conditional_error = 0;
    if (!solved) return;
    FitErrors(shared_.curvature, args_.ranges, shared_.x, to.errors);
    to.conditional_error = 1 / sqrt(shared_.curvature.h[0]);
  }

  const FitArgs& args_;
  Shared& shared_;
  const int64_t row_;
  const int bins_, size_, terms_;
  float* const star_;
  const float *const flux_, *const ivar_;
  const StarModel model_;
};

__global__ void __launch_bounds__(kThreads, 2)
    FitStar(const __grid_constant__ FitArgs args, const __grid_constant__ FitPlan plan) {
  __shared__ Shared shared;
  Fit(args, plan, &shared).Run();
}

}  // namespace

FitPlan PlanFit(int bins, int parameters, double most_spacing, double step) {
  const double widest = std::sqrt(kMostVsini * kMostVsini + Vsini2Increment(kMostVsini * kMostVsini));
  FitPlan plan;
  plan.filter_half = static_cast<int>(std::ceil(widest / (kLightSpeed * step))) + 1;
  const auto samples = [&](int chunk) {
    return static_cast<int>(std::ceil(chunk * most_spacing)) + 2 * plan.filter_half + 8;
  };
  const auto mixed_bytes = [&](int chunk) {
    return static_cast<int>(sizeof(float)) * (1 + parameters) * samples(chunk);
  };
  plan.chunk_bins = kThreads;
  while (plan.chunk_bins > kLeastChunk && mixed_bytes(plan.chunk_bins) > kMostMixedBytes)
    plan.chunk_bins /= 2;
  plan.chunk_samples = samples(plan.chunk_bins);
  const int length = 2 * plan.filter_half + 1;
  const int floats = 2 * length + (parameters + 3) * bins;
  // Two doubles a bin take the place of all of this between evaluations.
  plan.shared_bytes = std::max(static_cast<int>(sizeof(float)) * floats + mixed_bytes(plan.chunk_bins),
                               static_cast<int>(2 * sizeof(double)) * bins);
  return plan;
}

cudaError_t FitStars(const FitArgs& args, const FitPlan& plan, cudaStream_t stream) {
  if (args.count == 0) return cudaSuccess;
  return FirstError(
      {AllowShared(FitStar, plan.shared_bytes), Launch(FitStar, dim3(static_cast<unsigned>(args.count)),
                                                       kThreads, plan.shared_bytes, stream, args, plan)});
}

}  // namespace spexd::cuda
