#include "core/analysis/velocity/velocity_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/analysis/vector_loops.h"
#include "core/analysis/velocity/continuum_fit.h"
#include "core/analysis/velocity/shared/fit_steps.h"
#include "core/analysis/velocity/star_model.h"

namespace spexd {

std::vector<double> ContinuumOf(const Array<double, 2>& polynomials,
                                const std::vector<double>& coefficients) {
  std::vector<double> continuum(polynomials.shape(1), 0);
  for (size_t k = 0; k < coefficients.size(); ++k) {
    AddScaled(coefficients[k], &polynomials(k, 0), polynomials.shape(1), continuum.data());
  }
  return continuum;
}

void SetArmVelocities(const std::vector<VelocityCurvature>& of_arms, VelocityFit* fit) {
  fit->arm_velocities.assign(of_arms.size(), std::numeric_limits<double>::quiet_NaN());
  fit->arm_errors = fit->arm_velocities;
  for (size_t arm = 0; arm < of_arms.size(); ++arm) {
    if (!(of_arms[arm].h > 0)) continue;
    fit->arm_velocities[arm] = fit->x[0] + of_arms[arm].g / of_arms[arm].h;
    fit->arm_errors[arm] = 1 / std::sqrt(of_arms[arm].h);
  }
}

FitRanges RangesOf(const TemplateLibrary& library, absl::Span<const BinnedTemplates* const> arms,
                   bool rotation) {
  FitRanges ranges;
  int count = 0;
  const auto add = [&](double least, double most, double unit, double growth = 0) {
    ranges.least[count] = least;
    ranges.most[count] = most;
    ranges.growth[count] = growth;
    ranges.unit[count++] = unit;
  };
  double least = arms[0]->min_velocity(), most = arms[0]->max_velocity();
  for (const BinnedTemplates* const templates : arms) {
    least = std::max(least, templates->min_velocity());
    most = std::min(most, templates->max_velocity());
  }
  add(least, most, kVelocityUnit);
  for (const std::vector<double>& axis : library.axes) {
    add(axis.front(), axis.back(), (axis.back() - axis.front()) / 10);
  }
  add(0, kMaxVsini * kMaxVsini, kVsini2Unit, kVsini2Growth);
  ranges.moving = rotation ? count : count - 1;
  return ranges;
}

namespace {

// A point of the fit: the star at the point in each segment, and its best continuum.
struct Point {
  std::vector<double> x;
  std::vector<Array<double, 2>> stars;  // [segment], from SpreadStar
  std::vector<ContinuumFit> fits;
  double chi2 = 0;
  bool solved = true;  // whether the data determine the continuum in every segment
};
Point Evaluate(const VelocityModel& model, absl::Span<const VelocitySegment> segments,
               std::vector<double> x) {
  Point point;
  Array<double, 2> light;  // star of an arm, for all its exposures
  for (size_t s = 0; s < segments.size(); ++s) {
    const VelocitySegment& segment = segments[s];
    const ArmModel& arm = model.arms[segment.arm];
    if (s == 0 || segments[s - 1].arm != segment.arm)
      light = EvaluateStar(*model.library, *arm.templates, x, model.rotation);
    point.stars.push_back(SpreadStar(light, segment.resolution));
    point.fits.push_back(
        FitContinuum(arm.polynomials, model.degree, point.stars.back().Row(0), segment.flux, segment.ivar));
    point.chi2 += point.fits.back().chi2;
    point.solved = point.solved && point.fits.back().solved;
  }
  point.x = std::move(x);
  return point;
}

// The curvature of one segment at a point.
FitCurvature CurvatureOf(const Array<double, 2>& polynomials, int degree, const VelocitySegment& segment,
                         const Array<double, 2>& star, const ContinuumFit& fit) {
  const int64_t size = star.shape(0) - 1, bins = star.shape(1), terms = degree + 1;
  const std::vector<double> continuum = ContinuumOf(polynomials, fit.coefficients);
  Array<double, 2> jacobian({size, bins}), cross({terms, kMaxFitParameters});  // J, and G^T = D^T W J
  std::vector<double> weighted(bins), residual(bins);
  for (int64_t j = 0; j < bins; ++j) residual[j] = segment.flux[j] - continuum[j] * star(0, j);
  FitCurvature curvature;
  const auto h = [&curvature](int64_t q, int64_t p) -> double& {
    return curvature.h[q * kMaxFitParameters + p];
  };
  for (int64_t q = 0; q < size; ++q) {
    for (int64_t j = 0; j < bins; ++j) jacobian(q, j) = continuum[j] * star(q + 1, j);
  }
  for (int64_t q = 0; q < size; ++q) {
    for (int64_t j = 0; j < bins; ++j) weighted[j] = segment.ivar[j] * jacobian(q, j);
    curvature.g[q] = DotProduct(weighted.data(), residual.data(), bins);
    for (int64_t p = 0; p <= q; ++p) {
      h(q, p) = h(p, q) = DotProduct(weighted.data(), &jacobian(p, 0), bins);
    }
    for (int64_t j = 0; j < bins; ++j) weighted[j] *= star(0, j);
    for (int64_t k = 0; k < terms; ++k) {
      cross(k, q) = DotProduct(weighted.data(), &polynomials(k, 0), bins);
    }
  }
  const int columns = static_cast<int>(size), rows = static_cast<int>(terms);
  for (int q = 0; q < columns; ++q) ProjectColumn(fit.factor.data(), rows, q, cross.data());
  for (int q = 0; q < columns; ++q) {
    for (int p = 0; p < columns; ++p) ProjectElement(cross.data(), rows, q, p, curvature.h);
  }
  return curvature;
}

// The sum of curvatures over segments. `of_arms`: null, or [arm], to which each segment's curvature by the
// velocity is added.
FitCurvature CurvatureAt(const VelocityModel& model, absl::Span<const VelocitySegment> segments,
                         const Point& point, std::vector<VelocityCurvature>* of_arms = nullptr) {
  const int size = static_cast<int>(point.x.size());
  FitCurvature sum;
  for (size_t s = 0; s < segments.size(); ++s) {
    const VelocitySegment& segment = segments[s];
    const FitCurvature part = CurvatureOf(model.arms[segment.arm].polynomials, model.degree, segment,
                                          point.stars[s], point.fits[s]);
    for (int q = 0; q < size; ++q) {
      sum.g[q] = s == 0 ? part.g[q] : sum.g[q] + part.g[q];
      for (int p = 0; p < size; ++p) {
        const int at = q * kMaxFitParameters + p;
        sum.h[at] = s == 0 ? part.h[at] : sum.h[at] + part.h[at];
      }
    }
    if (of_arms == nullptr) continue;
    (*of_arms)[segment.arm].h += part.h[0];
    (*of_arms)[segment.arm].g += part.g[0];
  }
  return sum;
}

}  // namespace

VelocityFit FitVelocity(const VelocityModel& model, absl::Span<const VelocitySegment> segments,
                        std::vector<double> start) {
  const FitRanges& ranges = model.ranges;
  for (size_t q = 0; q < start.size(); ++q) start[q] = WithinRange(start[q], ranges.least[q], ranges.most[q]);
  Point point = Evaluate(model, segments, std::move(start));
  VelocityFit fit;
  fit.evaluations = 1;
  double damping = kFirstDamping;
  for (int step = 0; step < kMaxFitSteps && point.solved; ++step) {
    const FitCurvature curvature = CurvatureAt(model, segments, point);
    double gained = -1;
    double refused = std::numeric_limits<double>::infinity();  // expected gain of the last refused step
    for (; damping < kMaxDamping && gained < 0; damping *= gained < 0 ? kMoreDamping : 1) {
      std::vector<double> x = point.x;
      if (!DampedStep(curvature, ranges, point.x.data(), damping, x.data())) continue;
      const double expected = ExpectedGain(curvature, ranges.moving, point.x.data(), x.data());
      const StepVerdict verdict = JudgeStep(expected, refused);
      if (verdict == StepVerdict::kEnds) break;
      if (verdict == StepVerdict::kSkipped) continue;
      Point next = Evaluate(model, segments, std::move(x));
      ++fit.evaluations;
      if (!next.solved || !(next.chi2 <= point.chi2)) {
        refused = expected;
        continue;
      }
      gained = point.chi2 - next.chi2;
      point = std::move(next);
    }
    if (gained < kEnoughGained) break;
    damping = std::max(damping * kLessDamping, kMinDamping);
  }
  fit.x = point.x;
  fit.chi2 = point.chi2;
  fit.errors.assign(fit.x.size(), std::numeric_limits<double>::quiet_NaN());
  SetArmVelocities(std::vector<VelocityCurvature>(model.arms.size()), &fit);
  for (const ContinuumFit& part : point.fits) {
    const auto bins = static_cast<size_t>(point.stars[fit.segments.size()].shape(1));
    fit.segments.push_back({part.chi2, std::vector<double>(bins, 0), std::vector<double>(bins, 0)});
  }
  if (!point.solved) return fit;
  std::vector<VelocityCurvature> of_arms(model.arms.size());
  const FitCurvature curvature = CurvatureAt(model, segments, point, &of_arms);
  FitErrors(curvature, ranges, point.x.data(), fit.errors.data());
  fit.conditional_error = 1 / std::sqrt(curvature.h[0]);
  SetArmVelocities(of_arms, &fit);
  for (size_t s = 0; s < segments.size(); ++s) {
    SegmentFit& part = fit.segments[s];
    part.continuum = ContinuumOf(model.arms[segments[s].arm].polynomials, point.fits[s].coefficients);
    for (size_t j = 0; j < part.model.size(); ++j) part.model[j] = part.continuum[j] * point.stars[s](0, j);
  }
  return fit;
}

}  // namespace spexd
