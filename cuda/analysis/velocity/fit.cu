// Fits of stars. Floor for a frame of 450 stars with 25 evaluations a fit: 600 operations a bin and
// evaluation, 0.5 ms on an H200. A fit is a chain of evaluations, so several blocks are resident on each
// multiprocessor. The warps of a block meet only for sums and small systems, ten times an evaluation.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/analysis/velocity/shared/continuum_matrix.h"
#include "core/analysis/velocity/shared/small_matrix.h"
#include "cuda/analysis/velocity/fit.h"
#include "cuda/analysis/velocity/star_model.cuh"
#include "cuda/analysis/velocity/warp_solve.cuh"

namespace spexd::cuda {
namespace {

// The most warps of a block, where shared memory has room for them, and the threads that should be resident
// on a multiprocessor, which limit the registers of each.
constexpr int kMaxWarps = 12, kResidentThreads = 768;
constexpr int kStride = kMaxFitParameters, kMaxTerms = kMaxContinuumTerms;
constexpr int kGroup = 8;  // sums that a warp reduces at a time
constexpr int RoundedUp(int count) { return (count + kGroup - 1) / kGroup * kGroup; }

// The shared memory of a fit. Moments, coefficients, factor and cross belong to the current segment.
struct Shared {
  StarCell cell;
  double x[kMaxFitParameters], trial[kMaxFitParameters];
  double moments[2 * kMaxContinuumDegree + 1], coefficients[kMaxTerms];
  double factor[kMaxTerms * kMaxTerms];
  double cross[kMaxTerms * kStride];
  FitCurvature curvature;  // sum over all segments
  FitCurvature part;       // of the current segment, from the second on
  double chi2;        // of the last evaluation
  double point_chi2;  // of the current point
  double damping;
  double expected;  // expected gain of the step to try
  double refused;   // expected gain of the last step from the point that was refused; infinite: none
  int solved;       // whether the last evaluation determined all continua
  int tries;        // whether there is a step to try
};

// Chebyshev polynomials at a bin, from T_first on.
template <typename Real>
class Polynomials {
 public:
  // `table`: T_0 .. T_degree [term, bin], beginning at the bin.
  __device__ Polynomials(const double* table, int bins, int degree, int first)
      : twice_(degree > 0 ? static_cast<Real>(2 * table[bins]) : 0),
        at_(first > 0 ? static_cast<Real>(table[static_cast<int64_t>(first) * bins]) : 1),
        before_(first > 0 ? static_cast<Real>(table[static_cast<int64_t>(first - 1) * bins]) : twice_ / 2) {}
  __device__ Real Next() {
    const Real now = at_;
    at_ = twice_ * now - before_;
    before_ = now;
    return now;
  }

 private:
  Real twice_, at_, before_;
};

template <int kParameters>
class Fit {
 public:
  __device__ Fit(const FitArgs& args, const FitPlan& plan, Shared* shared)
      : args_(args),
        shared_(*shared),
        start_(args.starts[blockIdx.x]),
        terms_(args.degree + 1),
        model_(args, plan, &shared->cell) {}

  __device__ void Run() {
    Start();
    int evaluations = 0, steps = 0;
    // Code that is inlined only once is compiled once and stays in the instruction cache.
    for (State state = kBegins; state != kEnded;) {
      Evaluate(shared_.trial);
      if (state == kReturns) break;
      ++evaluations;
      const double gained = Judge(state == kBegins);
      if (state == kBegins && shared_.solved == 0) break;
      if (gained >= 0) MakeCurvature();
      if (state == kSteps && gained >= 0) ++steps;
      const bool ends = (gained >= 0 && gained < kEnoughGained) || steps == kMaxFitSteps || !TakeStep();
      state = !ends ? kSteps : gained >= 0 ? kEnded : kReturns;
    }
    End(evaluations);
  }

 private:
  static constexpr int kSize = kParameters + 2, kPairs = kSize * (kSize + 1) / 2;
  enum State { kBegins, kSteps, kReturns, kEnded };  // kReturns: evaluates the point again for the values to
                                                     // keep
  static constexpr double kNone = std::numeric_limits<double>::infinity();
  static constexpr int kCurvatureSums = RoundedUp(kPairs + kSize), kCrossSums = kSize * kGroup;

  __device__ static int Lane() { return static_cast<int>(threadIdx.x) % kWarp; }
  __device__ static int Warp() { return static_cast<int>(threadIdx.x) / kWarp; }
  __device__ static int Warps() { return static_cast<int>(blockDim.x) / kWarp; }

  // Selects the segment for all later calls. Segments must be selected in order.
  __device__ void Use(int segment) {
    const FitSegment of = args_.segments[start_.first_segment + segment];
    const FitArm& arm = args_.arms[of.arm];
    star_ = segment == 0 ? args_.stars + start_.star : star_ + int64_t{StarRows(kParameters)} * bins_;
    light_ = segment == 0 ? args_.models + start_.model : light_ + bins_;
    bins_ = static_cast<int>(arm.spectra.bins);
    polynomials_ = arm.polynomials;
    flux_ = arm.spectra.flux + static_cast<int64_t>(of.row) * bins_;
    ivar_ = arm.spectra.ivar + static_cast<int64_t>(of.row) * bins_;
    segment_ = start_.first_outcome + segment;
    model_.Use(arm, of.row, star_);
  }
  __device__ bool is_alone() const { return start_.segments == 1; }
  __device__ SegmentOutcome& Outcome() const { return args_.segment_outcomes[segment_]; }
  __device__ double* Factor() const { return args_.factors + int64_t{segment_} * kMaxTerms * kMaxTerms; }

  __device__ void Start() {
    if (threadIdx.x < kSize) {
      const int q = threadIdx.x;
      shared_.x[q] = WithinRange(start_.x[q], args_.ranges.least[q], args_.ranges.most[q]);
      shared_.trial[q] = shared_.x[q];
    }
    if (threadIdx.x == 0) {
      shared_.damping = kFirstDamping;
      shared_.refused = kNone;
      shared_.cell.filtered = nan("");
    }
    if (Warp() == 0) {
      for (int s = 0; s < start_.segments; ++s) {
        Use(s);
        double sum = 0;
        for (int j = args_.edge + Lane(); j < bins_ - args_.edge; j += kWarp) {
          sum += static_cast<double>(ivar_[j]) * flux_[j] * flux_[j];
        }
        sum = WarpSum(sum);
        if (Lane() == 0) Outcome().flat = sum;
      }
    }
    __syncthreads();
  }

  // Computes the star at x, its best continua and chi-square. Ends with a barrier of the block.
  __device__ void Evaluate(const double* x) {
    for (int s = 0; s < start_.segments; ++s) {
      Use(s);
      model_.Evaluate(x);
      SumMoments();
      __syncthreads();
      for (int n = threadIdx.x; n <= 2 * args_.degree; n += blockDim.x) {
        const int at = n / kGroup * 2 * kGroup + n % kGroup;
        shared_.moments[n] = SumOfWarps(at);
        if (n <= args_.degree) shared_.coefficients[n] = SumOfWarps(at + kGroup);
      }
      __syncthreads();
      // Other warps continue with the next segment's star, after which the block meets.
      if (Warp() == 0) FindContinuum(s == 0);
    }
    __syncthreads();
  }

  // Adds up `values` over a warp, for SumOfWarps(first) and the next ones.
  template <typename Real>
  __device__ void StoreSums(const Real (&values)[kGroup], int first) const {
    double each[kGroup];
#pragma unroll
    for (int k = 0; k < kGroup; ++k) each[k] = static_cast<double>(values[k]);
    double sum = SumEach(each);
    for (int mask = kGroup; mask < kWarp; mask *= 2) sum += ShuffleXor(sum, mask);
    if (Lane() < kGroup) model_.WarpMemory(Warp())[first + Lane()] = sum;
  }
  __device__ double SumOfWarps(int at) const {
    double sum = 0;
    for (int w = 0; w < Warps(); ++w) sum += model_.WarpMemory(w)[at];
    return sum;
  }

  __device__ Polynomials<double> PolynomialsAt(int j, int first) const {
    return Polynomials<double>(polynomials_ + j, bins_, args_.degree, first);
  }

  // Computes the sums over bins of w m^2 T_n and w f m T_n, kGroup of n at a time.
  __device__ void SumMoments() const {
    for (int first = 0; first <= 2 * args_.degree; first += kGroup) {
      double moments[kGroup] = {}, data[kGroup] = {};
      for (int j = args_.edge + static_cast<int>(threadIdx.x); j < bins_ - args_.edge; j += blockDim.x) {
        const double m = star_[j], weighted = ivar_[j] * m;
        const double square = weighted * m, product = weighted * flux_[j];
        Polynomials<double> t = PolynomialsAt(j, first);
        if (first <= args_.degree) {
#pragma unroll
          for (int k = 0; k < kGroup; ++k) {
            const double value = t.Next();
            moments[k] += square * value;
            data[k] += product * value;
          }
        } else {
#pragma unroll
          for (int k = 0; k < kGroup; ++k) moments[k] += square * t.Next();
        }
      }
      StoreSums(moments, 2 * first);
      if (first <= args_.degree) StoreSums(data, 2 * first + kGroup);
    }
  }

  // Computes the segment's continuum and chi-square from the moments. Called by a whole warp.
  __device__ void FindContinuum(bool first) {
    for (int e = Lane(); e < terms_ * terms_; e += kWarp) {
      shared_.factor[e] = ContinuumElement(shared_.moments, kContinuumPrior, e / terms_, e % terms_);
    }
    __syncwarp();
    const bool solved = FactorByWarp(shared_.factor, terms_, shared_.coefficients);
    const double y = solved && Lane() < terms_ ? shared_.coefficients[Lane()] : 0;
    const double fitted = WarpSum(y * y);
    if (solved) SolveTransposedByWarp(shared_.factor, terms_, shared_.coefficients);
    __syncwarp();
    SegmentOutcome& to = Outcome();
    for (int k = Lane(); k < terms_; k += kWarp) to.coefficients[k] = shared_.coefficients[k];
    if (!is_alone()) {
      double* const factor = Factor();
      for (int e = Lane(); e < terms_ * terms_; e += kWarp) factor[e] = shared_.factor[e];
    }
    if (Lane() == 0) {
      const double chi2 = to.flat - fitted;
      to.chi2 = chi2;
      shared_.solved = solved && (first || shared_.solved != 0) ? 1 : 0;
      shared_.chi2 = first ? chi2 : shared_.chi2 + chi2;
    }
    __syncwarp();
  }

  // Computes H and g at the point, which must be that of the last evaluation, for warp 0. Products in float32
  // are accurate enough for steps and errors: chi-square decides whether a step is accepted.
  __device__ void MakeCurvature() {
    for (int s = 0; s < start_.segments; ++s) {
      if (!is_alone()) {
        Use(s);
        const SegmentOutcome& from = Outcome();
        const double* const factor = Factor();
        for (int k = threadIdx.x; k < terms_; k += blockDim.x) shared_.coefficients[k] = from.coefficients[k];
        for (int e = threadIdx.x; e < terms_ * terms_; e += blockDim.x) shared_.factor[e] = factor[e];
        __syncthreads();
      }
      FitCurvature* const part = s == 0 ? &shared_.curvature : &shared_.part;
      SumCurvature();
      for (int first = 0; first < terms_; first += kGroup) SumCross(first);
      __syncthreads();
      for (int e = threadIdx.x; e < kSize * (kSize + 1 + terms_); e += blockDim.x) {
        const int q = e % kSize, p = e / kSize, n = p - kSize - 1;
        if (p < kSize) {  // so that H is symmetric to the bit
          part->h[q * kStride + p] = SumOfWarps(PairOf(q > p ? q : p, q > p ? p : q));
        } else if (p == kSize) {
          part->g[q] = SumOfWarps(kPairs + q);
        } else {
          shared_.cross[n * kStride + q] =
              SumOfWarps(kCurvatureSums + n / kGroup * kCrossSums + q * kGroup + n % kGroup);
        }
      }
      __syncthreads();
      if (Warp() == 0) ProjectPart(s, part);
      if (!is_alone()) __syncthreads();
    }
  }
  // Removes what the continuum absorbs from the segment's part, and adds the rest to the sum over all. Called
  // by a whole warp.
  __device__ void ProjectPart(int segment, FitCurvature* part) const {
    if (Lane() < kSize) ProjectColumn(shared_.factor, terms_, Lane(), shared_.cross);
    __syncwarp();
    for (int e = Lane(); e < kSize * kSize; e += kWarp) {
      ProjectElement(shared_.cross, terms_, e / kSize, e % kSize, part->h);
    }
    __syncwarp();
    if (Lane() == 0) {
      Outcome().h = part->h[0];
      Outcome().g = part->g[0];
    }
    if (segment == 0) return;
    for (int e = Lane(); e < kSize * kSize; e += kWarp) {
      const int at = e / kSize * kStride + e % kSize;
      shared_.curvature.h[at] += part->h[at];
    }
    if (Lane() < kSize) shared_.curvature.g[Lane()] += part->g[Lane()];
    __syncwarp();
  }
  __device__ static constexpr int PairOf(int q, int p) { return q * (q + 1) / 2 + p; }  // p <= q
  __device__ float Derivative(int q, int j) const { return star_[static_cast<int64_t>(q + 1) * bins_ + j]; }
  // w C m [bin], of a thread's own bins.
  __device__ float& WeightedStar(int j) const { return star_[static_cast<int64_t>(kSize + 1) * bins_ + j]; }

  // Computes J^T W J and J^T W r.
  __device__ void SumCurvature() const {
    float sums[kCurvatureSums] = {};
    for (int j = args_.edge + static_cast<int>(threadIdx.x); j < bins_ - args_.edge; j += blockDim.x) {
      double sum = 0;
      Polynomials<double> t = PolynomialsAt(j, 0);
      for (int k = 0; k < terms_; ++k) sum += shared_.coefficients[k] * t.Next();
      const float continuum = static_cast<float>(sum), m = star_[j];
      const float weight = ivar_[j] * continuum, residual = flux_[j] - continuum * m;
      WeightedStar(j) = weight * m;
      float derivatives[kSize];
#pragma unroll
      for (int q = 0; q < kSize; ++q) derivatives[q] = Derivative(q, j);
#pragma unroll
      for (int q = 0; q < kSize; ++q) {
        const float weighted = weight * derivatives[q];
        sums[kPairs + q] += weighted * residual;
#pragma unroll
        for (int p = 0; p <= q; ++p) sums[PairOf(q, p)] += weighted * continuum * derivatives[p];
      }
    }
#pragma unroll
    for (int first = 0; first < kCurvatureSums; first += kGroup) {
      float group[kGroup];
#pragma unroll
      for (int k = 0; k < kGroup; ++k) group[k] = sums[first + k];
      StoreSums(group, first);
    }
  }

  // Computes D^T W J for the terms from `first` on.
  __device__ void SumCross(int first) const {
    float sums[kSize][kGroup] = {};
    for (int j = args_.edge + static_cast<int>(threadIdx.x); j < bins_ - args_.edge; j += blockDim.x) {
      const float weight = WeightedStar(j);
      float weighted[kSize];
#pragma unroll
      for (int q = 0; q < kSize; ++q) weighted[q] = weight * Derivative(q, j);
      Polynomials<float> t(polynomials_ + j, bins_, args_.degree, first);
#pragma unroll
      for (int k = 0; k < kGroup; ++k) {
        const float value = t.Next();
#pragma unroll
        for (int q = 0; q < kSize; ++q) sums[q][k] += weighted[q] * value;
      }
    }
#pragma unroll
    for (int q = 0; q < kSize; ++q) {
      StoreSums(sums[q], kCurvatureSums + first / kGroup * kCrossSums + q * kGroup);
    }
  }

  // Returns whether a step is left to try. `trial` is then the step's target, otherwise the point. Each lane
  // of a warp tries the damping that follows the previous lane's; the first lane that decides wins.
  __device__ bool TakeStep() {
    static_assert(kMinDamping * 1e21 > kMaxDamping);  // 5^31 > 1e21
    if (Warp() == 0) {
      double damping = shared_.damping, expected = 0, next[kMaxFitParameters];
      for (int k = 0; k < Lane(); ++k) damping *= kMoreDamping;
      bool ends = !(damping < kMaxDamping), tries = false;
      if (!ends && DampedStep(shared_.curvature, args_.ranges, shared_.x, damping, next)) {
        expected = ExpectedGain(shared_.curvature, args_.ranges.moving, shared_.x, next);
        const StepVerdict verdict = JudgeStep(expected, shared_.refused);
        ends = verdict == StepVerdict::kEnds;
        tries = verdict == StepVerdict::kTried;
      }
      const int first = __ffs(static_cast<int>(__ballot_sync(kAllLanes, ends || tries ? 1 : 0))) - 1;
      if (Lane() == first) {
        for (int q = 0; q < kSize; ++q) {
          shared_.trial[q] = tries && q < args_.ranges.moving ? next[q] : shared_.x[q];
        }
        shared_.damping = damping;
        shared_.expected = expected;
        shared_.tries = tries ? 1 : 0;
      }
    }
    __syncthreads();
    return shared_.tries != 0;
  }
  // Returns the gain of the trial, which becomes the point; negative if the trial is refused. The first trial
  // is never refused.
  __device__ double Judge(bool first) {
    const bool better = first || (shared_.solved != 0 && shared_.chi2 <= shared_.point_chi2);
    const double gained = first ? 2 * kEnoughGained : better ? shared_.point_chi2 - shared_.chi2 : -1;
    __syncthreads();
    if (better && threadIdx.x < kSize) shared_.x[threadIdx.x] = shared_.trial[threadIdx.x];
    if (threadIdx.x == 0) {
      if (better) shared_.point_chi2 = shared_.chi2;
      if (!first) {
        shared_.damping =
            better ? fmax(shared_.damping * kLessDamping, kMinDamping) : shared_.damping * kMoreDamping;
      }
      shared_.refused = better ? kNone : shared_.expected;
    }
    __syncthreads();
    return gained;
  }

  __device__ void End(int evaluations) {
    FitOutcome& to = args_.outcomes[start_.position];
    for (int s = 0; s < start_.segments; ++s) {
      Use(s);
      for (int j = threadIdx.x; j < bins_; j += blockDim.x) light_[j] = star_[j];
    }
    if (threadIdx.x != 0) return;
    for (int q = 0; q < kSize; ++q) {
      to.x[q] = shared_.x[q];
      to.errors[q] = nan("");
    }
    to.chi2 = shared_.point_chi2;
    to.evaluations = evaluations;
    to.solved = shared_.solved;
    to.conditional_error = 0;
    if (shared_.solved == 0) return;
    FitErrors(shared_.curvature, args_.ranges, shared_.x, to.errors);
    to.conditional_error = 1 / sqrt(shared_.curvature.h[0]);
  }

  const FitArgs& args_;
  Shared& shared_;
  const FitStart& start_;
  const int terms_;
  // The current segment.
  int segment_ = 0, bins_ = 0;
  float *star_ = nullptr, *light_ = nullptr;
  const double* polynomials_ = nullptr;
  const float *flux_ = nullptr, *ivar_ = nullptr;
  StarModel<kParameters> model_;
};

template <int kParameters>
__global__ void __launch_bounds__(kMaxWarps* kWarp, kResidentThreads / (kMaxWarps * kWarp))
    FitStar(const __grid_constant__ FitArgs args, const __grid_constant__ FitPlan plan) {
  __shared__ Shared shared;
  Fit<kParameters>(args, plan, &shared).Run();
}

template <int kParameters>
cudaError_t LaunchFits(const FitArgs& args, const FitPlan& plan, cudaStream_t stream) {
  auto* const kernel = FitStar<kParameters>;
  const dim3 fits(static_cast<unsigned>(args.count));
  return FirstError({AllowShared(kernel, plan.shared_bytes),
                     Launch(kernel, fits, plan.warps * kWarp, plan.shared_bytes, stream, args, plan)});
}

}  // namespace

FitPlan PlanFit(int parameters, double max_spacing, double step, int shared_bytes) {
  const double reach = kMaxVsini / (kLightSpeed * step),
               widest = std::sqrt(kMaxVsini * kMaxVsini + Vsini2Increment(kMaxVsini * kMaxVsini)) /
                        (kLightSpeed * step);
  FitPlan plan;
  plan.filter_half = static_cast<int>(std::ceil(widest)) + 1;
  // Includes up to three samples before the first, which are read with it, and four taps beside the bins.
  plan.samples =
      PaddedSamples(static_cast<int>(std::ceil((kLitBins - 1) * max_spacing)) + 2 * plan.filter_half + 8);
  const int sample_bytes = static_cast<int>(parameters == 1  ? sizeof(MixedSample<1>)
                                            : parameters < 4 ? sizeof(MixedSample<3>)
                                                             : sizeof(MixedSample<4>));
  const int light_bytes = (parameters + 3) * kLitBins * static_cast<int>(sizeof(float)),
            sums = RoundedUp(kMaxFitParameters * (kMaxFitParameters + 3) / 2) +
                   RoundedUp(kMaxTerms) * kMaxFitParameters;
  plan.warp_bytes =
      std::max({plan.samples * sample_bytes, light_bytes, sums * static_cast<int>(sizeof(double))});
  plan.warp_bytes = (plan.warp_bytes + 15) / 16 * 16;
  plan.filter_bytes = (2 * plan.filter_half + 4) * static_cast<int>(sizeof(FilterTap));
  const int node_bytes =
      (RotationNodes(reach) + RotationNodes(widest)) * static_cast<int>(sizeof(RotationNode));
  plan.warps = kMaxWarps;
  const auto bytes = [&] { return plan.filter_bytes + std::max(plan.warps * plan.warp_bytes, node_bytes); };
  while (plan.warps > 1 && bytes() > shared_bytes) --plan.warps;
  plan.shared_bytes = bytes();
  return plan;
}

cudaError_t FitStars(const FitArgs& args, const FitPlan& plan, cudaStream_t stream) {
  if (args.count == 0) return cudaSuccess;
  switch (args.axes.count) {
    case 1:
      return LaunchFits<1>(args, plan, stream);
    case 2:
      return LaunchFits<2>(args, plan, stream);
    case 3:
      return LaunchFits<3>(args, plan, stream);
    case 4:
      return LaunchFits<4>(args, plan, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace spexd::cuda
