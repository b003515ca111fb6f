// The flags of the joint analysis of arms and exposures: files, rows and fits. Many are flags of rvspecfit's
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
  // For each given flag of rvs_desi_fit that spex refuses: the error message.
  std::vector<std::string> refused;

  friend bool operator==(const JointFlags& a, const JointFlags& b) = default;
};

// Adds all flags of the joint analysis.
void AddJointFlags(CLI::App* command, JointFlags* flags);

// Whether the flags request nothing beyond the products of a single frame.
bool AsksForOneFrame(const JointFlags& flags);

// Checks the flags without opening files. InvalidArgument names the flag and the remedy.
absl::Status CheckJointFlags(const JointFlags& flags, const AnalysisFlags& products);

// Returns the files to analyse: `given`, or the list of --input-file-from.
absl::StatusOr<std::vector<std::string>> FilesToAnalyse(const std::vector<std::string>& given,
                                                        const JointFlags& flags);

// Returns the rows that the flags select; reads the file of --targetid-file-from.
absl::StatusOr<RowSelection> SelectionOf(const JointFlags& flags);

// Returns the wavelengths of --exclude. Without the flag: for files of spectra (`of_targets`) those that
// rvs_desi_fit leaves out, for frames none.
absl::StatusOr<std::vector<WavelengthRange>> ExcludedOf(const JointFlags& flags, bool of_targets);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_FLAGS_JOINT_FLAGS_H_
