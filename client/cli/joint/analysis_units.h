// What one `spex analyse` fits jointly: each file of targets' spectra, and the frames of each exposure's
// cameras, which on a server may be those of detached jobs.
#ifndef SPEXD_CLIENT_CLI_JOINT_ANALYSIS_UNITS_H_
#define SPEXD_CLIENT_CLI_JOINT_ANALYSIS_UNITS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/flags/analysis_flags.h"
#include "client/cli/flags/joint_flags.h"
#include "core/fits/readers.h"

namespace spexd::cli {

struct AnalysisUnit {
  SpectraKind kind = SpectraKind::kTargets;
  std::vector<std::string> files;             // one of spectra, or frames: B, R, Z; or detached jobs
  std::string velocities, models, redshifts;  // to write; "": not asked for
  bool sky_subtracted = false;                // its frames have no sky in them any more, and are flat-fielded

  std::vector<std::string> outputs() const;
};

// Whether an argument names a detached job: client::kJobPrefix and its id.
bool NamesJob(const std::string& file);
// InvalidArgument for a detached job without a server, and for an id that is none.
absl::Status CheckJobNames(const std::vector<std::string>& files, bool on_server);

struct UnitList {
  std::vector<AnalysisUnit> units;                               // in the order of their first files
  std::vector<std::pair<std::string, absl::Status>> unreadable;  // files that are neither, and why
};

// Reads the headers of the files. Frames are of one unit where ExposureKey says the same of them; all
// detached jobs are of one, which is the last.
UnitList ListUnits(const std::vector<std::string>& files, int threads);

// Names the files of each unit: in --output-dir by its first file or job, otherwise as the flags do.
void NameOutputs(const JointFlags& flags, const AnalysisFlags& products, std::vector<AnalysisUnit>* units);

// Makes the folders of the files to be written. InvalidArgument if one would be written twice, or is among
// `read`; otherwise the errors of CheckWritable.
absl::Status CheckUnitOutputs(const std::vector<AnalysisUnit>& units, const std::vector<std::string>& read);

// The path of redrock's file for the unit, if the flags ask for it; "" without any. InvalidArgument where
// rows shall be selected by it and there is none; where its columns alone are asked for, a note on stderr
// unless `quiet`.
absl::StatusOr<std::string> RedrockFileOf(const AnalysisUnit& unit, const JointFlags& flags, bool quiet);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_JOINT_ANALYSIS_UNITS_H_
