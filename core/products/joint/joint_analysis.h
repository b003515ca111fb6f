// Velocities and redshifts of targets from all their arms and exposures together.
#ifndef SPEXD_CORE_PRODUCTS_JOINT_JOINT_ANALYSIS_H_
#define SPEXD_CORE_PRODUCTS_JOINT_JOINT_ANALYSIS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/analysis/analyser/analyser.h"
#include "core/analysis/lines/emission_lines.h"
#include "core/analysis/velocity/template_library.h"
#include "core/analysis/velocity/velocity.h"
#include "core/model/target_spectra.h"

namespace spexd {

// The wavelengths of files of spectra that have no weight for velocities unless requested, as in rvspecfit.
inline constexpr WavelengthRange kExcludedOfTargets = {4300, 4450};

// A part of an arm with a continuum of its own: the whole arm, or the part of one camera in an arm that
// combines several. Its spectra begin at `first`; its model is valid for the bins [kept_first, kept_end) of
// the arm.
struct ArmPart {
  std::string name;  // name of an arm, for columns of tables
  size_t arm = 0;    // position in TargetSpectra::arms
  int64_t first = 0, kept_first = 0, kept_end = 0;
};

struct JointRequest {
  // The rows of each result: a single row, or all exposures of a target.
  std::vector<std::vector<int>> targets;
  const TemplateLibrary* templates = nullptr;  // null if no velocities are requested; must outlive the call
  VelocityOptions velocity_options;
  bool lines = false;
  LineOptions line_options = {.max_redshift = 1.63};
  Analyser* analyser = nullptr;  // makes the products; null: CPUs make them
  // CPUs make products that the analyser cannot make because its device has no room or failed.
  bool fall_back = false;
  int threads = 1;
  std::stop_token stop = {};
};

struct JointProducts {
  std::vector<ArmPart> parts;             // ordered by wavelength; StarVelocity::arms has the same order
  std::vector<std::vector<int>> targets;  // as requested
  absl::StatusOr<std::vector<StarVelocity>> velocities = absl::CancelledError("not asked for");
  absl::StatusOr<std::vector<LineRedshift>> lines = absl::CancelledError("not asked for");
};

// Receives the redshifts, if requested, once they are finished or have failed, before velocities are begun.
using LineObserver = std::function<void(const JointProducts& products)>;

// Makes the requested products. Arms that combine several cameras are cut where the cameras of DESI overlap
// (5780 and 7570 Angstrom). A product that fails has its error and does not affect the other. Returns an
// error of both for spectra that MakeUsable refuses.
absl::StatusOr<JointProducts> AnalyseJointly(const TargetSpectra& spectra, const JointRequest& request,
                                             const LineObserver& lines_made = {});

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_JOINT_JOINT_ANALYSIS_H_
