// spex status and spex psf: looking at a server and steering it.
#include <google/protobuf/util/json_util.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/cli/commands.h"
#include "client/cli/exit_code.h"
#include "client/grpc_connection.h"
#include "client/job.h"
#include "client/psf_upload.h"
#include "core/base/status_macros.h"

namespace spexd::cli {
namespace {

struct Options {
  std::string server = "127.0.0.1:50051";
  double timeout = 10;
  bool json = false;
  std::string psf;
  bool upload = false, pin = false;
};

using Call = std::function<absl::StatusOr<std::string>(client::Connection&, const Options&,
                                                       client::Connection::Deadline)>;

absl::StatusOr<std::string> ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions style;
  style.add_whitespace = true;
  style.always_print_primitive_fields = true;
  style.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, style);
  if (!status.ok()) return absl::InternalError(status.ToString());
  return text;
}

std::string Size(uint64_t bytes) {
  if (bytes >= (uint64_t{1} << 30))
    return absl::StrFormat("%.1f GiB", static_cast<double>(bytes) / (1 << 30));
  return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
}

std::string PsfLine(const v1::PsfInfo& psf) {
  return absl::StrFormat("  %s%s  %d fibres, CCD %d x %d, %g to %g Angstrom, %d grids, %s%s%s  %s\n",
                         client::kPsfHashPrefix, psf.hash(), psf.fibres(), psf.rows(), psf.columns(),
                         psf.wave_min(), psf.wave_max(), psf.prepared_grids(), Size(psf.bytes()),
                         psf.pinned() ? ", pinned" : "", psf.in_use() ? ", in use" : "", psf.name());
}

std::string DeviceLine(const v1::DeviceInfo& device) {
  return absl::StrFormat("  device %d  %s, %s: %s for PSFs, %s for %d jobs%s\n", device.index(),
                         device.name(), Size(device.memory_bytes()), Size(device.resident_bytes()),
                         Size(device.workspace_bytes()), device.running_jobs(),
                         device.healthy() ? "" : ", FAILED: " + device.detail());
}

std::string StatusText(const std::string& address, const v1::Capabilities& status) {
  std::string text = absl::StrFormat("spexd %s at %s, up %.0f s%s\n", status.version(), address,
                                     status.uptime_seconds(), status.draining() ? ", DRAINING" : "");
  for (const v1::EngineStatus& engine : status.engines()) {
    absl::StrAppendFormat(&text, "engine %-5s %s: %s\n", engine.kind(),
                          engine.runnable() ? "ready" : "not available", engine.detail());
    for (const v1::DeviceInfo& device : engine.devices()) text += DeviceLine(device);
  }
  absl::StrAppendFormat(&text, "jobs   %d running (at most %d), %d queued (at most %d)\n",
                        status.jobs_running(), status.limits().max_running_jobs(), status.jobs_queued(),
                        status.limits().max_queued_jobs());
  absl::StrAppendFormat(&text, "upload at most %s a file\n", Size(status.limits().max_upload_bytes()));
  absl::StrAppendFormat(&text, "roots  %s\n",
                        status.allowed_roots().empty() ? std::string("none: inputs must be uploaded")
                                                       : absl::StrJoin(status.allowed_roots(), ", "));
  absl::StrAppendFormat(&text, "PSFs   %d warm, budget %s\n", status.psfs_size(),
                        Size(status.limits().psf_cache_bytes()));
  for (const v1::PsfInfo& psf : status.psfs()) text += PsfLine(psf);
  return text;
}

absl::StatusOr<std::string> Status(client::Connection& connection, const Options& options,
                                   client::Connection::Deadline deadline) {
  SPEXD_ASSIGN_OR_RETURN(const v1::Capabilities status, connection.GetCapabilities(deadline));
  return options.json ? ToJson(status) : StatusText(options.server, status);
}

absl::StatusOr<std::string> Load(client::Connection& connection, const Options& options,
                                 client::Connection::Deadline deadline) {
  SPEXD_ASSIGN_OR_RETURN(const v1::PsfInfo psf,
                         client::LoadPsf(&connection, options.psf, options.upload, options.pin, deadline));
  return options.json ? ToJson(psf) : PsfLine(psf);
}

absl::StatusOr<std::string> List(client::Connection& connection, const Options& options,
                                 client::Connection::Deadline deadline) {
  SPEXD_ASSIGN_OR_RETURN(const v1::ListPsfsResponse response, connection.ListPsfs(deadline));
  if (options.json) return ToJson(response);
  std::string text = absl::StrFormat("%d PSFs, %s of %s\n", response.psfs_size(), Size(response.bytes()),
                                     Size(response.budget_bytes()));
  for (const v1::PsfInfo& psf : response.psfs()) text += PsfLine(psf);
  return text;
}

absl::StatusOr<std::string> Unload(client::Connection& connection, const Options& options,
                                   client::Connection::Deadline deadline) {
  const std::string hash(absl::StripPrefix(options.psf, client::kPsfHashPrefix));
  SPEXD_RETURN_IF_ERROR(connection.UnloadPsf(hash, deadline));
  return absl::StrFormat("Unloaded %s\n", hash);
}

int Run(const Options& options, const Call& call) {
  const auto connection = client::MakeGrpcConnection(options.server);
  const auto wait = std::chrono::milliseconds(static_cast<int64_t>(1000 * options.timeout));
  const absl::StatusOr<std::string> text = call(*connection, options, client::Clock::now() + wait);
  if (!text.ok()) return Fail(text.status());
  std::fputs(text->c_str(), stdout);
  return kOk;
}

CLI::App* AddCommand(CLI::App* app, const char* name, const char* help,
                     const std::shared_ptr<Options>& options, Call call, Action* action) {
  CLI::App* command = app->add_subcommand(name, help);
  command->add_option("--server", options->server, "host:port or unix:/path")->capture_default_str();
  command->add_option("--timeout", options->timeout, "Seconds to wait for an answer")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 1e7));
  command->callback([options, action, call = std::move(call)] {
    *action = [options, call] { return Run(*options, call); };
  });
  return command;
}

}  // namespace

void AddStatus(CLI::App* app, Action* action) {
  auto options = std::make_shared<Options>();
  AddCommand(app, "status", "What a server is and does", options, Status, action)
      ->add_flag("--json", options->json, "As JSON");
}

void AddPsf(CLI::App* app, Action* action) {
  CLI::App* psf = app->add_subcommand("psf", "PSFs that a server keeps ready");
  psf->require_subcommand(1);
  auto options = std::make_shared<Options>();
  CLI::App* load = AddCommand(psf, "load", "Load one ahead of its jobs", options, Load, action);
  load->add_option("psf", options->psf, "PSF file")->required();
  load->add_flag("--upload", options->upload, "Send the file's bytes instead of its path");
  load->add_flag("--pin", options->pin, "Keep it until it is unloaded");
  load->add_flag("--json", options->json, "As JSON");
  AddCommand(psf, "list", "All that are loaded", options, List, action)
      ->add_flag("--json", options->json, "As JSON");
  AddCommand(psf, "unload", "Forget one", options, Unload, action)
      ->add_option("hash", options->psf, "Its hash")
      ->required();
}

}  // namespace spexd::cli
