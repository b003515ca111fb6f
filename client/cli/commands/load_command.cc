#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags/analysis_flags.h"
#include "client/cli/flags/server_flags.h"
#include "client/cli/terminal/announcer.h"
#include "client/cli/terminal/exit_code.h"
#include "client/cli/terminal/interrupt.h"
#include "client/cli/terminal/real_range.h"
#include "client/connection/grpc_connection.h"
#include "client/load/load.h"
#include "core/base/machine/cpus.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/output_file.h"
#include "core/fits/writers.h"

namespace spexd::cli {
namespace {

constexpr int kMaxClients = 256;
constexpr int kMaxArrivals = 1000000;

struct LoadCommandOptions {
  load::LoadOptions load;
  client::ServerAddress server{.address = "127.0.0.1:50051"};
  std::string wavelength, json;
  std::vector<std::string> ways = {"path", "upload"};
  // These are for jobs that arrive at random.
  std::optional<double> rate, goal;
  double seconds = 30, percentile = 99;
  std::optional<uint32_t> seed;
  bool quiet = false;
};

absl::Status CheckOptions(LoadCommandOptions* options) {
  if (!options->wavelength.empty()) {
    SPEXD_ASSIGN_OR_RETURN(options->load.grid, ParseWavelengthGrid(options->wavelength));
  }
  SPEXD_RETURN_IF_ERROR(CheckAskedProducts(options->load.products));
  options->load.server = options->server.address;
  options->load.ways.clear();
  for (const std::string& way : options->ways) {
    options->load.ways.push_back(way == "path" ? load::Way::kPath : load::Way::kUpload);
  }
  if (options->rate.has_value()) {
    const uint32_t seed = options->seed.has_value() ? *options->seed : std::random_device{}();
    options->load.open = {*options->rate, options->seconds, seed, options->goal, options->percentile};
    if (*options->rate * options->seconds > kMaxArrivals) {
      return absl::InvalidArgumentError(absl::StrFormat("--rate %g for --seconds %g: more than %d jobs",
                                                        *options->rate, options->seconds, kMaxArrivals));
    }
  }
  if (options->load.threads == 0) options->load.threads = AvailableCpus();
  return options->json.empty() ? absl::OkStatus() : CheckWritable(options->json);
}

absl::Status Load(LoadCommandOptions options, std::stop_token stop) {
  SPEXD_RETURN_IF_ERROR(CheckOptions(&options));
  Announcer announcer(options.quiet);
  SPEXD_ASSIGN_OR_RETURN(
      const load::Report report,
      load::RunLoad(
          options.load, [&options] { return client::Connect(options.server); },
          [&announcer](const std::string& what) { announcer.Begin(what); }, std::move(stop)));
  announcer.End();
  std::fputs(load::FormatReport(report).c_str(), stdout);
  std::fflush(stdout);
  if (options.json.empty()) return absl::OkStatus();
  const std::string json =
      load::ToJson(report).dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  SPEXD_RETURN_IF_ERROR(WriteFileAtomically(options.json, json));
  std::fprintf(stderr, "Wrote %s\n", options.json.c_str());
  return absl::OkStatus();
}

int RunLoadCommand(const LoadCommandOptions& options) {
  std::stop_source stop;
  const InterruptGuard interrupt(stop);
  const absl::Status status = Load(options, stop.get_token());
  if (status.ok()) return kOk;
  if (stop.stop_requested()) {
    std::fprintf(stderr, "spex: interrupted\n");
    return kInterrupted;
  }
  const int code = Fail(status);
  return code == kInterrupted ? kServer : code;  // cancelled by the server
}

void AddArrivalFlags(CLI::App* command, LoadCommandOptions* options) {
  LoadCommandOptions& o = *options;
  const char* group = "Arrivals";
  CLI::Option* rate = command
                          ->add_option("--rate", o.rate,
                                       "Mean number of jobs per second, which arrive at random times, "
                                       "whether or not earlier jobs have ended")
                          ->check(RealRange(1e-3, 1e5))
                          ->excludes("--clients")
                          ->excludes("--frames")
                          ->group(group);
  command->add_option("--seconds", o.seconds, "Time for which jobs arrive")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(RealRange(0.01, 1e6))
      ->needs(rate)
      ->group(group);
  command->add_option("--seed", o.seed, "Random seed of the arrival times. Default: random, and printed")
      ->needs(rate)
      ->group(group);
  command
      ->add_option("--at-once", o.load.open_clients,
                   "Largest number of jobs in progress at once. Other jobs wait in spex, and their waiting "
                   "time counts")
      ->capture_default_str()
      ->check(CLI::Range(1, kMaxClients))
      ->needs(rate)
      ->group(group);
  CLI::Option* goal =
      command
          ->add_option("--latency-goal", o.goal,
                       "Find the highest rate at which jobs end within this time, starting from --rate")
          ->type_name("SECONDS")
          ->check(RealRange(1e-3, 1e5))
          ->needs(rate)
          ->group(group);
  command->add_option("--percentile", o.percentile, "Percentage of the jobs that must meet --latency-goal")
      ->capture_default_str()
      ->check(RealRange(1.0, 100.0))
      ->needs(goal)
      ->group(group);
}

}  // namespace

void AddLoad(CLI::App* app, Action* action) {
  auto options = std::make_shared<LoadCommandOptions>();
  LoadCommandOptions& o = *options;
  o.load.threads = 0;
  CLI::App* command = app->add_subcommand(
      "load", "Time a server under many clients, and the decoding of frames on this machine");
  const char* frame = "Frames";
  command->add_option("-i,--input", o.load.images, "Preprocessed frames; each is measured separately")
      ->type_name("FILE")
      ->required()
      ->group(frame);
  command->add_option("-p,--psf", o.load.psf, "PSF file of the frames; each job gets its own copy")
      ->type_name("FILE")
      ->required()
      ->group(frame);
  command
      ->add_option(
          "-w,--wavelength", o.wavelength,
          "Wavelength grid: first, last and step in Angstrom. Default: the range of the PSF in steps of 0.8")
      ->type_name("WMIN,WMAX,DW")
      ->group(frame);
  command
      ->add_option("-n,--nspec", o.load.fibres, "Number of fibres to extract from each frame. Default: all")
      ->check(CLI::Range(1, kMaxFibres))
      ->group(frame);

  const char* server = "Server";
  AddServerFlags(command, "Server: host:port or unix:/path", server, &o.server);
  command
      ->add_option("--by", o.ways, "How the server gets the files: path, upload or both, separated by commas")
      ->delimiter(',')
      ->capture_default_str()
      ->check(CLI::IsMember({"path", "upload"}))
      ->group(server);
  command
      ->add_option("--folder", o.load.folder,
                   "Folder for copies of the PSF. For --by path the server must be allowed to read it. "
                   "Default: the folder for temporary files")
      ->type_name("DIR")
      ->group(server);

  const char* group = "Measurement";
  command
      ->add_option("--clients", o.load.clients,
                   "Numbers of clients at once, separated by commas: one row of the table for each")
      ->type_name("LIST")
      ->delimiter(',')
      ->capture_default_str()
      ->check(CLI::Range(1, kMaxClients))
      ->group(group);
  command->add_option("--frames", o.load.frames, "Frames per row. Default: 4 for each client, at least 8")
      ->check(CLI::Range(1, 100000))
      ->group(group);
  command
      ->add_flag("--ceiling,!--no-ceiling", o.load.ceiling,
                 "First measure the decoding of the frames on this machine, without a server (default)")
      ->group(group);
  command
      ->add_option("--threads", o.load.threads,
                   "Threads that decode at once in this measurement. 0: one per processor")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024))
      ->group(group);
  command
      ->add_option("--ceiling-seconds", o.load.ceiling_seconds,
                   "Least duration of each measurement of decoding")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(RealRange(0.0, 1e5))
      ->group(group);

  AddArrivalFlags(command, &o);

  AddAskedProducts(command, &o.load.products);

  command->add_option("--json", o.json, "JSON file to write, with all samples")
      ->type_name("FILE")
      ->group("Output");
  command->add_flag("-q,--quiet", o.quiet, "Print no progress on stderr")->group("Output");
  command->callback([options, action] { *action = [options] { return RunLoadCommand(*options); }; });
}

}  // namespace spexd::cli
