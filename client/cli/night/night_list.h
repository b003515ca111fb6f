// The list of a night's frames: a text table whose first line names its columns.
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

// One line of the list. What may be missing is "" where the list has no such column, or "-" in it.
struct NightRow {
  int line = 0;  // counted from 1
  std::string image, psf, output;
  std::string model, expid, fibermap, trace_reference;  // may be missing
  // Options of the frame, by their names in JobOption; those that are "-" are left out.
  std::vector<std::pair<std::string, std::string>> options;
};

// One of so many parts of a list.
struct NightPart {
  int number = 1, of = 1;
};

// Columns are separated by blanks; "#" begins a comment. The first line that is not empty names the columns,
// in any order: image, psf, output; and perhaps others that NightRow has, and options of jobs.
// InvalidArgument names the line.
absl::StatusOr<std::vector<NightRow>> ParseNightList(absl::string_view text);
absl::StatusOr<std::vector<NightRow>> ReadNightList(const std::string& path);

// "2/8". InvalidArgument unless 1 <= number <= of.
absl::StatusOr<NightPart> ParseNightPart(const std::string& text);
// Every part.of-th row, beginning with the part.number-th; with `whole_exposures` the rows of every
// part.of-th expid, which all of them must have: InvalidArgument.
absl::StatusOr<std::vector<NightRow>> PartOf(const std::vector<NightRow>& rows, const NightPart& part,
                                             bool whole_exposures);

// One task for each row, as `flags` describe it but for the row's options. InvalidArgument names the line of
// an option that is wrong; otherwise errors as MakeJob.
absl::StatusOr<std::vector<FrameTask>> NightTasks(const JobFlags& flags, const std::vector<NightRow>& rows,
                                                  const BatchProducts& products);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_NIGHT_NIGHT_LIST_H_
