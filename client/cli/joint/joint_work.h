// The joint analysis of one file of spectra, or of the frames of one exposure: from its files to those of its
// products.
#ifndef SPEXD_CLIENT_CLI_JOINT_JOINT_WORK_H_
#define SPEXD_CLIENT_CLI_JOINT_JOINT_WORK_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/flags/analysis_flags.h"
#include "client/cli/flags/joint_flags.h"
#include "client/cli/joint/analysis_units.h"
#include "client/cli/joint/camera_fiberflats.h"
#include "core/analysis/analyser/analyser.h"
#include "core/analysis/velocity/template_library.h"
#include "core/products/joint/row_selection.h"

namespace spexd::cli {

// What all units have in common.
struct JointWork {
  JointFlags flags;
  bool sky_subtracted = false;
  CameraFiberflats fiberflats;
  std::optional<TemplateLibrary> templates;  // of velocities, if they are asked for
  RowSelection selection;
  Analyser* analyser = nullptr;  // who makes velocities; null: processors
  bool fall_back = false;        // JointRequest's
  int threads = 1;
  bool quiet = false;
};

// Reads the fiberflats, the templates and the list of targets that the flags name.
absl::StatusOr<JointWork> PrepareJointWork(const JointFlags& flags, const AnalysisFlags& products,
                                           const std::vector<std::string>& fiberflats);

struct UnitResult {
  int64_t fits = 0;                  // rows, or targets
  std::vector<absl::Status> errors;  // that name a file; a product that fails does not harm the others
};
// Reads, analyses and writes a unit; prints a line for each table unless it shall be quiet.
UnitResult AnalyseUnit(const AnalysisUnit& unit, const JointWork& work);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_JOINT_JOINT_WORK_H_
