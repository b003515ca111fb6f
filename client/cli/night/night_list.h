// The list of a night's frames: a text table whose first line names the columns.
#ifndef SPEXD_CLIENT_CLI_NIGHT_NIGHT_LIST_H_
#define SPEXD_CLIENT_CLI_NIGHT_NIGHT_LIST_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/batch/frame_task.h"
#include "client/cli/flags/batch_products.h"
#include "client/cli/flags/job_flags.h"

namespace spexd::cli {

// One line of the list. A field that may be missing is "" if the list has no such column or has "-" in it.
struct NightRow {
  int line = 0;  // from 1
  std::string image, psf, output;
  std::string model, expid, fibermap, trace_reference;  // may be missing
  // The options of the frame, by their names in JobOption, without those that are "-".
  std::vector<std::pair<std::string, std::string>> options;
};

// Part `number` of `of` parts of a list.
struct NightPart {
  int number = 1, of = 1;
};

// Parses a list. Columns are separated by blanks, and "#" begins a comment. The first line that is not empty
// names the columns, in any order: image, psf and output; optionally others of NightRow, and options of jobs.
// InvalidArgument names the line.
absl::StatusOr<std::vector<NightRow>> ParseNightList(absl::string_view text);
absl::StatusOr<std::vector<NightRow>> ReadNightList(const std::string& path);

// Parses a part such as "2/8". InvalidArgument unless 1 <= number <= of.
absl::StatusOr<NightPart> ParseNightPart(const std::string& text);
// Returns every part.of-th row, beginning with row part.number. With `whole_exposures`, returns the rows of
// every part.of-th expid. InvalidArgument: a row has no expid then.
absl::StatusOr<std::vector<NightRow>> PartOf(const std::vector<NightRow>& rows, const NightPart& part,
                                             bool whole_exposures);

// Returns a task for each row. Options of the row replace those in `flags`. InvalidArgument names the line of
// a wrong option. Other errors as in MakeJob.
absl::StatusOr<std::vector<FrameTask>> NightTasks(const JobFlags& flags, const std::vector<NightRow>& rows,
                                                  const BatchProducts& products);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_NIGHT_NIGHT_LIST_H_
