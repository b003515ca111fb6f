// spex accumulator: sums over frames that a server keeps.
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/every_server.h"
#include "client/cli/flags/server_flags.h"
#include "client/cli/terminal/exit_code.h"
#include "client/cli/terminal/message_json.h"
#include "client/cli/terminal/terminal_text.h"
#include "client/connection/grpc_connection.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "core/fits/hdu/output_file.h"

namespace spexd::cli {
namespace {

struct AccumulatorCommandOptions {
  client::ServerAddress server{.address = "127.0.0.1:50051"};
  double timeout = 60;
  std::string name, owner, kind = "pca", output;
  std::optional<double> forget, clip;
  bool with_sky = false, json = false, quiet = false;
  uint32_t components = 0;
};

client::Connection::Deadline DeadlineOf(const AccumulatorCommandOptions& options) {
  return client::Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(1000 * options.timeout));
}

std::string Line(const v1::AccumulatorRecord& record) {
  const bool pca = record.kind() == v1::ACCUMULATOR_KIND_PCA;
  std::string text = absl::StrFormat("  %-24s %-5s %d frames, %g %s", record.name(), pca ? "pca" : "coadd",
                                     record.frames(), record.rows(), pca ? "sky spectra" : "targets");
  if (record.bins() > 0) {
    const double last = record.first_wavelength() + record.step() * (record.bins() - 1.0);
    absl::StrAppendFormat(&text, " of %g to %g Angstrom in %d bins", record.first_wavelength(), last,
                          record.bins());
  }
  if (pca && record.forget() < 1) absl::StrAppendFormat(&text, ", forget %g", record.forget());
  if (record.with_sky()) absl::StrAppend(&text, ", with sky");
  absl::StrAppendFormat(&text, ", %.1f MiB, of %s\n", static_cast<double>(record.bytes()) / (1 << 20),
                        record.owner());
  return text;
}

absl::Status Create(const AccumulatorCommandOptions& options) {
  v1::CreateAccumulatorRequest request;
  request.set_name(options.name);
  request.set_kind(options.kind == "pca" ? v1::ACCUMULATOR_KIND_PCA : v1::ACCUMULATOR_KIND_COADD);
  if (options.forget.has_value()) request.set_forget(*options.forget);
  if (options.clip.has_value()) request.set_clip(*options.clip);
  request.set_with_sky(options.with_sky);
  SPEXD_ASSIGN_OR_RETURN(const auto connection, client::Connect(options.server));
  SPEXD_ASSIGN_OR_RETURN(const v1::AccumulatorRecord record,
                         connection->CreateAccumulator(request, DeadlineOf(options)));
  std::fputs(ForTerminal(Line(record)).c_str(), stdout);
  return absl::OkStatus();
}

absl::StatusOr<std::string> List(client::Connection* connection, const AccumulatorCommandOptions& options) {
  v1::ListAccumulatorsRequest request;
  request.set_owner(options.owner);
  SPEXD_ASSIGN_OR_RETURN(const v1::ListAccumulatorsResponse list,
                         connection->ListAccumulators(request, DeadlineOf(options)));
  if (options.json) return ToJson(connection->address(), list);
  std::string text = absl::StrFormat("%d accumulators, %.1f MiB\n", list.accumulators_size(),
                                     static_cast<double>(list.bytes()) / (1 << 20));
  for (const v1::AccumulatorRecord& record : list.accumulators()) text += Line(record);
  return text;
}

absl::Status Read(const AccumulatorCommandOptions& options) {
  SPEXD_RETURN_IF_ERROR(CheckWritable(options.output));
  v1::ReadAccumulatorRequest request;
  request.set_name(options.name);
  request.set_owner(options.owner);
  request.set_components(options.components);
  SPEXD_ASSIGN_OR_RETURN(const auto connection, client::Connect(options.server));
  SPEXD_ASSIGN_OR_RETURN(const std::string file, connection->ReadAccumulator(request, DeadlineOf(options)));
  SPEXD_RETURN_IF_ERROR(WriteFileAtomically(options.output, file));
  if (!options.quiet) std::printf("Wrote %s\n", options.output.c_str());
  return absl::OkStatus();
}

absl::Status Drop(const AccumulatorCommandOptions& options) {
  v1::DropAccumulatorRequest request;
  request.set_name(options.name);
  request.set_owner(options.owner);
  SPEXD_ASSIGN_OR_RETURN(const auto connection, client::Connect(options.server));
  SPEXD_RETURN_IF_ERROR(connection->DropAccumulator(request, DeadlineOf(options)));
  std::printf("Dropped %s\n", options.name.c_str());
  return absl::OkStatus();
}

CLI::App* AddCommand(CLI::App* app, const char* name, const char* help,
                     const std::shared_ptr<AccumulatorCommandOptions>& options, std::function<int()> run,
                     Action* action) {
  CLI::App* command = app->add_subcommand(name, help);
  AddServerFlags(command, "host:port, unix:/path or dns:///name:port", "Server", &options->server);
  command->add_option("--timeout", options->timeout, "Seconds to wait for the answer")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 1e7));
  command->callback([action, run = std::move(run)] { *action = run; });
  return command;
}

std::function<int()> RunOnce(const std::shared_ptr<AccumulatorCommandOptions>& options,
                             absl::Status (*run)(const AccumulatorCommandOptions&)) {
  return [options, run] {
    const absl::Status status = CatchExceptions([&] { return run(*options); });
    return status.ok() ? static_cast<int>(kOk) : Fail(status);
  };
}

}  // namespace

void AddAccumulator(CLI::App* app, Action* action) {
  CLI::App* group = app->add_subcommand(
      "accumulator", "Components of sky residuals, and coadds, that a server makes of many jobs' frames");
  group->require_subcommand(1);
  auto options = std::make_shared<AccumulatorCommandOptions>();
  AccumulatorCommandOptions& o = *options;
  const auto add_name = [&o](CLI::App* command) {
    command->add_option("name", o.name, "The accumulator's name")->required();
  };
  const auto add_owner = [&o](CLI::App* command) {
    command->add_option("--owner", o.owner, "Of this identity; for administrators");
  };
  CLI::App* create =
      AddCommand(group, "create", "Make an empty one", options, RunOnce(options, Create), action);
  add_name(create);
  create->add_option("--kind", o.kind, "pca: of sky residuals; coadd: of spectra, target by target")
      ->capture_default_str()
      ->check(CLI::IsMember({"pca", "coadd"}));
  create->add_option("--forget", o.forget, "Of pca: factor of what came before with each frame; default: 1");
  create->add_option("--clip", o.clip, "Of pca: residuals beyond so many sigma count as so many; default: 5");
  create->add_flag("--with-sky", o.with_sky, "Of coadd: add spectra as they were extracted");
  CLI::App* list = AddCommand(
      group, "list", "Those of a server", options,
      [options] {
        return AskEveryServer(options->server, options->json,
                              [&](client::Connection* server) { return List(server, *options); });
      },
      action);
  add_owner(list);
  list->add_flag("--json", o.json, "As JSON: an array with an object of each server");
  CLI::App* read = AddCommand(group, "read", "Write what was added so far as spex pca and spex coadd do",
                              options, RunOnce(options, Read), action);
  add_name(read);
  read->add_option("-o,--output", o.output, "File to write")->required();
  read->add_option("--components", o.components,
                   "Of pca: how many, up to as many as there are wavelengths; 0: 10")
      ->capture_default_str()
      ->check(CLI::Range(0, 1'000'000));
  add_owner(read);
  read->add_flag("-q,--quiet", o.quiet, "Print errors only");
  CLI::App* drop = AddCommand(group, "drop", "Remove one with all that was added", options,
                              RunOnce(options, Drop), action);
  add_name(drop);
  add_owner(drop);
}

}  // namespace spexd::cli
