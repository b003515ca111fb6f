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

// What has no weight for velocities of files of spectra unless asked for, as in rvspecfit.
inline constexpr WavelengthRange kExcludedOfTargets = {4300, 4450};

// A stretch of an arm with a continuum of its own: all of it, or the part of one camera where several were
// combined. Its spectra begin at `first`; its model is good for the bins [kept_first, kept_end) of the arm.
struct ArmPart {
  std::string name;  // of an arm, in the columns of tables
  size_t arm = 0;    // in TargetSpectra::arms
  int64_t first = 0, kept_first = 0, kept_end = 0;
};

struct JointRequest {
  // The rows of each result: one, or the exposures of a target.
  std::vector<std::vector<int>> targets;
  const TemplateLibrary* templates = nullptr;  // null: no velocities are asked for; must outlive the call
  VelocityOptions velocity_options;
  bool lines = false;
  LineOptions line_options = {.max_redshift = 1.63};
  Analyser* analyser = nullptr;  // who makes them; null: processors
  // Processors make what the analyser cannot: its device has no room, or failed.
  bool fall_back = false;
  int threads = 1;
  std::stop_token stop = {};
};

struct JointProducts {
  std::vector<ArmPart> parts;              // by wavelength; StarVelocity::arms are in their order
  std::vector<std::vector<int>> targets;  // as asked for
  absl::StatusOr<std::vector<StarVelocity>> velocities = absl::CancelledError("not asked for");
  absl::StatusOr<std::vector<LineRedshift>> lines = absl::CancelledError("not asked for");
};

// Hears of the redshifts that are asked for once they are there or have failed, before velocities are begun.
using LineObserver = std::function<void(const JointProducts& products)>;

// Arms that were combined of several cameras are cut where the cameras of DESI overlap (5780 and 7570
// Angstrom). A product that fails has its error and does not harm the other. An error of both: spectra that
// MakeUsable refuses.
absl::StatusOr<JointProducts> AnalyseJointly(const TargetSpectra& spectra, const JointRequest& request,
                                             const LineObserver& lines_made = {});

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_JOINT_JOINT_ANALYSIS_H_
