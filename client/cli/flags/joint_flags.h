// Flags of the joint analysis of arms and exposures: its files, rows and fits. Many are those of rvspecfit's
// rvs_desi_fit.
#ifndef SPEXD_CLIENT_CLI_FLAGS_JOINT_FLAGS_H_
#define SPEXD_CLIENT_CLI_FLAGS_JOINT_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/flags/analysis_flags.h"
#include "core/analysis/velocity/velocity.h"
#include "core/products/joint/row_selection.h"

namespace spexd::cli {

struct JointFlags {
  // Files; "": not given.
  std::string input_list, output_dir, models, status_file;
  std::string table_prefix = "rvtab", model_prefix = "rvmod";
  bool skip_existing = false;
  // Rows.
  std::vector<int64_t> target_ids;
  std::string target_id_file;
  std::optional<double> min_snr;
  std::optional<int64_t> min_exposure, max_exposure;
  std::vector<std::string> object_types;
  bool select_by_redrock = false, include_redrock = false;
  // Fits.
  bool lines = false, per_target = false;
  std::vector<std::string> exclude, arms;  // as given
  std::optional<int> coefficients;         // of each continuum
  // What rvs_desi_fit has and spex refuses, by the reasons.
  std::vector<std::string> refused;

  friend bool operator==(const JointFlags& a, const JointFlags& b) = default;
};

// Adds all of them.
void AddJointFlags(CLI::App* command, JointFlags* flags);

// Whether they ask for nothing that a single frame's own products have not.
bool AsksForOneFrame(const JointFlags& flags);

// Checks the flags of a joint analysis alone, without any file. InvalidArgument names the flag and what to
// do.
absl::Status CheckJointFlags(const JointFlags& flags, const AnalysisFlags& products);

// The files to analyse: those given, or those that --input-file-from lists.
absl::StatusOr<std::vector<std::string>> FilesToAnalyse(const std::vector<std::string>& given,
                                                        const JointFlags& flags);

// The rows that the flags select; reads the file of --targetid-file-from.
absl::StatusOr<RowSelection> SelectionOf(const JointFlags& flags);

// The wavelengths of --exclude; without it, those that rvs_desi_fit leaves out of files of spectra
// (`of_targets`), and none of frames.
absl::StatusOr<std::vector<WavelengthRange>> ExcludedOf(const JointFlags& flags, bool of_targets);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_FLAGS_JOINT_FLAGS_H_
