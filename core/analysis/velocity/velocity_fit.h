// The fit of one star's velocity and parameters: Levenberg-Marquardt with the continuum projected out (Golub
// & Pereyra 1973; Kaufman 1975), at the star's own resolution.
#ifndef SPEXD_CORE_ANALYSIS_VELOCITY_VELOCITY_FIT_H_
#define SPEXD_CORE_ANALYSIS_VELOCITY_VELOCITY_FIT_H_

#include <vector>

#include "absl/types/span.h"
#include "core/analysis/resolution_matrix.h"
#include "core/analysis/velocity/shared/fit_steps.h"
#include "core/analysis/velocity/template_library.h"
#include "core/base/array.h"

namespace spexd {

// The parts of an arm that fits share: templates on its bins and the polynomials of its continuum.
struct ArmModel {
  const BinnedTemplates* templates = nullptr;  // null if no target has data in the arm
  Array<double, 2> polynomials;                // T_0 .. T_(2 degree)
};
struct VelocityModel {
  const TemplateLibrary* library;
  int degree;     // degree of the continuum
  bool rotation;  // whether stars may rotate
  std::vector<ArmModel> arms;
  FitRanges ranges;  // RangesOf for the arms with templates
};

// The data of one arm of one exposure in a fit. A segment has a continuum of its own.
struct VelocitySegment {
  size_t arm;
  absl::Span<const double> flux;  // [bin]
  std::vector<double> ivar;       // [bin]; 0 if the bin has no weight
  ResolutionMatrix resolution;
};

// The result of a fit in a segment. Model and continuum are [bin]; the model includes the continuum.
struct SegmentFit {
  double chi2 = 0;
  std::vector<double> model, continuum;
};

// The result of a fit. x is [velocity (km/s), the library's parameters, vsini^2 (km/s)^2].
struct VelocityFit {
  // The parameters and their errors. An error is NaN if a parameter is at the end of its range, or infinite
  // if it is beyond (FitErrors).
  std::vector<double> x, errors;
  double conditional_error = 0;   // error of the velocity with everything else fixed
  double chi2 = 0;
  int evaluations = 0;
  std::vector<SegmentFit> segments;
  // [arm]: the velocity of the arm alone, with everything else fixed, by one Newton step, and its error,
  // km/s. NaN without data.
  std::vector<double> arm_velocities, arm_errors;
};

// FitCurvature's h and g of the velocity, summed over the segments of an arm.
struct VelocityCurvature {
  double h = 0, g = 0;
};
// Sets the arms' velocities and errors of a fit. `of_arms`: the arms' curvatures at the end of the fit.
void SetArmVelocities(const std::vector<VelocityCurvature>& of_arms, VelocityFit* fit);

// The ranges of a library's velocities and parameters in all arms. REQUIRES: one arm or more.
FitRanges RangesOf(const TemplateLibrary& library, absl::Span<const BinnedTemplates* const> arms,
                   bool rotation);
// The sum of coefficients times polynomials [bin].
std::vector<double> ContinuumOf(const Array<double, 2>& polynomials, const std::vector<double>& coefficients);

// Fits a star from a start. `segments`: ordered by arm. REQUIRES: one segment or more.
VelocityFit FitVelocity(const VelocityModel& model, absl::Span<const VelocitySegment> segments,
                        std::vector<double> start);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_VELOCITY_VELOCITY_FIT_H_
