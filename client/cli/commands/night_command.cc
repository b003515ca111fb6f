#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/batch/batch_products.h"
#include "client/cli/batch/batch_record.h"
#include "client/cli/batch/frame_list.h"
#include "client/cli/batch/frame_task.h"
#include "client/cli/batch/run_batch_at.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/python_script.h"
#include "client/cli/flags/analysis_flags.h"
#include "client/cli/flags/job_flags.h"
#include "client/cli/flags/where_flags.h"
#include "client/cli/night/night_list.h"
#include "client/cli/night/night_metrics.h"
#include "client/cli/night/night_summary.h"
#include "client/cli/terminal/exit_code.h"
#include "client/cli/terminal/frame_output.h"
#include "client/cli/terminal/interrupt.h"
#include "client/cli/terminal/terminal_text.h"
#include "core/base/seconds_since.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/output_file.h"

namespace spexd::cli {
namespace {

struct NightCommandOptions {
  std::string list, part, json, report, plot, metrics;
  JobFlags job;
  BatchProducts products;
  FrameOutput output;  // but for the files
  int in_flight = 0;
  WhereFlags where;
};

// Prints the table, and writes the JSON, the page and the picture.
absl::StatusOr<int> Report(const NightCommandOptions& options, const BatchEnd& end, double seconds) {
  if (!options.output.quiet) std::fputs(ForTerminal(FormatNight(end.results)).c_str(), stdout);
  std::fflush(stdout);
  const std::string json =
      NightJson(end.results, seconds).dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (!options.json.empty()) SPEXD_RETURN_IF_ERROR(WriteFileAtomically(options.json, json));
  int code = kOk;
  for (const auto& [flag, script, path] : {std::tuple("--report", "night_page.py", options.report),
                                           std::tuple("--plot", "plot_night.py", options.plot)}) {
    if (path.empty()) continue;
    SPEXD_ASSIGN_OR_RETURN(const int drawn, DrawJson(absl::StrCat("spex night ", flag), script, json, path));
    code = std::max(code, drawn);
  }
  return code;
}

absl::StatusOr<std::vector<NightRow>> ReadRows(const NightCommandOptions& options) {
  NightPart part;
  if (!options.part.empty()) {
    SPEXD_ASSIGN_OR_RETURN(part, ParseNightPart(options.part));
  }
  SPEXD_ASSIGN_OR_RETURN(const std::vector<NightRow> rows, ReadNightList(options.list));
  return PartOf(rows, part, options.products.of_exposures());
}

absl::StatusOr<int> Night(const NightCommandOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  std::stop_source stop;
  const InterruptGuard interrupt(stop);
  SPEXD_RETURN_IF_ERROR(CheckBatchProducts(options.products));
  SPEXD_ASSIGN_OR_RETURN(const std::vector<NightRow> rows, ReadRows(options));
  SPEXD_ASSIGN_OR_RETURN(const std::vector<FrameTask> tasks, NightTasks(options.job, rows, options.products));
  SPEXD_RETURN_IF_ERROR(
      PrepareOutputs(tasks, options.products.inputs, {"the column image", "the column psf"}));
  for (const std::string& path : {options.json, options.report, options.plot, options.metrics}) {
    if (!path.empty()) SPEXD_RETURN_IF_ERROR(CheckWritable(path));
  }
  BatchRecord record;
  for (const FrameTask& task : tasks) SPEXD_RETURN_IF_ERROR(record.OpenBeside(task.output.frame));
  ReportIdleFlags(options.job, options.where, options.output.quiet);
  std::optional<NightMetricsFile> metrics;
  if (!options.metrics.empty()) {
    metrics.emplace(options.metrics, tasks.size());
    SPEXD_RETURN_IF_ERROR(metrics->Begin());
  }
  BatchOptions batch = {.in_flight = options.in_flight,
                        .style = StyleOf(options.output),
                        .quiet = options.output.quiet,
                        .verbose = options.output.verbose,
                        .start = start,
                        .max_chi2pix = options.output.max_chi2pix,
                        .products = options.products,
                        .record = &record};
  if (metrics.has_value()) batch.on_result = [&metrics](const BatchResult& result) { metrics->Add(result); };
  ListedFrames frames(tasks);
  const absl::StatusOr<BatchEnd> ran =
      RunBatchAt(options.where, options.job, &frames, batch, stop.get_token());
  const absl::Status noted = metrics.has_value() ? metrics->End() : absl::OkStatus();
  SPEXD_ASSIGN_OR_RETURN(const BatchEnd end, ran);
  if (end.code == kInterrupted) return end.code;
  SPEXD_ASSIGN_OR_RETURN(const int reported, Report(options, end, SecondsSince(start)));
  SPEXD_RETURN_IF_ERROR(noted);
  return std::max(end.code, reported);
}

}  // namespace

void AddNight(CLI::App* app, Action* action) {
  auto options = std::make_shared<NightCommandOptions>();
  NightCommandOptions& o = *options;
  CLI::App* command = app->add_subcommand(
      "night", "Extract the frames of a list, and go on where an earlier run of the same list ended");
  command
      ->add_option("list", o.list,
                   "Text table: a first line with the columns image psf output [model] [expid] [wavelength] "
                   ".., then a "
                   "frame a line")
      ->required();
  command->add_option("--part", o.part, "Only every K-th frame, as 2/8 for the second of eight parts")
      ->group("Files");
  command->add_option("--json", o.json, "Write what became of every frame")->group("Files");
  command
      ->add_option("--report", o.report, "Write what needs attention, pictures and tables as one HTML page")
      ->group("Files");
  command->add_option("--plot", o.plot, "Draw the night (.png, .pdf, .svg)")->group("Files");
  command
      ->add_option(
          "--metrics-file", o.metrics,
          "Keep a file of metrics up to date, for the textfile collector of Prometheus's node_exporter "
          "(.prom)")
      ->group("Files");
  AddJobFlags(command, "Where", &o.job);
  AddProductNames(command, &o.products.names);
  AddProductInputs(command, &o.products.inputs);
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
