// The summary that a batch prints at its end.
#ifndef SPEXD_CLIENT_CLI_BATCH_BATCH_SUMMARY_H_
#define SPEXD_CLIENT_CLI_BATCH_BATCH_SUMMARY_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "client/cli/batch/batch_result.h"
#include "client/cli/terminal/frame_output.h"
#include "proto/assembler/job_outcome.h"

namespace spexd::cli {

// Returns the name of a result in messages: the image of a frame, or the output of an exposure.
const std::string& FileOf(const BatchResult& result);

// The totals over all frames that were written.
struct BatchTotals {
  int64_t spectra = 0, bins = 0, masked_bins = 0, nodata_bins = 0;
  double largest_residual = -1, largest_root_error = -1;  // negative: none yet
  std::vector<StageSeconds> stages;
  std::map<std::string, int> notes;  // number of frames with each note
  std::set<std::string> engines;

  void Add(const FrameOutput& output, const JobOutcome& outcome);
};

// Returns the summary: "3 of 4 frames written: ..", failures, notes, and frames per second. `seconds`: time
// since the command began.
std::string FormatBatch(const std::vector<BatchResult>& results, const BatchTotals& totals, int in_flight,
                        double seconds, bool verbose);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_BATCH_BATCH_SUMMARY_H_
