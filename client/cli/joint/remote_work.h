// The joint analysis of units on a server.
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
#include "client/cli/flags/job_flags.h"
#include "client/cli/flags/joint_flags.h"
#include "client/cli/flags/product_paths.h"
#include "client/cli/joint/analysis_units.h"
#include "client/cli/joint/unit_work.h"
#include "client/cli/products/camera_fiberflats.h"
#include "client/connection/server_address.h"
#include "client/connection/server_directory.h"

namespace spexd::cli {

// The work for all units of a command. It sends a unit's files or their names to the server and writes the
// files of products that come back.
class RemoteWork : public UnitWork {
 public:
  // Reads the fiberflats, unless a server has the only one, and the list of targets that the flags name.
  // Errors of these files and of OpenDirectory.
  static absl::StatusOr<std::unique_ptr<UnitWork>> Prepare(const client::ServerAddress& server,
                                                           const JobFlags& job, const JointFlags& flags,
                                                           const ProductInputs& inputs, bool quiet);

  // Prints retries on stderr unless the work is quiet.
  UnitResult Analyse(const AnalysisUnit& unit, const std::stop_token& stop) override;

 private:
  explicit RemoteWork(bool quiet) : quiet_(quiet) {}
  absl::StatusOr<client::AnalysisJob> JobOf(const AnalysisUnit& unit) const;
  absl::StatusOr<std::string> FiberflatOf(const AnalysisUnit& unit, const std::string& file) const;

  const bool quiet_;
  client::AnalysisJob common_;  // the part that does not depend on the unit
  JointFlags flags_;
  NamedFiberflats fiberflats_;
  std::unique_ptr<client::ServerDirectory> directory_;
  std::optional<client::RemoteAnalyser> analyser_;
};

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_JOINT_REMOTE_WORK_H_
