#include "core/analysis/velocity/velocity_scan.h"

#include <cblas.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/analysis/velocity/continuum_fit.h"
#include "core/analysis/velocity/shared/fit_steps.h"
#include "core/analysis/velocity/velocity_minima.h"
#include "core/base/median.h"
#include "core/base/status_macros.h"
#include "core/base/threads/parallel.h"

namespace spexd {
namespace {

// The size of a task, whatever the number of threads, because OpenBLAS rounds differently for other shapes.
constexpr int64_t kTemplatesAtOnce = 4, kRowsAtOnce = 64;

// The weighted spectra, times each polynomial of the continuum. float32 is precise enough for a scan, because
// fits decide.
struct ScanRows {
  Array<float, 2> data;      // w f T_k [row * (degree + 1), bin]
  Array<float, 2> weights;   // w T_n [row * (2 degree + 1), bin]
  std::vector<double> chi2;  // chi-square of flux 0, [row]
};

ScanRows MakeRows(const UsableSpectra& spectra, const std::vector<int>& rows,
                  const VelocityOptions& options) {
  const int degree = options.scan_degree;
  const int64_t count = static_cast<int64_t>(rows.size()), bins = spectra.bins();
  const Array<double, 2> polynomials = Chebyshev(spectra.wave, 2 * degree);
  ScanRows scan{Array<float, 2>({count * (degree + 1), bins}),
                Array<float, 2>({count * (2 * degree + 1), bins}), std::vector<double>(count, 0)};
  for (int64_t i = 0; i < count; ++i) {
    const std::vector<double> ivar = VelocityWeights(spectra, rows[i], options.exclude);
    const auto flux = spectra.flux.Row(rows[i]);
    for (int64_t j = 0; j < bins; ++j) scan.chi2[i] += ivar[j] * flux[j] * flux[j];
    for (int n = 0; n <= 2 * degree; ++n) {
      float* const weights = &scan.weights(i * (2 * degree + 1) + n, 0);
      for (int64_t j = 0; j < bins; ++j) weights[j] = static_cast<float>(ivar[j] * polynomials(n, j));
    }
    for (int k = 0; k <= degree; ++k) {
      float* const data = &scan.data(i * (degree + 1) + k, 0);
      for (int64_t j = 0; j < bins; ++j) data[j] = static_cast<float>(ivar[j] * flux[j] * polynomials(k, j));
    }
  }
  return scan;
}

// The templates [first, first + count) at each velocity, and their squares, [template * velocities, bin].
struct ShiftedTemplates {
  Array<float, 2> values, squares;
};
ShiftedTemplates Shift(const Array<double, 2>& coefficients, int64_t first, int64_t count,
                       const std::vector<SplinePositions>& positions) {
  const int64_t steps = static_cast<int64_t>(positions.size()),
                bins = static_cast<int64_t>(positions[0].sample.size());
  ShiftedTemplates to{Array<float, 2>({count * steps, bins}), Array<float, 2>({count * steps, bins})};
  for (int64_t row = 0; row < count * steps; ++row) {
    const double* const c = &coefficients(first + row / steps, 0);
    const SplinePositions& at = positions[row % steps];
    for (int64_t j = 0; j < bins; ++j) {
      const double* const taps = c + at.sample[j] - 1;
      const std::array<double, 4>& w = at.weights[j];
      const double value = w[0] * taps[0] + w[1] * taps[1] + w[2] * taps[2] + w[3] * taps[3];
      to.values(row, j) = static_cast<float>(value);
      to.squares(row, j) = static_cast<float>(value * value);
    }
  }
  return to;
}

// The product a b^T for rows [first, first + count) of a.
Array<float, 2> Multiply(const Array<float, 2>& a, int64_t first, int64_t count, const Array<float, 2>& b) {
  const auto size = [](int64_t value) { return static_cast<int>(value); };
  Array<float, 2> products({count, b.shape(0)});
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, size(count), size(b.shape(0)), size(a.shape(1)), 1,
              &a(first, 0), size(a.shape(1)), b.data(), size(b.shape(1)), 0, products.data(),
              size(b.shape(0)));
  return products;
}

// Computes the chi-square `chi2` [column] of one spectrum from its products with all shifted templates.
void SolveScan(const Array<float, 2>& data, const Array<float, 2>& moments, int64_t row, int degree,
               double flat, double* chi2) {
  std::vector<double> m(2 * degree + 1), a(degree + 1);
  Array<double, 2> matrix;
  for (int64_t v = 0; v < data.shape(1); ++v) {
    for (int n = 0; n <= 2 * degree; ++n) m[n] = moments(row * (2 * degree + 1) + n, v);
    for (int k = 0; k <= degree; ++k) a[k] = data(row * (degree + 1) + k, v);
    chi2[v] = flat;
    ContinuumMatrix(m.data(), degree, kScanPrior, &matrix);
    if (!SolvePositive(&matrix, a.data())) continue;
    for (int k = 0; k <= degree; ++k) chi2[v] -= data(row * (degree + 1) + k, v) * a[k];
  }
}

}  // namespace

absl::StatusOr<Array<double, 3>> ScanVelocities(const UsableSpectra& spectra, const std::vector<int>& rows,
                                                const BinnedTemplates& templates,
                                                const std::vector<double>& velocities,
                                                const VelocityOptions& options, const Workers& workers) {
  const int degree = options.scan_degree;
  const int64_t count = static_cast<int64_t>(rows.size()), steps = static_cast<int64_t>(velocities.size()),
                library = templates.coefficients().shape(0);
  const ScanRows scan = MakeRows(spectra, rows, options);
  std::vector<SplinePositions> positions;
  for (const double velocity : velocities) positions.push_back(templates.PositionsAt(velocity));
  Array<double, 3> chi2({count, library, steps});
  const int64_t groups = (library + kTemplatesAtOnce - 1) / kTemplatesAtOnce,
                blocks = (count + kRowsAtOnce - 1) / kRowsAtOnce;
  SPEXD_RETURN_IF_ERROR(ParallelFor(groups * blocks, workers, [&](int64_t task) {
    const int64_t first = task / blocks * kTemplatesAtOnce, row = task % blocks * kRowsAtOnce;
    const int64_t taken = std::min(kTemplatesAtOnce, library - first),
                  of = std::min(kRowsAtOnce, count - row);
    const ShiftedTemplates shifted = Shift(templates.coefficients(), first, taken, positions);
    const Array<float, 2> data = Multiply(scan.data, row * (degree + 1), of * (degree + 1), shifted.values);
    const Array<float, 2> moments =
        Multiply(scan.weights, row * (2 * degree + 1), of * (2 * degree + 1), shifted.squares);
    for (int64_t i = 0; i < of; ++i) {
      SolveScan(data, moments, i, degree, scan.chi2[row + i], &chi2(row + i, first, 0));
    }
    return absl::OkStatus();
  }));
  return chi2;
}

double MeanResolution(const UsableSpectra& spectra, const std::vector<int>& rows) {
  double sum = 0, second = 0;
  std::vector<double> values;
  for (int k = 0; k < kResolutionDiagonals; ++k) {
    values.clear();
    for (const int row : rows) {
      const auto diagonal = spectra.resolution->Row(row, k);
      values.insert(values.end(), diagonal.begin() + kEdgeBins, diagonal.end() - kEdgeBins);
    }
    const double median = std::max(0.0, Median(values)), offset = k - kResolutionHalfWidth;
    sum += median;
    second += median * offset * offset;
  }
  return sum > 0 ? std::sqrt(second / sum) * (spectra.wave[1] - spectra.wave[0]) : 0;
}

}  // namespace spexd
