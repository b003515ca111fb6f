// The units of `spex analyse`, each of which is fitted jointly: a file of targets' spectra, or the frames of
// one exposure's cameras, which on a server may come from detached jobs.
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
  std::vector<std::string> files;             // a file of spectra, frames (B, R, Z) or detached jobs
  std::string velocities, models, redshifts;  // output files; "": not asked for
  bool sky_subtracted = false;                // the frames are already flat-fielded and sky-subtracted

  std::vector<std::string> outputs() const;
};

// Whether an argument names a detached job, by client::kJobPrefix and its id.
bool NamesJob(const std::string& file);
// Checks names of detached jobs. InvalidArgument: there is no server, or an id is malformed.
absl::Status CheckJobNames(const std::vector<std::string>& files, bool on_server);

struct UnitList {
  std::vector<AnalysisUnit> units;                               // in the order of their first files
  std::vector<std::pair<std::string, absl::Status>> unreadable;  // files that cannot be used, and why
};

// Lists the units of the files, whose headers it reads. Frames with the same ExposureKey form one unit. All
// detached jobs form one unit, which is the last.
UnitList ListUnits(const std::vector<std::string>& files, int threads);

// Sets the output files of each unit: in --output-dir, named after its first file or job, otherwise by the
// flags.
void NameOutputs(const JointFlags& flags, const AnalysisFlags& products, std::vector<AnalysisUnit>* units);

// Creates the folders of the outputs and checks them. InvalidArgument: a file would be written twice, or is
// among `read`. Other errors as in CheckWritable.
absl::Status CheckUnitOutputs(const std::vector<AnalysisUnit>& units, const std::vector<std::string>& read);

// Returns the path of redrock's file for the unit if the flags ask for it; "": there is none.
// InvalidArgument: there is none, and rows are to be selected by it. If only its columns are asked for,
// prints a note on stderr instead, unless `quiet`.
absl::StatusOr<std::string> RedrockFileOf(const AnalysisUnit& unit, const JointFlags& flags, bool quiet);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_JOINT_ANALYSIS_UNITS_H_
