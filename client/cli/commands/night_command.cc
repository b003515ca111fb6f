#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/batch/batch_record.h"
#include "client/cli/batch/frame_list.h"
#include "client/cli/batch/frame_task.h"
#include "client/cli/batch/run_batch_at.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/python_script.h"
#include "client/cli/flags/analysis_flags.h"
#include "client/cli/flags/batch_products.h"
#include "client/cli/flags/job_flags.h"
#include "client/cli/flags/where_flags.h"
#include "client/cli/night/camera_intake.h"
#include "client/cli/night/folder_watch.h"
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
  std::string watch;  // the folder to watch; "": the frames are those of the list
  std::vector<std::string> psf_for;
  OutputFolders folders;
  JobFlags job;
  BatchProducts products;
  FrameOutput output;  // without files
  int in_flight = 0;
  WhereFlags where;
};

// Prints the table and writes the JSON, the page and the picture.
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

// Checks the files of the reports. InvalidArgument: one would replace another, the list, or a file of its
// frames.
absl::Status CheckReports(const NightCommandOptions& options, const std::vector<FrameTask>& tasks) {
  std::map<std::string, std::string> files;  // paths, and what messages say about them
  for (const FrameTask& task : tasks) {
    files[Canonical(task.job.image)] = "an image of the list";
    files[Canonical(task.job.psf)] = "a PSF of the list";
    for (const auto& [what, path] : task.Files()) files[Canonical(path)] = "an output of the list";
  }
  if (!options.list.empty()) files[Canonical(options.list)] = "the list";
  for (const auto& [flag, path] :
       {std::pair("--json", options.json), std::pair("--report", options.report),
        std::pair("--plot", options.plot), std::pair("--metrics-file", options.metrics)}) {
    if (path.empty()) continue;
    const auto [file, is_new] = files.emplace(Canonical(path), absl::StrCat("the file of ", flag));
    if (!is_new) return absl::InvalidArgumentError(absl::StrCat(flag, ": ", path, " is ", file->second));
  }
  return absl::OkStatus();
}

// Extracts the frames of the source. `cameras`: the cameras of a watch; empty for a list.
absl::StatusOr<int> Extract(const NightCommandOptions& options, FrameSource* source,
                            const std::set<std::string>& cameras, BatchRecord* record,
                            std::chrono::steady_clock::time_point start, const std::stop_token& stop) {
  for (const std::string& path : {options.json, options.report, options.plot, options.metrics}) {
    if (!path.empty()) SPEXD_RETURN_IF_ERROR(CheckWritable(path));
  }
  ReportIdleFlags(options.job, options.where, options.output.quiet);
  std::optional<NightMetricsFile> metrics;
  if (!options.metrics.empty()) {
    metrics.emplace(options.metrics, source->Count().value_or(0));
    SPEXD_RETURN_IF_ERROR(metrics->Begin());
  }
  BatchOptions batch = {.in_flight = options.in_flight,
                        .style = StyleOf(options.output),
                        .quiet = options.output.quiet,
                        .verbose = options.output.verbose,
                        .start = start,
                        .max_chi2pix = options.output.max_chi2pix,
                        .products = options.products,
                        .cameras = cameras,
                        .record = record};
  if (metrics.has_value()) batch.on_result = [&metrics](const BatchResult& result) { metrics->Add(result); };
  const absl::StatusOr<BatchEnd> ran = RunBatchAt(options.where, options.job, source, batch, stop);
  const absl::Status noted = metrics.has_value() ? metrics->End() : absl::OkStatus();
  SPEXD_ASSIGN_OR_RETURN(const BatchEnd end, ran);
  if (end.code == kInterrupted) return end.code;
  SPEXD_ASSIGN_OR_RETURN(const int reported, Report(options, end, SecondsSince(start)));
  SPEXD_RETURN_IF_ERROR(noted);
  return std::max(end.code, reported);
}

// Extracts the frames of the folder until a stop is requested.
absl::StatusOr<int> Watch(const NightCommandOptions& options, std::chrono::steady_clock::time_point start,
                          const std::stop_token& stop) {
  SPEXD_ASSIGN_OR_RETURN(const CameraIntake intake,
                         CameraIntake::Make(options.job, options.psf_for, options.folders, options.products));
  SPEXD_RETURN_IF_ERROR(CheckReports(options, {}));
  std::error_code failed;  // ignored: opening the record then fails
  std::filesystem::create_directories(options.folders.frames, failed);
  BatchRecord record;
  SPEXD_RETURN_IF_ERROR(
      record.OpenBeside((std::filesystem::path(options.folders.frames) / "frame").string()));
  SPEXD_ASSIGN_OR_RETURN(const std::unique_ptr<FolderWatch> frames,
                         FolderWatch::Open(options.watch, &intake));
  if (!options.output.quiet) {
    std::printf("Watching %s until Ctrl-C or SIGTERM\n", ForTerminal(options.watch).c_str());
    std::fflush(stdout);
  }
  SPEXD_ASSIGN_OR_RETURN(const int code,
                         Extract(options, frames.get(), intake.Cameras(), &record, start, stop));
  const absl::Status ended = frames->status();
  return ended.ok() ? code : std::max(code, Fail(ended));
}

absl::StatusOr<int> Night(const NightCommandOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  std::stop_source stop;
  const InterruptGuard interrupt(stop);
  SPEXD_RETURN_IF_ERROR(CheckBatchProducts(options.products));
  if (!options.watch.empty()) return Watch(options, start, stop.get_token());
  if (options.list.empty()) {
    return absl::InvalidArgumentError("name a list of frames, or a folder of frames with --watch");
  }
  SPEXD_ASSIGN_OR_RETURN(const std::vector<NightRow> rows, ReadRows(options));
  SPEXD_ASSIGN_OR_RETURN(const std::vector<FrameTask> tasks, NightTasks(options.job, rows, options.products));
  SPEXD_RETURN_IF_ERROR(
      PrepareOutputs(tasks, options.products.inputs, {"the column image", "the column psf"}));
  SPEXD_RETURN_IF_ERROR(CheckReports(options, tasks));
  BatchRecord record;
  for (const FrameTask& task : tasks) SPEXD_RETURN_IF_ERROR(record.OpenBeside(task.output.frame));
  ListedFrames frames(tasks);
  return Extract(options, &frames, {}, &record, start, stop.get_token());
}

void AddWatchFlags(CLI::App* command, CLI::Option* list, CLI::Option* part, NightCommandOptions* options) {
  CLI::Option* watch =
      command
          ->add_option("--watch", options->watch,
                       "Folder to use instead of a list: extract its frames (preproc-*.fits, .fits.gz, "
                       ".fits.fz) and those that appear in it, until Ctrl-C or SIGTERM")
          ->type_name("DIR")
          ->excludes(list)
          ->excludes(part)
          ->group("Files");
  CLI::Option* psf_for =
      command
          ->add_option(
              "--psf-for", options->psf_for,
              "With --watch: the PSF of the frames whose header has this CAMERA; once for each camera")
          ->type_name("CAMERA=FILE")
          ->needs(watch)
          ->group("Files");
  CLI::Option* folder =
      command
          ->add_option("--output-dir", options->folders.frames,
                       "With --watch: folder to write frames to; preproc-X.fits becomes frame-X.fits")
          ->type_name("DIR")
          ->needs(watch)
          ->group("Files");
  watch->needs(psf_for)->needs(folder);
}

}  // namespace

void AddNight(CLI::App* app, Action* action) {
  auto options = std::make_shared<NightCommandOptions>();
  NightCommandOptions& o = *options;
  CLI::App* command = app->add_subcommand(
      "night", "Extract the frames of a list, or those that appear in a folder; continues an earlier run");
  CLI::Option* list = command
                          ->add_option("list", o.list,
                                       "Text table. The first line names the columns: image psf output "
                                       "[model] [expid] [wavelength] ...; each further line is a frame")
                          ->type_name("FILE");
  CLI::Option* part = command
                          ->add_option("--part", o.part,
                                       "Part of the list to extract, K/N: every N-th frame, starting from "
                                       "the K-th. 2/8 is the second of eight parts")
                          ->type_name("K/N")
                          ->group("Files");
  AddWatchFlags(command, list, part, &o);
  command->add_option("--json", o.json, "JSON file to write, with the result of every frame")
      ->type_name("FILE")
      ->group("Files");
  command
      ->add_option("--report", o.report, "HTML page to write, with what needs attention, pictures and tables")
      ->type_name("FILE")
      ->group("Files");
  command->add_option("--plot", o.plot, "Picture of the night to write (.png, .pdf, .svg)")
      ->type_name("FILE")
      ->group("Files");
  command
      ->add_option("--metrics-file", o.metrics,
                   "File of metrics to keep up to date (.prom), for the textfile collector of Prometheus's "
                   "node_exporter")
      ->type_name("FILE")
      ->group("Files");
  AddJobFlags(command, "Where", &o.job);
  AddProductNames(command, &o.products.names);
  AddProductInputs(command, &o.products.inputs);
  AddInFlightFlag(command, "Frames in progress at once", &o.in_flight);
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
