#include "client/cli/batch/batch_summary.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace spexd::cli {

const std::string& FileOf(const BatchResult& result) {
  return result.image.empty() ? result.output : result.image;
}

void BatchTotals::Add(const FrameOutput& output, const JobOutcome& outcome) {
  spectra += outcome.frame.fibres.count;
  bins += static_cast<int64_t>(outcome.frame.spectra.flux.size());
  masked_bins += outcome.summary.masked_bins;
  nodata_bins += outcome.summary.nodata_bins;
  largest_residual = std::max(largest_residual, outcome.summary.largest_residual.value_or(-1));
  largest_root_error = std::max(largest_root_error, outcome.summary.largest_root_error.value_or(-1));
  for (const StageSeconds& stage : outcome.stages) {
    const auto same = std::find_if(stages.begin(), stages.end(), [&stage](const StageSeconds& other) {
      return other.stage == stage.stage;
    });
    if (same == stages.end()) {
      stages.push_back(stage);
    } else {
      same->seconds += stage.seconds;
    }
  }
  for (const std::string& note : NotesOn(output, outcome.frame)) ++notes[note];
  engines.insert(outcome.engine);
}

std::string FormatBatch(const std::vector<BatchResult>& results, const BatchTotals& totals, int in_flight,
                        double seconds, bool verbose) {
  using State = BatchResult::State;
  std::map<State, int> frames;
  int exposures = 0;
  std::vector<std::string> failed;
  for (const BatchResult& result : results) {
    if (result.state == State::kFailed) failed.push_back(FileOf(result));
    if (!result.image.empty()) ++frames[result.state];
    if (result.image.empty() && result.state == State::kWritten) ++exposures;
  }
  const int written = frames[State::kWritten], skipped = frames[State::kSkipped];
  const int not_reached = frames[State::kNotReached];
  std::string text = absl::StrFormat("%d of %d frames written", written,
                                     written + skipped + not_reached + frames[State::kFailed]);
  if (skipped > 0) absl::StrAppend(&text, absl::StrFormat(", %d skipped", skipped));
  if (written > 0) {
    const double bins = static_cast<double>(std::max<int64_t>(totals.bins, 1));
    absl::StrAppend(&text,
                    absl::StrFormat(": %d spectra, %.2f %% masked, %.2f %% without data", totals.spectra,
                                    100 * static_cast<double>(totals.masked_bins) / bins,
                                    100 * static_cast<double>(totals.nodata_bins) / bins));
  }
  absl::StrAppend(&text, "\n");
  if (!failed.empty()) absl::StrAppend(&text, "Failed: ", absl::StrJoin(failed, ", "), "\n");
  if (not_reached > 0) absl::StrAppend(&text, "Not tried: ", not_reached, " frames\n");
  if (exposures > 0) {
    absl::StrAppend(&text, "Velocities and redshifts over all arms: ", exposures, " exposures\n");
  }
  for (const auto& [note, times] : totals.notes) {
    absl::StrAppend(&text, note, absl::StrFormat(" (%d frames)\n", times));
  }
  if (verbose) {
    absl::StrAppend(&text, DescribeWork(totals.largest_residual, totals.largest_root_error, totals.stages));
  }
  if (written > 0) {
    absl::StrAppend(&text,
                    absl::StrFormat("Total %.2f s, %.2f frames/s, %d at once; engine %s\n", seconds,
                                    written / seconds, in_flight, absl::StrJoin(totals.engines, ", ")));
  }
  return text;
}

}  // namespace spexd::cli
