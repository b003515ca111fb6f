#include "core/analysis/residual_pca.h"

#include <cblas.h>
#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_format.h"

namespace spexd {
namespace {

constexpr double kMinData = 0.8;  // part of a fibre's bins

bool HasEnoughData(const Array<double, 2>& ivar, int64_t fibre) {
  const auto row = ivar.Row(fibre);
  const auto with_data = std::count_if(row.begin(), row.end(), [](double value) { return value > 0; });
  return static_cast<double>(with_data) > kMinData * static_cast<double>(row.size());
}

}  // namespace

Array<double, 2> SnapshotsOf(const Array<double, 2>& residuals, const Array<double, 2>& ivar, double clip) {
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < residuals.shape(0); ++i) {
    if (HasEnoughData(ivar, i)) rows.push_back(i);
  }
  const int64_t bins = residuals.shape(1);
  Array<double, 2> snapshots({static_cast<int64_t>(rows.size()), bins});
  for (int64_t k = 0; k < snapshots.shape(0); ++k) {
    const int64_t i = rows[static_cast<size_t>(k)];
    for (int64_t j = 0; j < bins; ++j) {
      const double value = residuals(i, j) * std::sqrt(std::max(0.0, ivar(i, j)));
      snapshots(k, j) = std::isfinite(value) ? std::clamp(value, -clip, clip) : 0;
    }
  }
  return snapshots;
}

ResidualPca::ResidualPca(int64_t bins, const PcaOptions& options)
    : options_(options), products_({bins, bins}), sums_(static_cast<size_t>(bins), 0) {}

absl::StatusOr<int64_t> ResidualPca::Add(const Array<double, 2>& residuals, const Array<double, 2>& ivar) {
  const int64_t bins = products_.shape(0);
  if (residuals.shape() != ivar.shape() || residuals.shape(1) != bins) {
    return absl::InvalidArgumentError(
        absl::StrFormat("residuals: have shape %d x %d with ivar of %d x %d, must both have %d wavelengths",
                        residuals.shape(0), residuals.shape(1), ivar.shape(0), ivar.shape(1), bins));
  }
  const Array<double, 2> snapshots = SnapshotsOf(residuals, ivar, options_.clip);
  const int64_t count = snapshots.shape(0);
  cblas_dsyrk(CblasRowMajor, CblasLower, CblasTrans, static_cast<int>(bins), static_cast<int>(count), 1,
              snapshots.data(), static_cast<int>(bins), options_.forget, products_.data(),
              static_cast<int>(bins));
  for (int64_t j = 0; j < bins; ++j) {
    sums_[j] *= options_.forget;
    for (int64_t i = 0; i < count; ++i) sums_[j] += snapshots(i, j);
  }
  snapshots_ = options_.forget * snapshots_ + static_cast<double>(count);
  return count;
}

absl::StatusOr<PrincipalComponents> ResidualPca::Solve(int count) const {
  const int64_t bins = products_.shape(0);
  if (count < 1 || count > bins) {
    return absl::InvalidArgumentError(absl::StrFormat("components: %d, must be 1 to %d", count, bins));
  }
  if (snapshots_ < 2) {
    return absl::FailedPreconditionError(
        absl::StrFormat("components: need at least 2 spectra, the sums have %g", snapshots_));
  }
  PrincipalComponents result;
  result.snapshots = snapshots_;
  for (const double sum : sums_) result.mean.push_back(sum / snapshots_);
  Array<double, 2> covariance({bins, bins});
  for (int64_t j = 0; j < bins; ++j) {
    for (int64_t k = 0; k <= j; ++k) {
      covariance(j, k) = products_(j, k) / snapshots_ - result.mean[j] * result.mean[k];
    }
  }
  const lapack_int size = static_cast<lapack_int>(bins), first = size - count + 1;
  std::vector<double> values(bins);
  Array<double, 2> vectors({count, bins});  // in columns as LAPACK has them, the smallest first
  std::vector<lapack_int> support(2 * static_cast<size_t>(count));
  lapack_int found = 0;
  // The lower triangle in rows is the upper one in columns.
  const lapack_int error =
      LAPACKE_dsyevr(LAPACK_COL_MAJOR, 'V', 'I', 'U', size, covariance.data(), size, 0, 0, first, size, 0,
                     &found, values.data(), vectors.data(), size, support.data());
  if (error != 0 || found != count) {
    return absl::InternalError(absl::StrFormat("components: LAPACK's dsyevr answered %d", error));
  }
  result.vectors.Assign({count, bins});
  for (int k = 0; k < count; ++k) {
    result.values.push_back(values[count - 1 - k]);
    const auto vector = vectors.Row(count - 1 - k);
    const double largest = *std::max_element(vector.begin(), vector.end(),
                                             [](double a, double b) { return std::abs(a) < std::abs(b); });
    for (int64_t j = 0; j < bins; ++j) result.vectors(k, j) = largest < 0 ? -vector[j] : vector[j];
  }
  return result;
}

double LargestNoiseVariance(int64_t bins, const std::vector<int64_t>& spectra, double forget) {
  constexpr double kTracyWidom = 4.4;  // P(TW1 > 4.4) = 1e-4
  struct Weight {
    double value, count;  // weight in the covariance, and degrees of freedom with it
  };
  std::vector<Weight> weights;
  double frame_weight = 1, total = 0, most = 0;
  for (auto n = spectra.rbegin(); n != spectra.rend(); ++n, frame_weight *= forget) {
    const auto count = static_cast<double>(*n);
    total += frame_weight * count;
    if (count > 1) weights.push_back({frame_weight * count / (count - 1), count - 1});
  }
  for (Weight& weight : weights) {
    weight.value /= total;
    most = std::max(most, weight.value);
  }
  if (most == 0) return std::numeric_limits<double>::infinity();
  const auto size = static_cast<double>(bins);
  // Between 0 and the pole of the largest weight, the derivative of lambda grows from -infinity to infinity.
  double low = 0, high = 1 / (size * most), s = 0;
  for (int step = 0; step < 100; ++step) {
    s = 0.5 * (low + high);
    double slope = -1 / (s * s);
    for (const auto& [t, count] : weights) slope += count * size * t * t / std::pow(1 - size * t * s, 2);
    (slope < 0 ? low : high) = s;
  }
  double edge = 1 / s, curvature = 2 / (s * s * s);
  for (const auto& [t, count] : weights) {
    const double rest = 1 - size * t * s;
    edge += count * t / rest;
    curvature += 2 * count * size * size * t * t * t / (rest * rest * rest);
  }
  return edge + kTracyWidom * std::cbrt(curvature / (2 * size * size));
}

}  // namespace spexd
