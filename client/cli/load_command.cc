#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "client/cli/announcer.h"
#include "client/cli/commands.h"
#include "client/cli/exit_code.h"
#include "client/cli/interrupt.h"
#include "client/grpc_connection.h"
#include "client/load/load.h"
#include "core/base/cpus.h"
#include "core/base/status_macros.h"
#include "core/fits/output_file.h"
#include "core/fits/writers.h"

namespace spexd::cli {
namespace {

constexpr int kMostClients = 256;

struct Options {
  load::LoadOptions load;
  std::string wavelength, json;
  std::vector<std::string> ways = {"path", "upload"};
  bool quiet = false;
};

absl::Status CheckOptions(Options* options) {
  if (!options->wavelength.empty()) {
    SPEXD_ASSIGN_OR_RETURN(options->load.grid, ParseWavelengthGrid(options->wavelength));
  }
  options->load.ways.clear();
  for (const std::string& way : options->ways) {
    options->load.ways.push_back(way == "path" ? load::Way::kPath : load::Way::kUpload);
  }
  if (options->load.threads == 0) options->load.threads = AvailableCpus();
  return options->json.empty() ? absl::OkStatus() : CheckWritable(options->json);
}

absl::Status Load(Options options, std::stop_token stop) {
  SPEXD_RETURN_IF_ERROR(CheckOptions(&options));
  Announcer announcer(options.quiet);
  SPEXD_ASSIGN_OR_RETURN(
      const load::Report report,
      load::RunLoad(
          options.load, [&options] { return client::MakeGrpcConnection(options.load.server); },
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

int RunLoadCommand(const Options& options) {
  std::stop_source stop;
  const InterruptGuard interrupt(stop);
  const absl::Status status = Load(options, stop.get_token());
  if (status.ok()) return kOk;
  if (stop.stop_requested()) {
    std::fprintf(stderr, "spex: interrupted\n");
    return kInterrupted;
  }
  const int code = Fail(status);
  return code == kInterrupted ? kServer : code;  // cancelled, but not by this side
}

}  // namespace

void AddLoad(CLI::App* app, Action* action) {
  auto options = std::make_shared<Options>();
  Options& o = *options;
  o.load.server = "127.0.0.1:50051";
  o.load.threads = 0;
  CLI::App* command =
      app->add_subcommand("load", "Time a server under many clients, beside what decoding takes here");
  const char* frame = "Frames";
  command->add_option("-i,--input", o.load.images, "Preprocessed frames; each is measured by itself")
      ->required()
      ->group(frame);
  command->add_option("-p,--psf", o.load.psf, "Their PSF; each job gets a copy of its own")
      ->required()
      ->group(frame);
  command
      ->add_option("-w,--wavelength", o.wavelength,
                   "wmin,wmax,dw in Angstrom; default: the PSF's range at 0.8")
      ->group(frame);
  command->add_option("-n,--nspec", o.load.fibres, "Fibres of each frame; default: all")
      ->check(CLI::Range(1, kMaxFibres))
      ->group(frame);

  const char* server = "Server";
  command->add_option("--server", o.load.server, "host:port or unix:/path")
      ->capture_default_str()
      ->group(server);
  command->add_option("--by", o.ways, "How it gets the files: path, upload or both")
      ->delimiter(',')
      ->capture_default_str()
      ->check(CLI::IsMember({"path", "upload"}))
      ->group(server);
  command
      ->add_option("--folder", o.load.folder,
                   "Where the copies of the PSF are made, which the server must be allowed to read by path; "
                   "default: the folder for temporary files")
      ->group(server);

  const char* group = "Measurement";
  command->add_option("--clients", o.load.clients, "Clients at once, one row of the table for each number")
      ->delimiter(',')
      ->capture_default_str()
      ->check(CLI::Range(1, kMostClients))
      ->group(group);
  command->add_option("--frames", o.load.frames, "Frames of each row; default: 4 for each client, at least 8")
      ->check(CLI::Range(1, 100000))
      ->group(group);
  command
      ->add_flag("--ceiling,!--no-ceiling", o.load.ceiling,
                 "Measure first what decoding the frames takes here, without a server (default)")
      ->group(group);
  command->add_option("--threads", o.load.threads, "That decode at once then; 0: one per processor")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024))
      ->group(group);
  command
      ->add_option("--ceiling-seconds", o.load.ceiling_seconds,
                   "Each figure of decoding takes at least so long")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e5))
      ->group(group);

  command->add_option("--json", o.json, "Write all samples to this file")->group("Output");
  command->add_flag("-q,--quiet", o.quiet, "No progress on stderr")->group("Output");
  command->callback([options, action] { *action = [options] { return RunLoadCommand(*options); }; });
}

}  // namespace spexd::cli
