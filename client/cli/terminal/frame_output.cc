#include "client/cli/terminal/frame_output.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/terminal/exit_code.h"
#include "client/cli/terminal/real_range.h"
#include "client/cli/terminal/terminal_text.h"
#include "client/cli/terminal/trace_text.h"
#include "core/base/seconds_since.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/output_file.h"
#include "core/fits/hdu/source.h"
#include "core/fits/moved_psf_writer.h"
#include "core/fits/writers.h"
#include "core/frame/summary.h"

namespace spexd::cli {
namespace {

using Clock = std::chrono::steady_clock;

void PrintSummary(const FrameOutput& output, const JobOutcome& outcome, double write_seconds,
                  double total_seconds) {
  std::string text = Describe(output, outcome) + "\n";
  for (const std::string& other : {output.model, output.psf}) {
    if (!other.empty()) absl::StrAppend(&text, "Wrote ", other, "\n");
  }
  if (outcome.frame.origin.traces.has_value())
    absl::StrAppend(&text, "Trace shifts: ", DescribeTraces(*outcome.frame.origin.traces), "\n");
  for (const std::string& note : NotesOn(output, outcome.frame)) absl::StrAppend(&text, note, "\n");
  absl::StrAppend(&text, DescribeFit(FitOf(outcome), outcome.frame.fibres), "\n");
  if (output.verbose) {
    absl::StrAppend(&text, DescribeWork(outcome.summary.largest_residual.value_or(-1),
                                        outcome.summary.largest_root_error.value_or(-1), outcome.stages));
  }
  absl::StrAppend(
      &text, absl::StrFormat("Total %.2f s: queued %.2f, ran %.2f, wrote %.2f; engine %s\n", total_seconds,
                             outcome.queue_seconds, outcome.run_seconds, write_seconds, outcome.engine));
  std::fputs(text.c_str(), stdout);
}

absl::Status WritePsfOut(const FrameOutput& output, const JobOutcome& outcome) {
  if (!outcome.frame.origin.traces.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat("--psf-out: the frame came without trace shifts: the server is older than they are; "
                     "update it, or leave out --server"));
  }
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(output.psf_file));
  if (!outcome.psf_hash.empty() && source.content_hash() != outcome.psf_hash) {
    return absl::FailedPreconditionError(
        absl::StrCat("--psf-out: ", output.psf_file,
                     " is not the file that the frame was extracted with: it changed "
                     "meanwhile, or is another one on the server; run the command again, with --server also "
                     "with --upload"));
  }
  return WriteMovedPsf(source, *outcome.frame.origin.traces, output.psf, {},
                       outcome.frame.origin.input_image);
}

}  // namespace

bool SameFile(const std::string& a, const std::string& b) {
  std::error_code error;
  return a == b || std::filesystem::equivalent(a, b, error);
}

void AddOutputFlags(CLI::App* command, FrameOutput* output) {
  command->add_option("-o,--output", output->frame, "Frame to write; .gz compresses it")
      ->type_name("FILE")
      ->required()
      ->group("Files");
  command->add_option("-m,--model", output->model, "Model image to write")->type_name("FILE")->group("Files");
  AddMessageFlags(command, output);
}

void AddMessageFlags(CLI::App* command, FrameOutput* output) {
  command->add_flag("-q,--quiet", output->quiet, "Print errors and warnings only")->group("Messages");
  command
      ->add_flag("-v,--verbose", output->verbose,
                 "Also print the time of each stage, the largest errors of the solution and, without "
                 "--server, why the CPU is used")
      ->group("Messages");
  command
      ->add_option("--max-chi2pix", output->max_chi2pix,
                   "Largest allowed median chi2pix of a frame or one of its fibres. Above it the exit code "
                   "is 1; the frame is written nevertheless")
      ->check(RealRange(0, std::numeric_limits<double>::infinity()))
      ->group("Messages");
  command->add_option("--progress", output->progress, "Form of the progress display")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "bar", "lines", "none"}))
      ->group("Messages");
}

absl::Status CheckOutputs(const FrameOutput& output,
                          const std::vector<std::pair<const char*, std::string>>& inputs) {
  for (const auto& [flag, path] : inputs) {
    for (const std::string& name : {output.frame, output.model, output.psf}) {
      if (!path.empty() && !name.empty() && SameFile(path, name)) {
        return absl::InvalidArgumentError(absl::StrCat(name, " is the file that ", flag, " reads"));
      }
    }
  }
  const std::pair<const char*, const std::string&> written[] = {
      {"--output", output.frame}, {"--model", output.model}, {"--psf-out", output.psf}};
  for (const auto& [flag, path] : written) {
    if (path.empty()) continue;
    for (const auto& [other, its_path] : written) {
      if (other == flag) break;
      if (SameFile(its_path, path)) {
        return absl::InvalidArgumentError(absl::StrCat(other, " and ", flag, " are both ", path));
      }
    }
  }
  for (const auto& [flag, path] : written) {
    if (!path.empty()) SPEXD_RETURN_IF_ERROR(CheckWritable(path));
  }
  return absl::OkStatus();
}

absl::Status WriteFiles(const FrameOutput& output, const JobOutcome& outcome, int threads) {
  // The frame is written last, so that a script that waits for it finds the model and the PSF.
  if (!output.model.empty()) {
    SPEXD_RETURN_IF_ERROR(WriteModel(outcome.model, outcome.frame.origin, output.model, threads));
  }
  absl::Status status = output.psf.empty() ? absl::OkStatus() : WritePsfOut(output, outcome);
  const bool psf_is_there = status.ok() && !output.psf.empty();
  if (status.ok()) status = WriteFrame(outcome.frame, output.frame, threads);
  std::error_code ignored;
  if (!status.ok() && !output.model.empty()) std::filesystem::remove(output.model, ignored);
  if (!status.ok() && psf_is_there) std::filesystem::remove(output.psf, ignored);
  return status;
}

int CodeOfWriteError(const absl::Status& error) {
  const int code = ExitCodeOf(error);
  return code == kServer ? kInternal : code;  // ResourceExhausted comes from the disk here, not from a server
}

FrameFit FitOf(const JobOutcome& outcome) {
  return outcome.summary.fit.has_value() ? *outcome.summary.fit : MeasureFit(outcome.frame.spectra, {});
}

std::string Describe(const FrameOutput& output, const JobOutcome& outcome) {
  const Frame& frame = outcome.frame;
  const double bins = static_cast<double>(frame.spectra.flux.size());
  return absl::StrFormat("Wrote %s: %d spectra of %d bins, %.2f %% masked, %.2f %% without data",
                         output.frame, frame.fibres.count, frame.grid.count,
                         100 * static_cast<double>(outcome.summary.masked_bins) / bins,
                         100 * static_cast<double>(outcome.summary.nodata_bins) / bins);
}

std::vector<std::string> NotesOn(const FrameOutput& output, const Frame& frame) {
  std::vector<std::string> notes;
  if (output.wants_scores && !frame.scores.has_value()) {
    notes.push_back("No SCORES: the grid lies outside the camera's window");
  }
  if (frame.fibres.count < kMinFibresForBad2dFit) {
    notes.push_back(absl::StrFormat("No BAD2DFIT: it compares fibres, of which it needs at least %d",
                                    kMinFibresForBad2dFit));
  }
  if (frame.origin.fine_grid_prior) {
    notes.push_back("Finer than 0.4 Angstrom: the prior carries its fine-grid term (see the header)");
  }
  if (frame.origin.heliocentric_factor.has_value()) {
    notes.push_back(
        absl::StrFormat("Barycentric correction: factor %.9f", *frame.origin.heliocentric_factor));
  }
  return notes;
}

std::string DescribeWork(double largest_residual, double largest_root_error,
                         const std::vector<StageSeconds>& stages) {
  std::string text;
  if (largest_residual >= 0) {
    absl::StrAppendFormat(&text, "Flux residual: %.1e at most (|b - A f| / |b| of a bundle)\n",
                          largest_residual);
  }
  if (largest_root_error >= 0) {
    absl::StrAppendFormat(&text, "Root error: %.1e at most (|Q v|^2 against v^T P v of a fibre)\n",
                          largest_root_error);
  }
  return text + FormatStages(stages, TerminalHasUnicode());
}

double LargestMedianChi2pix(const FrameFit& fit) {
  double largest = fit.all.median;
  for (const FitQuality& fibre : fit.fibres) largest = std::max<double>(largest, fibre.median);
  return largest;
}

std::optional<std::string> BeyondMaxChi2pix(double largest, std::optional<double> max_chi2pix) {
  if (!max_chi2pix.has_value() || largest <= *max_chi2pix) return std::nullopt;
  return absl::StrFormat("the largest median chi2pix, of the frame or of a fibre, is %.2f; --max-chi2pix is %g",
                         largest, *max_chi2pix);
}

ProgressStyle StyleOf(const FrameOutput& output) {
  if (output.quiet || output.progress == "none") return ProgressStyle::kNone;
  if (output.progress == "bar") return ProgressStyle::kBar;
  if (output.progress == "lines") return ProgressStyle::kLines;
  return DefaultProgressStyle();
}

int Deliver(const FrameOutput& output, const JobOutcome& outcome, int threads, Clock::time_point start) {
  const Clock::time_point write_start = Clock::now();
  if (absl::Status status = WriteFiles(output, outcome, threads); !status.ok()) {
    Fail(status);
    return CodeOfWriteError(status);
  }
  if (!output.quiet) PrintSummary(output, outcome, SecondsSince(write_start), SecondsSince(start));
  for (const std::string& warning : outcome.summary.warnings) {
    std::fprintf(stderr, "spex: warning: %s\n", ForTerminal(warning).c_str());
  }
  for (const std::string& failed : outcome.summary.failed_bundles) {
    std::fprintf(stderr, "spex: %s\n", ForTerminal(failed).c_str());
  }
  const std::optional<std::string> beyond =
      BeyondMaxChi2pix(LargestMedianChi2pix(FitOf(outcome)), output.max_chi2pix);
  if (beyond.has_value())
    std::fprintf(stderr, "spex: %s: %s\n", ForTerminal(output.frame).c_str(), beyond->c_str());
  return outcome.summary.failed_bundles.empty() && !beyond.has_value() ? kOk : kDifferent;
}

}  // namespace spexd::cli
