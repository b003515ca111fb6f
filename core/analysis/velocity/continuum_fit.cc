#include "core/analysis/velocity/continuum_fit.h"

#include "core/analysis/vector_loops.h"
#include "core/analysis/velocity/shared/continuum_matrix.h"
#include "core/analysis/velocity/shared/fit_steps.h"
#include "core/analysis/velocity/shared/small_matrix.h"

namespace spexd {

Array<double, 2> Chebyshev(const std::vector<double>& wave, int degree) {
  const int64_t bins = static_cast<int64_t>(wave.size());
  Array<double, 2> values({degree + 1, bins});
  for (int64_t j = 0; j < bins; ++j) {
    const double x = 2 * (wave[j] - wave.front()) / (wave.back() - wave.front()) - 1;
    double before = 1, at = x;
    for (int k = 0; k <= degree; ++k) {
      values(k, j) = before;
      const double next = 2 * x * at - before;
      before = at;
      at = next;
    }
  }
  return values;
}

void ContinuumMatrix(const double* moments, int degree, double prior, Array<double, 2>* matrix) {
  matrix->Reshape({degree + 1, degree + 1});
  ContinuumMatrix(moments, degree, prior, matrix->data(), degree + 1);
}

bool SolvePositive(Array<double, 2>* matrix, double* b) {
  const int size = static_cast<int>(matrix->shape(0));
  return SolvePositive(matrix->data(), size, size, b);
}

ContinuumFit FitContinuum(const Array<double, 2>& polynomials, int degree, absl::Span<const double> model,
                          absl::Span<const double> flux, absl::Span<const double> weights) {
  const int64_t bins = polynomials.shape(1);
  std::vector<double> squares(bins), products(bins), moments(2 * degree + 1, 0);
  ContinuumFit fit;
  for (int64_t j = 0; j < bins; ++j) {
    const double weighted = weights[j] * model[j];
    squares[j] = weighted * model[j];
    products[j] = weighted * flux[j];
    fit.chi2 += weights[j] * flux[j] * flux[j];
  }
  std::vector<double> b(degree + 1, 0);
  for (int n = 0; n <= 2 * degree; ++n) {
    const double* const t = &polynomials(n, 0);
    moments[n] = DotProduct(t, squares.data(), bins);
    if (n <= degree) b[n] = DotProduct(t, products.data(), bins);
  }
  ContinuumMatrix(moments.data(), degree, kContinuumPrior, &fit.factor);
  fit.coefficients = b;
  fit.solved = SolvePositive(&fit.factor, fit.coefficients.data());
  if (!fit.solved) return fit;
  for (int k = 0; k <= degree; ++k) fit.chi2 -= b[k] * fit.coefficients[k];
  return fit;
}

}  // namespace spexd
