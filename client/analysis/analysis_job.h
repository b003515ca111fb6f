// A client's analysis of existing spectra on a server (docs/analysis.md).
#ifndef SPEXD_CLIENT_ANALYSIS_ANALYSIS_JOB_H_
#define SPEXD_CLIENT_ANALYSIS_ANALYSIS_JOB_H_

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/job.h"
#include "core/analysis/velocity/velocity.h"
#include "core/products/joint/joint_product.h"
#include "core/products/joint/row_selection.h"

namespace spexd::client {

// The prefix of a frame's name that is the id of a detached job instead of a path. Only its server has the
// frame.
inline constexpr char kJobPrefix[] = "job:";

struct AnalysisSource {
  std::string spectra;    // path of a file of targets' spectra or of a frame, or kJobPrefix and a job's id
  std::string fiberflat;  // for a frame with the sky in it: path, or kPsfHashPrefix and a hash; "": none
};

struct AnalysisJob {
  std::vector<AnalysisSource> sources;  // one file of targets' spectra, or 1 to 16 frames of one exposure
  std::string templates;          // for velocities: path, or kPsfHashPrefix and a hash; "": no velocities
  bool models = false;            // asks for the models of the velocities
  bool lines = false;             // asks for redshifts
  RowSelection rows;              // the selected rows; `stars` is not used
  bool stars_by_redrock = false;  // selects rows that may be stars according to `redrock`
  std::string redrock;            // path of redrock's file for the one file of spectra; "": none
  bool per_target = false;        // rows of one TARGETID are fitted together
  std::optional<int> coefficients = {};  // of each continuum, 1 to 21; nullopt: 7
  // Wavelengths without weight for velocities; nullopt: 4300 to 4450 Angstrom for files of spectra, none for
  // frames.
  std::optional<std::vector<WavelengthRange>> exclude = {};
  std::vector<std::string> arms = {};  // letters of the arms to use (B, R, Z); none: all
  bool sky_subtracted = false;         // the sky is already subtracted from the frames
  int priority = 0;                    // -10 to 10
  std::optional<std::chrono::system_clock::time_point> deadline = {};
};

// The files of an analysis as FITS, or why a file was not made. Cancelled: it was not asked for.
struct AnalysisOutcome {
  absl::StatusOr<JointFile> velocities = absl::CancelledError("velocities were not asked for");
  absl::StatusOr<JointFile> models = absl::CancelledError("models were not asked for");
  absl::StatusOr<JointFile> redshifts = absl::CancelledError("redshifts were not asked for");
  std::vector<StageSeconds> stages = {};
  double queue_seconds = 0;
  double run_seconds = 0;
  std::string job_id = {};

  absl::StatusOr<JointFile>& FileOf(JointProduct product) {
    return product == JointProduct::kVelocities ? velocities
           : product == JointProduct::kModels   ? models
                                                : redshifts;
  }
};

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_ANALYSIS_ANALYSIS_JOB_H_
