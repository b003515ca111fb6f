// The list of a night's frames: a text table whose first line names its columns.
#ifndef SPEXD_CLIENT_CLI_NIGHT_NIGHT_LIST_H_
#define SPEXD_CLIENT_CLI_NIGHT_NIGHT_LIST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/batch/frame_list.h"

namespace spexd::cli {

// One line of the list. model and expid are "" where the list has no such column, or "-" in it.
struct NightRow {
  int line = 0;  // counted from 1
  std::string image, psf, output, model, expid;
};

// Every part-th of so many rows.
struct NightPart {
  int number = 1, of = 1;
};

// Columns are separated by blanks; "#" begins a comment. The first line that is not empty names the columns,
// in any order: image, psf, output, and perhaps model and expid. InvalidArgument names the line.
absl::StatusOr<std::vector<NightRow>> ParseNightList(absl::string_view text);
absl::StatusOr<std::vector<NightRow>> ReadNightList(const std::string& path);

// "2/8". InvalidArgument unless 1 <= number <= of.
absl::StatusOr<NightPart> ParseNightPart(const std::string& text);
std::vector<NightRow> PartOf(const std::vector<NightRow>& rows, const NightPart& part);

// One task for each row, as `flags` describe it; the cameras must match. Errors as MakeJob.
absl::StatusOr<std::vector<FrameTask>> NightTasks(const JobFlags& flags, const std::vector<NightRow>& rows);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_NIGHT_NIGHT_LIST_H_
