// spex traceshifts: measures the shifts of a frame's traces without extracting it.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags/job_flags.h"
#include "client/cli/terminal/exit_code.h"
#include "client/cli/terminal/frame_output.h"
#include "client/cli/terminal/interrupt.h"
#include "client/cli/terminal/terminal_text.h"
#include "client/cli/terminal/trace_text.h"
#include "core/base/machine/cpus.h"
#include "core/base/seconds_since.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "core/fits/hdu/output_file.h"
#include "core/fits/moved_psf_writer.h"
#include "core/frame/job_options.h"
#include "core/job/job_traces.h"

namespace spexd::cli {
namespace {

struct TraceShiftsOptions {
  JobFlags job;
  std::string psf_out;
  int threads = 0;
  bool json = false;
};

absl::Status CheckFlags(const TraceShiftsOptions& options) {
  const JobFlags& job = options.job;
  if (job.spec.trace_shifts == TraceAxes::kOff) {
    return absl::InvalidArgumentError(
        "--trace-shifts off: traceshifts does nothing but measure; give auto, x or xy");
  }
  for (const auto& [flag, path] : {std::pair("--psf", job.psf), {"--trace-reference", job.trace_reference}}) {
    if (!absl::StartsWith(path, client::kPsfHashPrefix)) continue;
    return absl::InvalidArgumentError(absl::StrCat(flag, " ", path,
                                                   ": only a server knows files by hash, and "
                                                   "traceshifts measures in this process; give a path"));
  }
  SPEXD_RETURN_IF_ERROR(CheckJobOptions(job.spec));
  if (options.psf_out.empty()) return absl::OkStatus();
  for (const auto& [flag, path] :
       {std::pair("--input", job.input), {"--psf", job.psf}, {"--trace-reference", job.trace_reference}}) {
    if (!path.empty() && SameFile(path, options.psf_out))
      return absl::InvalidArgumentError(absl::StrCat(options.psf_out, " is the file that ", flag, " reads"));
  }
  return CheckWritable(options.psf_out);
}

void Print(const TraceReport& report, double seconds, bool as_json) {
  if (!as_json) {
    std::fputs(ForTerminal(FormatTraces(report, seconds)).c_str(), stdout);
    return;
  }
  nlohmann::json json = TracesJson(report);
  json["seconds"] = seconds;
  std::printf("%s\n", json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

absl::Status Run(const TraceShiftsOptions& options, const std::stop_token& stop) {
  const JobFlags& job = options.job;
  SPEXD_RETURN_IF_ERROR(CheckFlags(options));
  const int threads = options.threads > 0 ? options.threads : AvailableCpus();
  SPEXD_ASSIGN_OR_RETURN(
      const JobSources sources,
      OpenJobSources({.image = job.input, .psf = job.psf, .trace_reference = job.trace_reference}, threads,
                     stop));
  const auto start = std::chrono::steady_clock::now();
  SPEXD_ASSIGN_OR_RETURN(const TraceReport report, MeasureFrameTraces(sources, job.spec, {threads, stop}));
  Print(report, SecondsSince(start), options.json);
  if (const std::string refused = RefusedTraces(report.shifts); job.spec.trace_required && !refused.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(job.input, " with PSF ", job.psf, ": ", refused,
                     ". Give the PSF of a night or exposure whose traces are nearer"));
  }
  if (options.psf_out.empty()) return absl::OkStatus();
  return WriteMovedPsf(*sources.psf, report, options.psf_out, stop, job.input);
}

int RunTraceShifts(const TraceShiftsOptions& options) {
  std::stop_source stop;
  const InterruptGuard interrupt(stop);
  const absl::Status status = CatchExceptions([&] { return Run(options, stop.get_token()); });
  if (status.ok()) return kOk;
  if (stop.stop_requested()) {
    std::fprintf(stderr, "spex: interrupted; nothing was written\n");
    return kInterrupted;
  }
  Fail(status);
  return CodeOfWriteError(status);
}

}  // namespace

void AddTraceShifts(CLI::App* app, Action* action) {
  auto options = std::make_shared<TraceShiftsOptions>();
  TraceShiftsOptions& o = *options;
  o.job.spec.trace_shifts = TraceAxes::kAuto;
  CLI::App* command =
      app->add_subcommand("traceshifts",
                          "Measure the shifts of a frame's traces against a PSF. Exit code 0 also if the "
                          "measurement is refused, unless --trace-required is given");
  command->add_option("-i,--input", o.job.input, "Preprocessed frame (.fits, .fits.gz)")
      ->type_name("FILE")
      ->required()
      ->group("Files");
  command->add_option("-p,--psf", o.job.psf, "PSF file")->type_name("FILE")->required()->group("Files");
  command->add_option("--psf-out", o.psf_out, "PSF to write, with shifted traces")
      ->type_name("FILE")
      ->group("Files");
  AddTraceFlags(command, &o.job);
  command->add_flag("--json", o.json, "Print a JSON object instead of a table");
  command->add_option("--threads", o.threads, "Threads. 0: one per processor")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  command->callback([options, action] { *action = [options] { return RunTraceShifts(*options); }; });
}

}  // namespace spexd::cli
