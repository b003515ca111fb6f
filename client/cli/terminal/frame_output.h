// The output of a job: its files, and the messages about them.
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
  // The file for a PSF with the traces with which the frame was extracted ("": none), and the file of the
  // job's PSF.
  std::string psf, psf_file;
  bool quiet = false, verbose = false;
  std::optional<double> max_chi2pix;  // nullopt: no limit
  std::string progress = "auto";
  bool wants_scores = true;  // a note is printed if there are none
};

// Whether two names are those of one file, which need not exist.
bool SameFile(const std::string& a, const std::string& b);

// Add flags. AddMessageFlags adds --quiet, --verbose, --progress and --max-chi2pix. AddOutputFlags adds
// these, --output and --model.
void AddOutputFlags(CLI::App* command, FrameOutput* output);
void AddMessageFlags(CLI::App* command, FrameOutput* output);

// Checks the names of the files before the work. `inputs`: flags with the paths of input files.
absl::Status CheckOutputs(const FrameOutput& output,
                          const std::vector<std::pair<const char*, std::string>>& inputs);

// Writes the model and the PSF, then the frame, with up to `threads` threads. Leaves no file after an error.
// FailedPrecondition: the PSF's file is not the one with which the frame was extracted.
absl::Status WriteFiles(const FrameOutput& output, const JobOutcome& outcome, int threads);
int CodeOfWriteError(const absl::Status& error);

// Describe returns the message about a frame that was written: "Wrote frame.fits: 500 spectra of 2326 bins,
// ...", without end of line. NotesOn returns notes about it that a user may not expect.
std::string Describe(const FrameOutput& output, const JobOutcome& outcome);
std::vector<std::string> NotesOn(const FrameOutput& output, const Frame& frame);
// Returns the text that --verbose adds: the largest errors of the solution, unless they are negative, and the
// stages.
std::string DescribeWork(double largest_residual, double largest_root_error,
                         const std::vector<StageSeconds>& stages);
// Returns how well the image was fitted. Measures it if an old server has not reported it.
FrameFit FitOf(const JobOutcome& outcome);
// Returns the median chi2pix of the frame, or that of a fibre if it is larger.
double LargestMedianChi2pix(const FrameFit& fit);
// Returns a message if the largest median is above --max-chi2pix.
std::optional<std::string> BeyondMaxChi2pix(double largest, std::optional<double> max_chi2pix);

ProgressStyle StyleOf(const FrameOutput& output);

// Writes the files and prints the summary (unless quiet) and the failed bundles. Returns the exit code. With
// kOk, or kDifferent (some bundles failed, or --max-chi2pix is exceeded), all files are written; otherwise
// none is. `threads`: see WriteFiles. `start`: when the command began.
int Deliver(const FrameOutput& output, const JobOutcome& outcome, int threads,
            std::chrono::steady_clock::time_point start);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_TERMINAL_FRAME_OUTPUT_H_
