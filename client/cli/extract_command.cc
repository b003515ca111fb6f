#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/commands.h"
#include "client/cli/exit_code.h"
#include "client/cli/interrupt.h"
#include "client/cli/progress.h"
#include "client/embedded_runner.h"
#include "client/extract_client.h"
#include "client/grpc_connection.h"
#include "core/base/cpus.h"
#include "core/base/status_macros.h"
#include "core/fits/writers.h"
#include "cuda/loader/choose_engine.h"
#include "cuda/loader/device_list.h"

namespace spexd::cli {
namespace {

struct Options {
  std::string input, psf, output, model, fibermap, wavelength;
  int specmin = 0;
  std::optional<int> nspec;
  double regularize = 0;
  int bundlesize = 25;
  std::optional<double> psferr;
  bool barycentric_correction = false, no_scores = false, no_gpu = false;
  std::optional<double> nsubbundles, nwavestep, pixpad_frac, wavepad_frac;
  std::string server;
  bool upload = false, quiet = false;
  int threads = 0;
  std::string device = "auto";
  std::optional<std::string> devices;
  std::optional<double> timeout;
  std::string progress = "auto";
};

// Flags of the pipeline's extractor, or of the other mode, that change nothing here.
std::vector<std::string> WithoutEffect(const Options& options) {
  std::vector<std::string> names;
  if (options.nsubbundles) names.push_back("--nsubbundles");
  if (options.nwavestep) names.push_back("--nwavestep");
  if (options.pixpad_frac) names.push_back("--pixpad-frac");
  if (options.wavepad_frac) names.push_back("--wavepad-frac");
  if (!options.server.empty()) {
    if (options.no_gpu) names.push_back("--no-gpu");
    if (options.device != "auto") names.push_back("--device");
    if (options.devices.has_value()) names.push_back("--devices");
    if (options.threads != 0) names.push_back("--threads");
  } else if (options.upload) {
    names.push_back("--upload");
  }
  return names;
}

bool SameFile(const std::string& a, const std::string& b) {
  std::error_code error;
  return a == b || std::filesystem::equivalent(a, b, error);
}

absl::Status CheckOutputs(const Options& options) {
  const std::pair<const char*, std::string> inputs[] = {
      {"--input", options.input}, {"--psf", options.psf}, {"--fibermap", options.fibermap}};
  for (const auto& [flag, path] : inputs) {
    for (const std::string& output : {options.output, options.model}) {
      if (!path.empty() && !output.empty() && SameFile(path, output)) {
        return absl::InvalidArgumentError(absl::StrCat(output, " is the file that ", flag, " reads"));
      }
    }
  }
  if (SameFile(options.output, options.model)) {
    return absl::InvalidArgumentError(absl::StrCat("--output and --model are both ", options.output));
  }
  SPEXD_RETURN_IF_ERROR(CheckWritable(options.output));
  return options.model.empty() ? absl::OkStatus() : CheckWritable(options.model);
}

absl::StatusOr<client::Job> MakeJob(const Options& options) {
  client::Job job;
  job.image = options.input;
  job.psf = options.psf;
  job.fibermap = options.fibermap;
  JobSpec& spec = job.spec;
  if (!options.wavelength.empty()) {
    SPEXD_ASSIGN_OR_RETURN(spec.grid, ParseWavelengthGrid(options.wavelength));
  }
  spec.first_fibre = options.specmin;
  spec.fibre_count = options.nspec;
  spec.bundle_size = options.bundlesize;
  spec.psferr = options.psferr;
  spec.regularize = options.regularize;
  spec.barycentric_correction = options.barycentric_correction;
  spec.scores = !options.no_scores;
  spec.model = !options.model.empty();
  if (options.timeout.has_value()) {
    job.deadline = std::chrono::system_clock::now() +
                   std::chrono::milliseconds(static_cast<int64_t>(1000 * *options.timeout));
  }
  return job;
}

absl::StatusOr<EngineChoice> MakeChoice(const Options& options) {
  EngineChoice choice;
  choice.device = options.no_gpu ? "cpu" : options.device;
  if (options.devices.has_value()) {
    SPEXD_ASSIGN_OR_RETURN(choice.devices, ParseDeviceList(*options.devices));
  }
  choice.threads = options.threads;
  choice.one_job = true;
  return choice;
}

absl::StatusOr<client::JobOutcome> RunJob(const Options& options, const client::Job& job, Progress* progress,
                                          std::stop_token stop) {
  if (!options.server.empty()) {
    const std::unique_ptr<client::Connection> connection = client::MakeGrpcConnection(options.server);
    client::RemoteOptions remote;
    remote.upload = options.upload;
    return client::RemoteRunner(connection.get(), remote).Run(job, progress, std::move(stop));
  }
  SPEXD_ASSIGN_OR_RETURN(const EngineChoice choice, MakeChoice(options));
  SPEXD_RETURN_IF_ERROR(CheckEngineChoice(choice));
  // If there are several GPUs, the others are left alone: waking them up takes time, too.
  if (choice.device != "cpu" && choice.devices.empty()) setenv("CUDA_VISIBLE_DEVICES", "0", /*overwrite=*/0);
  // A GPU takes a third of a second to wake up. The files are read meanwhile.
  std::future<absl::StatusOr<ChosenEngine>> waking =
      std::async(std::launch::async, [&choice] { return ChooseEngine(choice); });
  std::unique_ptr<Engine> engine;
  const auto awake = [&]() -> absl::StatusOr<Engine*> {
    SPEXD_ASSIGN_OR_RETURN(ChosenEngine chosen, waking.get());
    if (!chosen.note.empty() && !options.quiet) {
      progress->Note(absl::StrCat("spex: running on the CPU: ", chosen.note));
    }
    engine = std::move(chosen.engine);
    return engine.get();
  };
  const int read_threads = options.threads > 0 ? options.threads : AvailableCpus();
  return client::EmbeddedRunner(awake, read_threads).Run(job, progress, std::move(stop));
}

// Writes the frame last: a script that waits for it finds the model there.
absl::Status WriteFiles(const Options& options, const client::JobOutcome& outcome) {
  if (!options.model.empty()) {
    SPEXD_RETURN_IF_ERROR(WriteModel(outcome.model, outcome.frame.origin, options.model));
  }
  absl::Status status = WriteFrame(outcome.frame, options.output);
  std::error_code ignored;
  if (!status.ok() && !options.model.empty()) std::filesystem::remove(options.model, ignored);
  return status;
}

void PrintSummary(const Options& options, const client::JobOutcome& outcome, double write_seconds,
                  double total_seconds) {
  const Frame& frame = outcome.frame;
  const double bins = static_cast<double>(frame.spectra.flux.size());
  std::string text = absl::StrFormat(
      "Wrote %s: %d spectra of %d bins, %.2f %% masked, %.2f %% without data\n", options.output,
      frame.fibres.count, frame.grid.count, 100 * static_cast<double>(outcome.summary.masked_bins) / bins,
      100 * static_cast<double>(outcome.summary.nodata_bins) / bins);
  if (!options.model.empty()) absl::StrAppend(&text, "Wrote ", options.model, "\n");
  if (options.no_scores == false && !frame.scores.has_value()) {
    absl::StrAppend(&text, "No SCORES: the grid lies outside the camera's window\n");
  }
  if (frame.origin.fine_grid_prior) {
    absl::StrAppend(&text,
                    "Finer than 0.4 Angstrom: the prior carries its fine-grid term (see the header)\n");
  }
  if (frame.origin.heliocentric_factor.has_value()) {
    absl::StrAppend(
        &text, absl::StrFormat("Barycentric correction: factor %.9f\n", *frame.origin.heliocentric_factor));
  }
  if (outcome.summary.largest_residual.has_value()) {
    absl::StrAppend(&text, absl::StrFormat("Flux residual: %.1e at most (|b - A f| / |b| of a bundle)\n",
                                           *outcome.summary.largest_residual));
  }
  absl::StrAppend(&text, FormatStages(outcome.stages, TerminalHasUnicode()));
  absl::StrAppend(
      &text, absl::StrFormat("Total %.2f s: queued %.2f, ran %.2f, wrote %.2f; engine %s\n", total_seconds,
                             outcome.queue_seconds, outcome.run_seconds, write_seconds, outcome.engine));
  std::fputs(text.c_str(), stdout);
}

int RunExtract(const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [](auto since) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
  };
  std::stop_source stop;
  const InterruptGuard interrupt(stop);
  const absl::StatusOr<client::Job> job = MakeJob(options);
  if (!job.ok()) return Fail(job.status());
  if (absl::Status status = CheckOutputs(options); !status.ok()) {
    Fail(status);
    return kUsage;
  }
  const std::vector<std::string> idle = WithoutEffect(options);
  if (!idle.empty() && !options.quiet) {
    std::fprintf(stderr, "spex: without effect here: %s\n", absl::StrJoin(idle, ", ").c_str());
  }

  ProgressStyle style = DefaultProgressStyle();
  if (options.progress == "bar") style = ProgressStyle::kBar;
  if (options.progress == "lines") style = ProgressStyle::kLines;
  if (options.quiet || options.progress == "none") style = ProgressStyle::kNone;
  Progress progress(style, options.input);
  const absl::StatusOr<client::JobOutcome> outcome = RunJob(options, *job, &progress, stop.get_token());
  progress.End();
  if (stop.stop_requested()) {
    std::fprintf(stderr, "spex: interrupted; nothing was written\n");
    return kInterrupted;
  }
  if (!outcome.ok()) {
    const int code = Fail(outcome.status());
    return code == kInterrupted ? kServer : code;  // cancelled, but not by this side
  }

  const auto write_start = std::chrono::steady_clock::now();
  if (absl::Status status = WriteFiles(options, *outcome); !status.ok()) {
    const int code = Fail(status);
    return code == kServer ? kInternal : code;  // "exhausted" is the disk here, not a server
  }
  if (!options.quiet) PrintSummary(options, *outcome, seconds(write_start), seconds(start));
  for (const std::string& failed : outcome->summary.failed_bundles) {
    std::fprintf(stderr, "spex: %s\n", failed.c_str());
  }
  return outcome->summary.failed_bundles.empty() ? kOk : kDifferent;
}

void AddWhereFlags(CLI::App* command, Options* options) {
  Options& o = *options;
  command->add_option("--server", o.server, "Run on this spexd: host:port or unix:/path")->group("Where");
  command->add_flag("--upload", o.upload, "Send the files' bytes instead of their paths")->group("Where");
  command
      ->add_option("--device", o.device, "cpu, cuda or auto; auto: CUDA, or the CPU where that cannot be had")
      ->capture_default_str()
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}))
      ->group("Where");
  command->add_option("--devices", o.devices, "CUDA devices, such as 0,2; default: 0")->group("Where");
  command->add_flag("--no-gpu", o.no_gpu, "As --device cpu")->group("Where");
  command
      ->add_option("--threads", o.threads, "Threads of the CPU engine and of reading; 0: one per processor")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024))
      ->group("Where");
  command->add_option("--timeout", o.timeout, "Give up after so many seconds")
      ->check(CLI::Range(0.001, 1e7))
      ->group("Where");
}

}  // namespace

void AddExtract(CLI::App* app, Action* action) {
  auto options = std::make_shared<Options>();
  Options& o = *options;
  CLI::App* command =
      app->add_subcommand("extract", "Extract spectra from a preprocessed frame (the default command)");
  command->add_option("-i,--input", o.input, "Preprocessed frame (.fits, .fits.gz)")
      ->required()
      ->group("Files");
  command->add_option("-p,--psf", o.psf, "PSF file; on a server also sha256:HASH of a loaded one")
      ->required()
      ->group("Files");
  command->add_option("-o,--output", o.output, "Frame to write; .gz compresses")->required()->group("Files");
  command->add_option("-m,--model", o.model, "Also write the model image")->group("Files");
  command->add_option("-f,--fibermap", o.fibermap, "File with the FIBERMAP, instead of the input's own")
      ->group("Files");

  command
      ->add_option("-w,--wavelength", o.wavelength,
                   "wmin,wmax,dw in Angstrom; default: the PSF's range at 0.8")
      ->group("Extraction");
  command->add_option("-s,--specmin", o.specmin, "First fibre")->capture_default_str()->group("Extraction");
  command->add_option("-n,--nspec", o.nspec, "Number of fibres; default: to the last")->group("Extraction");
  command->add_option("-r,--regularize", o.regularize, "Weight of a flux = 0 prior on every bin")
      ->capture_default_str()
      ->group("Extraction");
  command->add_option("--bundlesize", o.bundlesize, "Fibres per bundle")
      ->capture_default_str()
      ->group("Extraction");
  command->add_option("--psferr", o.psferr, "Fractional PSF model error for chi2pix; default: the PSF's")
      ->group("Extraction");
  command->add_flag("--barycentric-correction", o.barycentric_correction, "Solve on the barycentric grid")
      ->group("Extraction");
  command->add_flag("--no-scores", o.no_scores, "Write no SCORES")->group("Extraction");

  AddWhereFlags(command, &o);

  command->add_flag("-q,--quiet", o.quiet, "Print errors only")->group("Messages");
  command->add_option("--progress", o.progress, "auto, bar, lines or none")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "bar", "lines", "none"}))
      ->group("Messages");

  const std::string idle = "Accepted, without effect: there are no patches here";
  command->add_option("--nsubbundles", o.nsubbundles, idle)->group("Compatibility");
  command->add_option("--nwavestep", o.nwavestep, idle)->group("Compatibility");
  command->add_option("--pixpad-frac", o.pixpad_frac, idle)->group("Compatibility");
  command->add_option("--wavepad-frac", o.wavepad_frac, idle)->group("Compatibility");
  command->callback([options, action] { *action = [options] { return RunExtract(*options); }; });
}

}  // namespace spexd::cli
