// One star's velocity and parameters: Levenberg-Marquardt with the continuum projected out (Golub & Pereyra
// 1973; Kaufman 1975), with the star's own resolution.
#ifndef SPEXD_CORE_ANALYSIS_VELOCITY_VELOCITY_FIT_H_
#define SPEXD_CORE_ANALYSIS_VELOCITY_VELOCITY_FIT_H_

#include <vector>

#include "absl/types/span.h"
#include "core/analysis/resolution_matrix.h"
#include "core/analysis/velocity/shared/fit_steps.h"
#include "core/analysis/velocity/template_library.h"
#include "core/base/array.h"

namespace spexd {

// What the fits of one frame share.
struct VelocityModel {
  const TemplateLibrary* library;
  const BinnedTemplates* templates;
  Array<double, 2> polynomials;  // T_0 .. T_2 degree
  int degree;                    // of the continuum
  bool rotation;                 // whether stars may rotate
};

struct VelocityData {
  absl::Span<const double> flux, ivar;  // [bin]
  ResolutionMatrix resolution;
};

// x is [velocity (km/s), the library's parameters, vsini^2 (km/s)^2].
struct VelocityFit {
  std::vector<double> x, errors;  // errors are NaN where a parameter is at the end of its range, or
                                  // infinite where it is beyond (FitErrors)
  double conditional_error = 0;   // of the velocity, all else fixed
  double chi2 = 0;
  int evaluations = 0;
  std::vector<double> model;      // [bin], continuum included
  std::vector<double> continuum;  // [bin]
};

// The ranges that a library's velocities and parameters have.
FitRanges RangesOf(const TemplateLibrary& library, const BinnedTemplates& templates, bool rotation);
// The sum of coefficients times polynomials [bin].
std::vector<double> ContinuumOf(const Array<double, 2>& polynomials, const std::vector<double>& coefficients);

VelocityFit FitVelocity(const VelocityModel& model, const VelocityData& data, std::vector<double> start);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_VELOCITY_VELOCITY_FIT_H_
