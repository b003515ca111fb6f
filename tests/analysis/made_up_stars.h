// Stars with one parameter, the depth of their lines, and a library of their templates.
#ifndef SPEXD_TESTS_ANALYSIS_MADE_UP_STARS_H_
#define SPEXD_TESTS_ANALYSIS_MADE_UP_STARS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "core/analysis/velocity/template_library.h"
#include "core/analysis/velocity_units.h"
#include "core/base/array.h"

namespace spexd::testing {

inline constexpr double kLibraryStep = 10 / kLightSpeed;

// Templates with depths 0.4, 0.8 and 1.2.
struct StarTemplates {
  StarTemplates();
  absl::StatusOr<TemplateLibrary> Make(double step = kLibraryStep) const;

  std::vector<std::vector<double>> nodes;
  Array<float, 2> flux;
};

// Returns the light of a star on the bins of a simulated frame, `scale` at the blue end. Velocities: km/s.
std::vector<double> StarLight(double velocity, double depth, double scale, double vsini = 0);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_ANALYSIS_MADE_UP_STARS_H_
