// The joint analysis of a unit on a server: its files, or their names, go there, and those of its products
// come back.
#ifndef SPEXD_CLIENT_CLI_JOINT_REMOTE_WORK_H_
#define SPEXD_CLIENT_CLI_JOINT_REMOTE_WORK_H_

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/analysis/analysis_client.h"
#include "client/analysis/analysis_job.h"
#include "client/cli/flags/analysis_flags.h"
#include "client/cli/flags/job_flags.h"
#include "client/cli/flags/joint_flags.h"
#include "client/cli/joint/analysis_units.h"
#include "client/cli/joint/camera_fiberflats.h"
#include "client/cli/joint/joint_work.h"
#include "client/connection/server_address.h"
#include "client/connection/server_directory.h"

namespace spexd::cli {

// What all units have in common.
class RemoteWork {
 public:
  // Reads the fiberflats, unless a server has the only one, and the list of targets that the flags name.
  // Errors of OpenDirectory, too.
  static absl::StatusOr<std::unique_ptr<RemoteWork>> Prepare(const client::ServerAddress& server,
                                                             const JobFlags& job, const JointFlags& flags,
                                                             const AnalysisFlags& products,
                                                             const std::vector<std::string>& fiberflats);

  // Does what AnalyseUnit does (joint_work.h). Retries are named on stderr unless it shall be quiet. A stop
  // cancels it.
  UnitResult Analyse(const AnalysisUnit& unit, bool quiet, const std::stop_token& stop);

 private:
  RemoteWork() = default;
  absl::StatusOr<client::AnalysisJob> JobOf(const AnalysisUnit& unit, bool quiet) const;
  absl::StatusOr<std::string> FiberflatOf(const AnalysisUnit& unit, const std::string& file) const;

  client::AnalysisJob common_;  // what does not depend on the unit
  JointFlags flags_;
  std::vector<std::string> fiberflats_;  // as given
  CameraFiberflats by_camera_;           // those that are files here
  std::unique_ptr<client::ServerDirectory> directory_;
  std::optional<client::RemoteAnalyser> analyser_;
};

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_JOINT_REMOTE_WORK_H_
