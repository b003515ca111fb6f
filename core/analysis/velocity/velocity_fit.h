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

// What fits share: of each arm, templates on its bins and the polynomials of its continuum.
struct ArmModel {
  const BinnedTemplates* templates = nullptr;  // null: no target has data there
  Array<double, 2> polynomials;                // T_0 .. T_2 degree
};
struct VelocityModel {
  const TemplateLibrary* library;
  int degree;     // of the continuum
  bool rotation;  // whether stars may rotate
  std::vector<ArmModel> arms;
  FitRanges ranges;  // RangesOf the arms with templates
};

// The data of a fit: one arm of one exposure, which has a continuum of its own.
struct VelocitySegment {
  size_t arm;
  absl::Span<const double> flux;  // [bin]
  std::vector<double> ivar;       // [bin], 0 where there is no weight
  ResolutionMatrix resolution;
};

// What a fit is in a segment. Model and continuum: [bin]; the model includes the continuum.
struct SegmentFit {
  double chi2 = 0;
  std::vector<double> model, continuum;
};

// x is [velocity (km/s), the library's parameters, vsini^2 (km/s)^2].
struct VelocityFit {
  std::vector<double> x, errors;  // errors are NaN where a parameter is at the end of its range, or
                                  // infinite where it is beyond (FitErrors)
  double conditional_error = 0;   // of the velocity, all else fixed
  double chi2 = 0;
  int evaluations = 0;
  std::vector<SegmentFit> segments;
  // [arm]: the velocity that the arm alone has, all else fixed, by one Newton step, and its error, km/s. NaN
  // without data.
  std::vector<double> arm_velocities, arm_errors;
};

// Sums over the segments of an arm, of FitCurvature's h and g of the velocity.
struct VelocityCurvature {
  double h = 0, g = 0;
};
// Sets the arms' velocities and errors of a fit from those at its end.
void SetArmVelocities(const std::vector<VelocityCurvature>& of_arms, VelocityFit* fit);

// The ranges that a library's velocities and parameters have in all arms. REQUIRES: one or more.
FitRanges RangesOf(const TemplateLibrary& library, absl::Span<const BinnedTemplates* const> arms,
                   bool rotation);
// The sum of coefficients times polynomials [bin].
std::vector<double> ContinuumOf(const Array<double, 2>& polynomials, const std::vector<double>& coefficients);

// `segments`: by arm. REQUIRES: one or more.
VelocityFit FitVelocity(const VelocityModel& model, absl::Span<const VelocitySegment> segments,
                        std::vector<double> start);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_VELOCITY_VELOCITY_FIT_H_
