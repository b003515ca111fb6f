// The scale of a model as a polynomial of wavelength, by least squares: the chi-square of the model sum of
// a_k T_k m.
#ifndef SPEXD_CORE_ANALYSIS_VELOCITY_CONTINUUM_FIT_H_
#define SPEXD_CORE_ANALYSIS_VELOCITY_CONTINUUM_FIT_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/base/array.h"

namespace spexd {

// Chebyshev polynomials T_0 .. T_degree, [degree + 1, bin], of the position along the wavelengths, from -1 to
// 1.
Array<double, 2> Chebyshev(const std::vector<double>& wave, int degree);

// The normal matrix A of the coefficients, with elements (M[k + l] + M[|k - l|]) / 2, where M_n = sum of w
// m^2 T_n. `moments`: M_0 .. M_2p. Returns A [k, l] with `prior` times A_00 added to its diagonal.
void ContinuumMatrix(const double* moments, int degree, double prior, Array<double, 2>* matrix);

// Solves A x = b for a positive definite A. Its Cholesky factor L replaces the lower triangle of A, and x
// replaces b. Returns false if A is not positive definite.
bool SolvePositive(Array<double, 2>* matrix, double* b);

struct ContinuumFit {
  double chi2 = 0;
  std::vector<double> coefficients;  // the coefficients a
  Array<double, 2> factor;           // Cholesky factor of A; lower triangle
  bool solved = false;               // whether the data determine the coefficients
};
// Fits a continuum. `polynomials`: T_0 .. T_2p, [2 degree + 1, bin]. Model, flux and weights are [bin].
ContinuumFit FitContinuum(const Array<double, 2>& polynomials, int degree, absl::Span<const double> model,
                          absl::Span<const double> flux, absl::Span<const double> weights);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_VELOCITY_CONTINUUM_FIT_H_
