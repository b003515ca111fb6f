#include "core/analysis/velocity/velocity_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

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

FitRanges RangesOf(const TemplateLibrary& library, const BinnedTemplates& templates, bool rotation) {
  FitRanges ranges;
  int count = 0;
  const auto add = [&](double least, double most, double unit, double growth = 0) {
    ranges.least[count] = least;
    ranges.most[count] = most;
    ranges.growth[count] = growth;
    ranges.unit[count++] = unit;
  };
  add(templates.min_velocity(), templates.max_velocity(), kVelocityUnit);
  for (const std::vector<double>& axis : library.axes) {
    add(axis.front(), axis.back(), (axis.back() - axis.front()) / 10);
  }
  add(0, kMaxVsini * kMaxVsini, kVsini2Unit, kVsini2Growth);
  ranges.moving = rotation ? count : count - 1;
  return ranges;
}

namespace {

// A point of the fit: the star there, and its best continuum.
struct Point {
  std::vector<double> x;
  Array<double, 2> star;  // see EvaluateStar
  ContinuumFit fit;
};
Point Evaluate(const VelocityModel& model, const VelocityData& data, std::vector<double> x) {
  Point point;
  point.star = EvaluateStar(*model.library, *model.templates, data.resolution, x, model.rotation);
  point.fit = FitContinuum(model.polynomials, model.degree, point.star.Row(0), data.flux, data.ivar);
  point.x = std::move(x);
  return point;
}

std::vector<double> ContinuumOf(const VelocityModel& model, const ContinuumFit& fit) {
  return ContinuumOf(model.polynomials, fit.coefficients);
}

FitCurvature CurvatureAt(const VelocityModel& model, const VelocityData& data, const Point& point) {
  const int64_t size = static_cast<int64_t>(point.x.size()), bins = model.polynomials.shape(1),
                terms = model.degree + 1;
  const std::vector<double> continuum = ContinuumOf(model, point.fit);
  Array<double, 2> jacobian({size, bins}), cross({terms, kMaxFitParameters});  // J, and G^T = D^T W J
  std::vector<double> weighted(bins), residual(bins);
  for (int64_t j = 0; j < bins; ++j) residual[j] = data.flux[j] - continuum[j] * point.star(0, j);
  FitCurvature curvature;
  const auto h = [&curvature](int64_t q, int64_t p) -> double& {
    return curvature.h[q * kMaxFitParameters + p];
  };
  for (int64_t q = 0; q < size; ++q) {
    for (int64_t j = 0; j < bins; ++j) jacobian(q, j) = continuum[j] * point.star(q + 1, j);
  }
  for (int64_t q = 0; q < size; ++q) {
    for (int64_t j = 0; j < bins; ++j) weighted[j] = data.ivar[j] * jacobian(q, j);
    curvature.g[q] = DotProduct(weighted.data(), residual.data(), bins);
    for (int64_t p = 0; p <= q; ++p) {
      h(q, p) = h(p, q) = DotProduct(weighted.data(), &jacobian(p, 0), bins);
    }
    for (int64_t j = 0; j < bins; ++j) weighted[j] *= point.star(0, j);
    for (int64_t k = 0; k < terms; ++k) {
      cross(k, q) = DotProduct(weighted.data(), &model.polynomials(k, 0), bins);
    }
  }
  const int columns = static_cast<int>(size), rows = static_cast<int>(terms);
  for (int q = 0; q < columns; ++q) ProjectColumn(point.fit.factor.data(), rows, q, cross.data());
  for (int q = 0; q < columns; ++q) {
    for (int p = 0; p < columns; ++p) ProjectElement(cross.data(), rows, q, p, curvature.h);
  }
  return curvature;
}

}  // namespace

VelocityFit FitVelocity(const VelocityModel& model, const VelocityData& data, std::vector<double> start) {
  const FitRanges ranges = RangesOf(*model.library, *model.templates, model.rotation);
  for (size_t q = 0; q < start.size(); ++q) start[q] = WithinRange(start[q], ranges.least[q], ranges.most[q]);
  Point point = Evaluate(model, data, std::move(start));
  VelocityFit fit;
  fit.evaluations = 1;
  double damping = kFirstDamping;
  for (int step = 0; step < kMaxFitSteps && point.fit.solved; ++step) {
    const FitCurvature curvature = CurvatureAt(model, data, point);
    double gained = -1;
    double refused = std::numeric_limits<double>::infinity();  // what the last refused step was to gain
    for (; damping < kMaxDamping && gained < 0; damping *= gained < 0 ? kMoreDamping : 1) {
      std::vector<double> x = point.x;
      if (!DampedStep(curvature, ranges, point.x.data(), damping, x.data())) continue;
      const double expected = ExpectedGain(curvature, ranges.moving, point.x.data(), x.data());
      const StepVerdict verdict = JudgeStep(expected, refused);
      if (verdict == StepVerdict::kEnds) break;
      if (verdict == StepVerdict::kSkipped) continue;
      Point next = Evaluate(model, data, std::move(x));
      ++fit.evaluations;
      if (!next.fit.solved || !(next.fit.chi2 <= point.fit.chi2)) {
        refused = expected;
        continue;
      }
      gained = point.fit.chi2 - next.fit.chi2;
      point = std::move(next);
    }
    if (gained < kEnoughGained) break;
    damping = std::max(damping * kLessDamping, kMinDamping);
  }
  fit.x = point.x;
  fit.chi2 = point.fit.chi2;
  fit.errors.assign(fit.x.size(), std::numeric_limits<double>::quiet_NaN());
  fit.continuum.assign(model.polynomials.shape(1), 0);
  fit.model = fit.continuum;
  if (!point.fit.solved) return fit;
  const FitCurvature curvature = CurvatureAt(model, data, point);
  FitErrors(curvature, ranges, point.x.data(), fit.errors.data());
  fit.conditional_error = 1 / std::sqrt(curvature.h[0]);
  fit.continuum = ContinuumOf(model, point.fit);
  for (size_t j = 0; j < fit.model.size(); ++j) fit.model[j] = fit.continuum[j] * point.star(0, j);
  return fit;
}

}  // namespace spexd
