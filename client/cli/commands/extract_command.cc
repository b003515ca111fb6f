#include <chrono>
#include <future>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/batch/frame_batch.h"
#include "client/cli/batch/frame_list.h"
#include "client/cli/batch/frame_task.h"
#include "client/cli/batch/run_batch_at.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags/analysis_flags.h"
#include "client/cli/flags/batch_products.h"
#include "client/cli/flags/job_flags.h"
#include "client/cli/flags/where_flags.h"
#include "client/cli/products/camera_fiberflats.h"
#include "client/cli/products/product_results.h"
#include "client/cli/products/product_tools.h"
#include "client/cli/terminal/exit_code.h"
#include "client/cli/terminal/frame_output.h"
#include "client/cli/terminal/interrupt.h"
#include "client/cli/terminal/progress.h"
#include "client/connection/grpc_connection.h"
#include "client/embedded/embedded_extractor.h"
#include "client/extract_client.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "cuda/loader/choose_engine.h"

namespace spexd::cli {
namespace {

struct ExtractCommandOptions {
  JobFlags job;
  std::vector<std::string> inputs, psfs;
  FrameOutput output;
  AnalysisFlags products;
  std::vector<std::string> batch_products;  // for many frames
  OutputFolders folders;
  int in_flight = 0;  // 0: chosen by where the frames are extracted
  WhereFlags where;
  std::string loglevel;
};

// Runs a job. Sets `engine` to the engine of a job that ran in this process; the outcome does not need it.
absl::StatusOr<JobOutcome> RunJob(const ExtractCommandOptions& options, const client::Job& job,
                                  Progress* progress, std::stop_token stop, std::unique_ptr<Engine>* engine) {
  if (!options.where.server.address.empty()) {
    SPEXD_ASSIGN_OR_RETURN(const auto directory, client::OpenDirectory(options.where.server));
    client::RemoteOptions remote;
    remote.upload = options.job.upload;
    client::Job asks = job;
    asks.products = ProductsToAsk(options.products.files, options.products.inputs);
    SPEXD_ASSIGN_OR_RETURN(const NamedFiberflats fiberflats,
                           NamedFiberflats::Load(options.products.inputs.fiberflats));
    SPEXD_ASSIGN_OR_RETURN(asks.products.fiberflat, fiberflats.ForImage(job.image));
    return client::RemoteExtractor(directory->source(), remote).Run(asks, progress, std::move(stop));
  }
  SPEXD_ASSIGN_OR_RETURN(const EngineChoice choice, MakeChoice(options.where));
  SPEXD_RETURN_IF_ERROR(CheckEngineChoice(choice));
  HideOtherDevices(choice);
  // A GPU takes a third of a second to wake up, during which the files are read.
  std::future<absl::StatusOr<ChosenEngine>> waking =
      std::async(std::launch::async, [&choice] { return ChooseEngine(choice); });
  const auto awake = [&]() -> absl::StatusOr<Engine*> {
    SPEXD_ASSIGN_OR_RETURN(ChosenEngine chosen, waking.get());
    const std::string note = NoteOnCpu("running on the CPU", chosen.note,
                                       TellsWhyCpu(options.output.verbose, options.output.quiet));
    if (!note.empty()) progress->Note(note);
    *engine = std::move(chosen.engine);
    return engine->get();
  };
  client::Job keeps = job;
  const ProductPaths& products = options.products.files;
  keeps.keep_on_device = products.any() && MayTakeGpu(!products.velocities.empty(), choice);
  return client::EmbeddedExtractor(awake, FileThreads(options.where)).Run(keeps, progress, std::move(stop));
}

// Writes the products, which the server made or, for an embedded job, are made here.
absl::Status TakeProducts(const ExtractCommandOptions& options, const JobOutcome& outcome,
                          std::stop_token stop) {
  const ProductPaths& paths = options.products.files;
  const int threads = FileThreads(options.where);
  const bool quiet = options.output.quiet;
  if (outcome.products.has_value()) {
    return PrintProducts(WriteProducts(outcome.frame, paths, *outcome.products, threads), quiet);
  }
  SPEXD_ASSIGN_OR_RETURN(const EngineChoice where, MakeChoice(options.where));
  SPEXD_ASSIGN_OR_RETURN(ProductTools tools, LoadTools(options.products.inputs, threads));
  if (MayTakeGpu(!paths.velocities.empty(), where)) {
    SPEXD_RETURN_IF_ERROR(TakeAnalyser(where, quiet, &tools));
  }
  SPEXD_ASSIGN_OR_RETURN(const NamedProducts made,
                         MakeProducts(outcome.frame, outcome.on_device.get(), paths, tools, std::move(stop)));
  return PrintProducts(WriteProducts(outcome.frame, paths, made, threads), quiet);
}

// Checks --psf-out against the other flags.
absl::Status CheckPsfOut(const ExtractCommandOptions& options) {
  if (options.output.psf.empty()) return absl::OkStatus();
  if (options.job.spec.trace_shifts == TraceAxes::kOff) {
    return absl::InvalidArgumentError(
        "--psf-out: no trace shifts are measured; add --trace-shifts auto, x or xy, or leave --psf-out out");
  }
  if (!absl::StartsWith(options.job.psf, client::kPsfHashPrefix)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--psf-out: the PSF is written from its file, which ",
                                                 options.job.psf,
                                                 " does not name; give --psf the path of that file"));
}

// Extracts one frame to the file that --output names.
int RunFrame(const ExtractCommandOptions& options, std::chrono::steady_clock::time_point start,
             const std::stop_source& stop) {
  const absl::StatusOr<client::Job> job = MakeJob(options.job, !options.output.model.empty());
  if (!job.ok()) return Fail(job.status());
  if (absl::Status status = CheckPsfOut(options); !status.ok()) return Fail(status);
  if (absl::Status status =
          CheckOutputs(options.output, {{"--input", options.job.input},
                                        {"--psf", options.job.psf},
                                        {"--fibermap", options.job.fibermap},
                                        {"--trace-reference", options.job.trace_reference}});
      !status.ok()) {
    Fail(status);
    return kUsage;
  }
  if (absl::Status status = CheckAnalysisFlags(
          options.products, {options.job.input, options.job.psf, options.job.trace_reference,
                             options.output.frame, options.output.model, options.output.psf});
      !status.ok()) {
    return Fail(status);
  }
  ReportIdleFlags(options.job, options.where, options.output.quiet);
  Progress progress(StyleOf(options.output), options.job.input);
  std::unique_ptr<Engine> engine;
  const absl::StatusOr<JobOutcome> outcome = RunJob(options, *job, &progress, stop.get_token(), &engine);
  progress.End();
  if (stop.stop_requested()) {
    std::fprintf(stderr, "spex: interrupted; nothing was written\n");
    return kInterrupted;
  }
  if (!outcome.ok()) {
    const int code = Fail(outcome.status());
    return code == kInterrupted ? kServer : code;  // cancelled by the server
  }
  int code = kOk;
  {
    // The engine and its memory are released while the files are written.
    const std::future<void> releasing = std::async([&engine] { engine.reset(); });
    code = Deliver(options.output, *outcome, FileThreads(options.where), start);
  }
  if (!options.products.files.any() || (code != kOk && code != kDifferent)) return code;
  const absl::Status status =
      CatchExceptions([&] { return TakeProducts(options, *outcome, stop.get_token()); });
  return status.ok() ? code : Fail(status);
}

// Extracts any number of frames to files in --output-dir.
int RunFrames(const ExtractCommandOptions& options, std::chrono::steady_clock::time_point start,
              const std::stop_token& stop) {
  const BatchProducts products = {options.batch_products, options.products.inputs};
  if (const absl::Status status = CheckBatchProducts(products); !status.ok()) return Fail(status);
  absl::StatusOr<std::vector<FrameTask>> tasks =
      ListFrames(options.job, options.inputs, options.psfs, options.folders, products);
  if (!tasks.ok()) {
    Fail(tasks.status());
    return kUsage;
  }
  ReportIdleFlags(options.job, options.where, options.output.quiet);
  const BatchOptions batch = {.in_flight = options.in_flight,
                              .style = StyleOf(options.output),
                              .quiet = options.output.quiet,
                              .verbose = options.output.verbose,
                              .start = start,
                              .max_chi2pix = options.output.max_chi2pix,
                              .products = products};
  ListedFrames frames(*std::move(tasks));
  const absl::StatusOr<BatchEnd> end = RunBatchAt(options.where, options.job, &frames, batch, stop);
  return end.ok() ? end->code : Fail(end.status());
}

// Checks that the output is named in the way that suits the inputs: by --output or --output-dir.
absl::Status CheckOutputFlags(const ExtractCommandOptions& options) {
  if (!options.folders.frames.empty()) {
    if (!options.products.files.any()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "--sky, --sframe, --velocity-out and --lines-out name files of one frame; with --output-dir, name "
        "the "
        "products: --products sky,sframe,velocities,redshifts");
  }
  if (options.inputs.size() > 1 || options.psfs.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat("--input names ", options.inputs.size(),
                                                   " frames and --psf ", options.psfs.size(),
                                                   " files; --output is for one frame, use --output-dir"));
  }
  if (options.output.frame.empty()) return absl::InvalidArgumentError("--output or --output-dir is required");
  return absl::OkStatus();
}

int RunExtract(ExtractCommandOptions options) {
  const auto start = std::chrono::steady_clock::now();
  std::stop_source stop;
  const InterruptGuard interrupt(stop);
  if (absl::Status status = CheckOutputFlags(options); !status.ok()) return Fail(status);
  if (!options.folders.frames.empty()) return RunFrames(options, start, stop.get_token());
  options.job.input = options.inputs[0];
  options.job.psf = options.psfs[0];
  options.output.psf_file = options.job.psf;
  return RunFrame(options, start, stop);
}

void AddFileFlags(CLI::App* command, ExtractCommandOptions* options) {
  ExtractCommandOptions& o = *options;
  command
      ->add_option("-i,--input", o.inputs,
                   "Preprocessed frame (.fits, .fits.gz); with --output-dir one or more")
      ->type_name("FILE")
      ->required()
      ->group("Files");
  command
      ->add_option("-p,--psf", o.psfs,
                   "PSF file, or on a server sha256:HASH of a loaded PSF. For several frames: one for all, "
                   "or one for each in their order")
      ->type_name("FILE")
      ->required()
      ->group("Files");
  AddOutputFlags(command, &o.output);
  CLI::Option* frame = command->get_option("--output")->required(false);
  CLI::Option* psf =
      command
          ->add_option(
              "--psf-out", o.output.psf,
              "With --trace-shifts: PSF to write, with the traces with which the frame was extracted")
          ->type_name("FILE")
          ->group("Files");
  CLI::Option* folder =
      command
          ->add_option("--output-dir", o.folders.frames,
                       "Folder to write one or more frames to: preproc-X.fits becomes frame-X.fits")
          ->type_name("DIR")
          ->excludes(frame)
          ->excludes(command->get_option("--model"))
          ->excludes(psf)
          ->group("Files");
  command
      ->add_option("--model-dir", o.folders.models,
                   "With --output-dir: folder to write the model images to, model-X.fits")
      ->type_name("DIR")
      ->needs(folder)
      ->group("Files");
  AddProductNames(command, &o.batch_products)->needs(folder);
  AddInFlightFlag(command, "With --output-dir: frames in progress at once", &o.in_flight)->needs(folder);
}

}  // namespace

void AddExtract(CLI::App* app, Action* action) {
  auto options = std::make_shared<ExtractCommandOptions>();
  ExtractCommandOptions& o = *options;
  CLI::App* command =
      app->add_subcommand("extract", "Extract spectra from preprocessed frames (the default command)");
  AddFileFlags(command, &o);
  AddJobFlags(command, "Where", &o.job);
  AddProductFiles(command, &o.products.files);
  AddProductInputs(command, &o.products.inputs);
  AddWhereFlags(command, &o.where);
  command
      ->add_option("--loglevel", o.loglevel,
                   "Level of messages. debug: same as --verbose. warn, error: same as --quiet")
      ->check(CLI::IsMember({"debug", "info", "warn", "warning", "error", "critical"}, CLI::ignore_case))
      ->group("Messages");
  command->callback([options, action] {
    *action = [options] {
      const std::string level = absl::AsciiStrToLower(options->loglevel);
      if (level == "debug") options->output.verbose = true;
      if (!level.empty() && level != "debug" && level != "info") options->output.quiet = true;
      options->output.wants_scores = options->job.spec.scores;
      return RunExtract(*options);
    };
  });
}

}  // namespace spexd::cli
