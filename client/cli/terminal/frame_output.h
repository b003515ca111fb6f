// The files that a job's results are written to, and what is said about them.
#ifndef SPEXD_CLIENT_CLI_TERMINAL_FRAME_OUTPUT_H_
#define SPEXD_CLIENT_CLI_TERMINAL_FRAME_OUTPUT_H_

#include <CLI/CLI.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/terminal/progress.h"
#include "client/job.h"
#include "core/frame/fit_quality.h"

namespace spexd::cli {

struct FrameOutput {
  std::string frame, model;  // "": no model
  // PSF with the traces that the frame was extracted with, "": none; and the file of the job's PSF.
  std::string psf, psf_file;
  bool quiet = false, verbose = false;
  std::optional<double> max_chi2pix;  // none: no limit
  std::string progress = "auto";
  bool wants_scores = true;  // their absence is worth a line
};

// Whether two names are one file, there or not.
bool SameFile(const std::string& a, const std::string& b);

// The first adds --output, --model and what the second adds: --quiet, --verbose, --progress, --max-chi2pix.
void AddOutputFlags(CLI::App* command, FrameOutput* output);
void AddMessageFlags(CLI::App* command, FrameOutput* output);

// Checks the names before the work. `inputs`: flags and the paths that they name.
absl::Status CheckOutputs(const FrameOutput& output,
                          const std::vector<std::pair<const char*, std::string>>& inputs);

// Writes the model and the PSF, then the frame, by up to `threads` threads. Nothing stays after an error.
// FailedPrecondition if the PSF's file is not the one that the frame was extracted with.
absl::Status WriteFiles(const FrameOutput& output, const JobOutcome& outcome, int threads);
int CodeOfWriteError(const absl::Status& error);

// What is said about a frame that was written: "Wrote frame.fits: 500 spectra of 2326 bins, ...", without end
// of line; and what a user may not expect of it.
std::string Describe(const FrameOutput& output, const JobOutcome& outcome);
std::vector<std::string> NotesOn(const FrameOutput& output, const Frame& frame);
// What --verbose adds: the largest errors of the solution, if they are not negative, and the stages.
std::string DescribeWork(double largest_residual, double largest_root_error,
                         const std::vector<StageSeconds>& stages);
// How well the image was fitted; measured here if the server is too old to tell.
FrameFit FitOf(const JobOutcome& outcome);
// The median chi2pix of the frame, or that of a fibre if it is larger.
double LargestMedianChi2pix(const FrameFit& fit);
// What to say if the largest median is above --max-chi2pix.
std::optional<std::string> BeyondMaxChi2pix(double largest, std::optional<double> max_chi2pix);

ProgressStyle StyleOf(const FrameOutput& output);

// Writes the files, prints the summary (unless quiet) and the bundles that failed. Returns the exit code: kOk
// or kDifferent (some bundles failed, or --max-chi2pix is exceeded) if the files are there, complete; else none of them is. `threads`: see
// WriteFiles. `start`: when the command began.
int Deliver(const FrameOutput& output, const JobOutcome& outcome, int threads,
            std::chrono::steady_clock::time_point start);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_TERMINAL_FRAME_OUTPUT_H_
