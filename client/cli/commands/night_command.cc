#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/batch/run_batch_at.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/python_script.h"
#include "client/cli/flags/job_flags.h"
#include "client/cli/flags/where_flags.h"
#include "client/cli/night/night_list.h"
#include "client/cli/night/night_record.h"
#include "client/cli/night/night_summary.h"
#include "client/cli/terminal/exit_code.h"
#include "client/cli/terminal/frame_output.h"
#include "client/cli/terminal/interrupt.h"
#include "client/cli/terminal/terminal_text.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/output_file.h"

namespace spexd::cli {
namespace {

struct NightCommandOptions {
  std::string list, part, json, plot;
  JobFlags job;
  FrameOutput output;  // but for the files
  int in_flight = 0;
  WhereFlags where;
};

// Prints the table, writes the JSON and draws the picture.
absl::StatusOr<int> Report(const NightCommandOptions& options, const std::vector<NightRow>& rows,
                           const NightRecord& record, double seconds) {
  if (!options.output.quiet) std::fputs(ForTerminal(FormatNight(record.results())).c_str(), stdout);
  std::fflush(stdout);
  const std::string json = NightJson(rows, record.results(), seconds)
                               .dump(1, ' ', false, nlohmann::json::error_handler_t::replace) +
                           "\n";
  if (!options.json.empty()) SPEXD_RETURN_IF_ERROR(WriteFileAtomically(options.json, json));
  return options.plot.empty() ? kOk : DrawJson("spex night --plot", "plot_night.py", json, options.plot);
}

absl::StatusOr<std::vector<NightRow>> ReadRows(const NightCommandOptions& options) {
  NightPart part;
  if (!options.part.empty()) {
    SPEXD_ASSIGN_OR_RETURN(part, ParseNightPart(options.part));
  }
  SPEXD_ASSIGN_OR_RETURN(const std::vector<NightRow> rows, ReadNightList(options.list));
  return PartOf(rows, part);
}

absl::StatusOr<int> Night(const NightCommandOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  std::stop_source stop;
  const InterruptGuard interrupt(stop);
  SPEXD_ASSIGN_OR_RETURN(const std::vector<NightRow> rows, ReadRows(options));
  SPEXD_ASSIGN_OR_RETURN(const std::vector<FrameTask> tasks, NightTasks(options.job, rows));
  SPEXD_RETURN_IF_ERROR(PrepareOutputs(tasks, {"the column image", "the column psf"}));
  for (const std::string& path : {options.json, options.plot}) {
    if (!path.empty()) SPEXD_RETURN_IF_ERROR(CheckWritable(path));
  }
  SPEXD_ASSIGN_OR_RETURN(const std::unique_ptr<NightRecord> record, NightRecord::Open(rows, tasks));
  ReportIdleFlags(options.job, options.where, options.output.quiet);
  BatchOptions batch = {options.in_flight, StyleOf(options.output), options.output.quiet,
                        options.output.verbose, start};
  batch.max_chi2pix = options.output.max_chi2pix;
  batch.record = record.get();
  int code = RunBatchAt(options.where, options.job.upload, tasks, batch, stop.get_token());
  if (code == kInterrupted) return code;
  for (const std::string& line : SkippedBeyond(rows, record->results(), options.output.max_chi2pix)) {
    std::fprintf(stderr, "spex: %s\n", ForTerminal(line).c_str());
    code = std::max<int>(code, kDifferent);
  }
  if (HasFailedBundles(record->results())) code = std::max<int>(code, kDifferent);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  SPEXD_ASSIGN_OR_RETURN(const int reported, Report(options, rows, *record, seconds));
  return std::max(code, reported);
}

}  // namespace

void AddNight(CLI::App* app, Action* action) {
  auto options = std::make_shared<NightCommandOptions>();
  NightCommandOptions& o = *options;
  CLI::App* command = app->add_subcommand(
      "night", "Extract the frames of a list, and go on where an earlier run of the same list ended");
  command
      ->add_option(
          "list", o.list,
          "Text table: a first line with the columns image psf output [model] [expid], then a frame a line")
      ->required();
  command->add_option("--part", o.part, "Only every K-th frame, as 2/8 for the second of eight parts")
      ->group("Files");
  command->add_option("--json", o.json, "Write what became of every frame")->group("Files");
  command->add_option("--plot", o.plot, "Draw the night (.png, .pdf, .svg)")->group("Files");
  AddJobFlags(command, "Where", &o.job);
  AddInFlightFlag(command, "Frames at once", &o.in_flight);
  AddWhereFlags(command, &o.where);
  AddMessageFlags(command, &o.output);
  command->callback([options, action] {
    *action = [options] {
      const absl::StatusOr<int> code = Night(*options);
      return code.ok() ? *code : Fail(code.status());
    };
  });
}

}  // namespace spexd::cli
