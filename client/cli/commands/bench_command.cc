#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/bench/bench.h"
#include "client/bench/machine/host.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/python_script.h"
#include "client/cli/terminal/announcer.h"
#include "client/cli/terminal/exit_code.h"
#include "client/cli/terminal/real_range.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/output_file.h"
#include "core/fits/writers.h"
#include "cuda/loader/device_list.h"

namespace spexd::cli {
namespace {

constexpr int kMaxInFlight = 64;

struct BenchCommandOptions {
  std::string input, psf, wavelength = "5760,7620,0.8";
  SimulatorOptions simulator;
  EngineChoice engine;
  std::optional<std::string> devices;
  std::optional<std::string> parts;
  bool cold = false, quiet = false;
  bench::BenchOptions bench;
  std::string json, plot;
};

absl::Status CheckOptions(BenchCommandOptions* options) {
  if (options->input.empty() != options->psf.empty()) {
    return absl::InvalidArgumentError("--input and --psf belong together: give both, or neither to simulate");
  }
  if (options->devices.has_value()) {
    SPEXD_ASSIGN_OR_RETURN(options->engine.devices, ParseDeviceList(*options->devices));
  }
  SPEXD_RETURN_IF_ERROR(CheckEngineChoice(options->engine));
  if (options->cold && options->parts.has_value()) {
    return absl::InvalidArgumentError("--cold is --parts cold: give one of them");
  }
  if (options->cold) options->parts = "cold";
  if (options->parts.has_value()) {
    SPEXD_ASSIGN_OR_RETURN(options->bench.parts, bench::ParseBenchParts(*options->parts));
  }
  for (const int count : options->bench.in_flight) {
    if (count >= 1 && count <= kMaxInFlight) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("--in-flight: %d, must be 1 to %d", count, kMaxInFlight));
  }
  for (const std::string& path : {options->json, options->plot}) {
    if (!path.empty()) SPEXD_RETURN_IF_ERROR(CheckWritable(path));
  }
  return absl::OkStatus();
}

absl::StatusOr<bench::Inputs> MakeInputs(const BenchCommandOptions& options, Announcer* announcer) {
  SPEXD_ASSIGN_OR_RETURN(const WavelengthGrid grid, ParseWavelengthGrid(options.wavelength));
  if (!options.input.empty()) {
    announcer->Begin(absl::StrCat("Reading ", options.input));
    return bench::ReadInputs(options.input, options.psf, grid);
  }
  announcer->Begin(absl::StrFormat("Simulating %d fibres", options.simulator.fibres));
  return bench::SimulateInputs(options.simulator, grid);
}

absl::StatusOr<int> Bench(BenchCommandOptions options) {
  options.bench.process_seconds = bench::SecondsSinceProcessStart();
  SPEXD_RETURN_IF_ERROR(CheckOptions(&options));
  Announcer announcer(options.quiet);
  SPEXD_ASSIGN_OR_RETURN(const bench::Inputs inputs, MakeInputs(options, &announcer));
  SPEXD_ASSIGN_OR_RETURN(const bench::Report report,
                         bench::RunBench(
                             inputs, options.bench, [&options] { return ChooseEngine(options.engine); },
                             [&announcer](const std::string& what) { announcer.Begin(what); }));
  announcer.End();
  if (report.check.has_value() && !report.check->wrong.empty()) {
    for (const std::string& wrong : report.check->wrong) {
      std::fprintf(stderr, "spex: wrong result of the %s engine: %s\n", report.engine.kind.c_str(),
                   wrong.c_str());
    }
    std::fprintf(stderr, "spex: nothing was timed\n");
    return kDifferent;
  }
  std::fputs(bench::FormatReport(report).c_str(), stdout);
  std::fflush(stdout);
  const std::string json =
      bench::ToJson(report).dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (!options.json.empty()) {
    SPEXD_RETURN_IF_ERROR(WriteFileAtomically(options.json, json));
    std::fprintf(stderr, "Wrote %s\n", options.json.c_str());
  }
  return options.plot.empty() ? kOk : DrawJson("spex bench --plot", "plot_bench.py", json, options.plot);
}

int RunBenchCommand(const BenchCommandOptions& options) {
  const absl::StatusOr<int> code = Bench(options);
  return code.ok() ? *code : Fail(code.status());
}

void AddMeasureFlags(CLI::App* command, BenchCommandOptions* options) {
  bench::BenchOptions& b = options->bench;
  const char* group = "Measurement";
  command
      ->add_option("--parts", options->parts,
                   "Parts to measure, separated by commas: stages, frame, throughput, cold, products, "
                   "traces. Default: all but products and traces")
      ->type_name("LIST")
      ->group(group);
  command
      ->add_flag("--cold", options->cold,
                 "Measure the time from the start of the process to the first bundle; same as --parts cold")
      ->group(group);
  command
      ->add_option("--repeats", b.repeats,
                   "Frames per measurement, of which the median is reported. Default: 9, on the CPU 3")
      ->check(CLI::Range(1, 100000))
      ->group(group);
  command
      ->add_option("--warmup", b.warmup, "Untimed frames before each measurement. Default: 3, on the CPU 1")
      ->check(CLI::Range(0, 1000))
      ->group(group);
  command
      ->add_option(
          "--in-flight", b.in_flight,
          "Numbers of frames at once for throughput, separated by commas. Default: 1,2,4, on the CPU 1")
      ->type_name("LIST")
      ->delimiter(',')
      ->group(group);
  command
      ->add_option(
          "--seconds", b.seconds,
          "Least duration of each throughput measurement, which also takes at least --repeats frames")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(RealRange(0.0, 1e5))
      ->group(group);
  command
      ->add_flag("--check,!--no-check", b.check,
                 "Check the results before timing, and stop if they are wrong (default)")
      ->group(group);
  const auto peak = [&](const char* flag, std::optional<double>* value, const char* text) {
    command->add_option(flag, *value, text)
        ->check(RealRange(1.0, 1e18))
        ->group("Peak rates for the floors (default: those of an H200 for CUDA, measured for the CPU)");
  };
  peak("--peak-flops", &b.peaks.flops, "Peak rate of float64 operations per second. H200: 33.5e12");
  peak("--peak-matrix-flops", &b.peaks.matrix_flops,
       "Peak rate of float64 operations per second of the matrix units. H200: 60e12");
  peak("--peak-bytes", &b.peaks.bytes,
       "Peak rate of memory reads and writes in bytes per second. H200: 4.2e12");
  peak("--peak-link-bytes", &b.peaks.link_bytes,
       "Peak rate of transfers to or from the host in bytes per second. H200: 55e9");
}

}  // namespace

void AddBench(CLI::App* app, Action* action) {
  auto options = std::make_shared<BenchCommandOptions>();
  BenchCommandOptions& o = *options;
  CLI::App* command = app->add_subcommand(
      "bench", "Time the engine: stages and their floors, frames, throughput, cold start");
  const char* frame = "Frame";
  command
      ->add_option("-i,--input", o.input,
                   "Preprocessed frame (.fits, .fits.gz). Default: a frame simulated in memory")
      ->type_name("FILE")
      ->group(frame);
  command->add_option("-p,--psf", o.psf, "PSF file of --input")->type_name("FILE")->group(frame);
  command->add_option("-w,--wavelength", o.wavelength, "Wavelength grid: first, last and step in Angstrom")
      ->type_name("WMIN,WMAX,DW")
      ->capture_default_str()
      ->group(frame);
  command->add_option("--fibres", o.simulator.fibres, "Number of fibres to simulate")
      ->capture_default_str()
      ->group(frame);
  command->add_option("--rows", o.simulator.rows, "Number of CCD rows to simulate. 0: as in the r camera")
      ->capture_default_str()
      ->group(frame);
  command->add_option("--seed", o.simulator.seed, "Random seed of the simulation")
      ->capture_default_str()
      ->group(frame);

  const char* engine = "Engine";
  command->add_option("--device", o.engine.device, "Engine. auto: CUDA, or the CPU if CUDA is not available")
      ->capture_default_str()
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}))
      ->group(engine);
  command->add_option("--devices", o.devices, "CUDA devices by their CUDA numbers, such as 0,2. Default: all")
      ->type_name("LIST")
      ->group(engine);
  command->add_option("--threads", o.engine.threads, "Threads of the CPU engine. 0: one per processor")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024))
      ->group(engine);
  command
      ->add_option(
          "--device-memory-bytes", o.engine.device_memory_bytes,
          "Memory of each CUDA device that the engine takes, in bytes. 0: nine tenths of the free memory")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 50))
      ->group("Engine");
  command
      ->add_option("--jobs-per-device", o.engine.jobs_per_device,
                   "Jobs that compute at once on each CUDA device")
      ->capture_default_str()
      ->check(CLI::Range(1, kMaxInFlight))
      ->group(engine);
  AddMeasureFlags(command, &o);

  const char* output = "Output";
  command->add_option("--json", o.json, "JSON file to write, with all samples")
      ->type_name("FILE")
      ->group(output);
  command->add_option("--plot", o.plot, "Picture of stages and throughput to write (.png, .pdf, .svg)")
      ->type_name("FILE")
      ->group(output);
  command->add_flag("-q,--quiet", o.quiet, "Print no progress on stderr")->group(output);
  command->callback([options, action] { *action = [options] { return RunBenchCommand(*options); }; });
}

}  // namespace spexd::cli
