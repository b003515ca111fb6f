#include "core/traces/shifts/series.h"

#include <algorithm>
#include <cmath>

#include "core/base/median.h"
#include "core/traces/shifts/small_cholesky.h"

namespace spexd {
namespace {

// The standard error of the series at a position.
double ErrorAt(const std::vector<SeriesTerm>& terms, const std::vector<double>& covariance, double u,
               double t) {
  const size_t n = terms.size();
  std::vector<double> basis(n);
  SeriesBasis(terms.data(), static_cast<int>(n), u, t, basis.data());
  double variance = 0;
  for (size_t k = 0; k < n; ++k) {
    for (size_t l = 0; l < n; ++l) variance += basis[k] * covariance[k * n + l] * basis[l];
  }
  return std::sqrt(std::max(variance, 0.0));
}

}  // namespace

ShiftSeries AddSeries(const ShiftSeries& a, const ShiftSeries& b) {
  ShiftSeries sum({std::max(a.shape(0), b.shape(0)), std::max(a.shape(1), b.shape(1))});
  for (const ShiftSeries* series : {&a, &b}) {
    for (int64_t k = 0; k < series->shape(0); ++k) {
      for (int64_t l = 0; l < series->shape(1); ++l) sum(k, l) += (*series)(k, l);
    }
  }
  return sum;
}

void ShiftMeasurements::Resize(size_t count) {
  for (std::vector<double>* values : {&value, &info, &u, &t}) values->assign(count, 0);
}

SeriesPrior PriorOf(const std::array<int, 2>& degrees, const ShiftSeries& current, SeriesTerms which,
                    const TraceShiftOptions& options) {
  SeriesPrior prior;
  for (int a = which == SeriesTerms::kAll ? 0 : 1; a <= degrees[0]; ++a) {
    for (int b = 0; b <= degrees[1]; ++b) {
      prior.terms.push_back({a, b});
      const double sigma = options.prior[std::min<size_t>(a + b, options.prior.size() - 1)];
      prior.info.push_back(1 / (sigma * sigma));
      prior.before.push_back(a < current.shape(0) && b < current.shape(1) ? current(a, b) : 0);
    }
  }
  return prior;
}

SeriesFit FitOfTerms(const SeriesPrior& prior, const std::array<int, 2>& degrees,
                     const std::vector<double>& step, const std::vector<double>& covariance, double low,
                     double middle, double high) {
  const size_t n = prior.terms.size();
  SeriesFit fit;
  const int64_t columns = degrees[1] + 1, all = (degrees[0] + 1) * columns;
  fit.step.Assign({degrees[0] + 1, columns});
  fit.covariance.Assign({all, all});
  for (size_t k = 0; k < n; ++k) {
    fit.step(prior.terms[k].a, prior.terms[k].b) = step[k];
    for (size_t l = 0; l < n; ++l) {
      fit.covariance(prior.terms[k].a * columns + prior.terms[k].b,
                     prior.terms[l].a * columns + prior.terms[l].b) = covariance[k * n + l];
    }
  }
  for (const double u : {low, high}) {
    for (const double t : {-1.0, 1.0}) {
      fit.corner_error = std::max(fit.corner_error, ErrorAt(prior.terms, covariance, u, t));
    }
  }
  constexpr int kSamples = 21;
  for (int k = 0; k < kSamples; ++k) {
    const double error = ErrorAt(prior.terms, covariance, middle, 2.0 * k / (kSamples - 1) - 1);
    fit.best_error = k == 0 ? error : std::min(fit.best_error, error);
  }
  return fit;
}

SeriesFit FitSeries(const ShiftMeasurements& measured, const std::array<int, 2>& degrees,
                    const ShiftSeries& current, SeriesTerms which, const TraceShiftOptions& options) {
  const SeriesPrior prior = PriorOf(degrees, current, which, options);
  const size_t n = prior.terms.size();
  std::vector<double> value, variance, basis;
  for (size_t i = 0; i < measured.size(); ++i) {
    if (!(measured.info[i] > 0) || !std::isfinite(measured.value[i])) continue;
    value.push_back(measured.value[i]);
    variance.push_back(1 / measured.info[i]);
    basis.resize(basis.size() + n);
    SeriesBasis(prior.terms.data(), static_cast<int>(n), measured.u[i], measured.t[i],
                basis.data() + basis.size() - n);
  }
  const size_t count = value.size();
  std::vector<char> use(count, 1);
  std::vector<double> residual2(count), work, normal(n * n), right(n), step(n), covariance;
  double floor = options.first_floor;
  for (int round = 0; round < kMaxSeriesRounds; ++round) {
    std::fill(normal.begin(), normal.end(), 0);
    for (size_t k = 0; k < n; ++k) {
      normal[k * n + k] = prior.info[k];
      right[k] = -prior.before[k] * prior.info[k];
    }
    for (size_t i = 0; i < count; ++i) {
      if (!use[i]) continue;
      const double weight = 1 / (variance[i] + floor * floor);
      const double* m = &basis[i * n];
      for (size_t k = 0; k < n; ++k) {
        const double scaled = weight * m[k];
        right[k] += scaled * value[i];
        for (size_t l = 0; l <= k; ++l) normal[k * n + l] += scaled * m[l];
      }
    }
    covariance = InverseOfPositive(normal, n);
    for (size_t k = 0; k < n; ++k) {
      step[k] = 0;
      for (size_t l = 0; l < n; ++l) step[k] += covariance[k * n + l] * right[l];
    }
    const double judged = JudgedFloor(floor, options.first_floor);
    work.resize(count);
    for (size_t i = 0; i < count; ++i) {
      double model = 0;
      for (size_t k = 0; k < n; ++k) model += step[k] * basis[i * n + k];
      residual2[i] = (value[i] - model) * (value[i] - model);
      work[i] = residual2[i] / (variance[i] + judged * judged);
    }
    const double limit = OutlierLimit(options.block_clip, Median(work));
    bool same = true;
    work.clear();
    for (size_t i = 0; i < count; ++i) {
      const char now = residual2[i] < limit * (variance[i] + judged * judged);
      same = same && now == use[i];
      use[i] = now;
      if (now) work.push_back(FloorSquared(residual2[i], variance[i]));
    }
    const double next = NextFloor(Median(work));
    const bool settled = IsSettled(round, same, next, floor);
    floor = next;
    if (settled) break;
  }

  double low = -1, high = 1, middle = 0;
  if (measured.size() > 0) {
    low = *std::min_element(measured.u.begin(), measured.u.end());
    high = *std::max_element(measured.u.begin(), measured.u.end());
    for (const double u : measured.u) middle += u / static_cast<double>(measured.size());
  }
  SeriesFit fit = FitOfTerms(prior, degrees, step, covariance, low, middle, high);
  double chi2 = 0;
  for (size_t i = 0; i < count; ++i) {
    fit.used += use[i];
    fit.clipped += !use[i];
    if (use[i]) chi2 += residual2[i] / variance[i];
  }
  fit.floor = floor;
  fit.chi2 = chi2 / std::max(1, fit.used - static_cast<int>(n));
  return fit;
}

}  // namespace spexd
