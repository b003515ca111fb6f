// spex status and spex psf: the state of servers and the files that they keep warm.
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/every_server.h"
#include "client/cli/flags/server_flags.h"
#include "client/cli/terminal/message_json.h"
#include "client/cli/terminal/real_range.h"
#include "client/connection/grpc_connection.h"
#include "client/job.h"
#include "client/psf_list.h"
#include "client/upload/psf_upload.h"
#include "core/base/status_macros.h"

namespace spexd::cli {
namespace {

constexpr size_t kHashDigits = 64, kMinHashDigits = 8;

struct NamedKind {
  v1::WarmKind kind;
  const char* name;     // of --kind
  const char* several;  // plural, in lists
};
constexpr NamedKind kKinds[] = {{v1::WARM_KIND_PSF, "psf", "PSFs"},
                                {v1::WARM_KIND_FIBERFLAT, "fiberflat", "fiberflats"},
                                {v1::WARM_KIND_TEMPLATES, "templates", "libraries of templates"},
                                {v1::WARM_KIND_TRACE_REFERENCE, "trace_reference", "trace references"}};

// Returns the kind of a name; a PSF for "".
v1::WarmKind KindOf(const std::string& name) {
  for (const NamedKind& named : kKinds) {
    if (named.name == name) return named.kind;
  }
  return v1::WARM_KIND_PSF;
}

struct ServerCommandOptions {
  client::ServerAddress server{.address = "127.0.0.1:50051"};
  double timeout = 10;
  bool json = false;
  std::string psf;
  client::LoadOptions load;
  std::string kind;  // "": all for list, a PSF for load
};

using Call = std::function<absl::StatusOr<std::string>(client::Connection&, const ServerCommandOptions&,
                                                       client::Connection::Deadline)>;

std::string Size(uint64_t bytes) {
  if (bytes >= (uint64_t{1} << 30))
    return absl::StrFormat("%.1f GiB", static_cast<double>(bytes) / (1 << 30));
  return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
}

std::string Contents(const v1::PsfInfo& item) {
  if (item.kind() == v1::WARM_KIND_FIBERFLAT)
    return absl::StrFormat("fiberflat, %d fibres x %d bins", item.rows(), item.columns());
  if (item.kind() == v1::WARM_KIND_TEMPLATES)
    return absl::StrFormat("%d templates of %d samples", item.rows(), item.columns());
  if (item.kind() == v1::WARM_KIND_TRACE_REFERENCE)
    return absl::StrFormat("trace reference of %d samples", item.rows());
  return absl::StrFormat("%d fibres, CCD %d x %d, %g to %g Angstrom, %d grids", item.fibres(), item.rows(),
                         item.columns(), item.wave_min(), item.wave_max(), item.prepared_grids());
}

std::string WarmLine(const v1::PsfInfo& item) {
  return absl::StrFormat("  %s%s  %s, %s%s%s%s  %s\n", client::kPsfHashPrefix, item.hash(), Contents(item),
                         Size(item.bytes()), item.pinned() ? ", pinned" : "", item.in_use() ? ", in use" : "",
                         item.owner().empty() ? "" : ", of " + item.owner(), item.name());
}

// Returns "2 PSFs, 1 fiberflats": PSFs always, other kinds if there are any.
std::string CountText(const v1::ListPsfsResponse& items) {
  std::string text;
  for (const NamedKind& named : kKinds) {
    const auto count = std::count_if(items.psfs().begin(), items.psfs().end(),
                                     [&named](const v1::PsfInfo& item) { return item.kind() == named.kind; });
    if (count == 0 && named.kind != v1::WARM_KIND_PSF) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", count, " ", named.several);
  }
  return text;
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
  if (status.has_detached()) {
    const v1::DetachedStatus& detached = status.detached();
    absl::StrAppendFormat(&text,
                          "kept   %d detached jobs (at most %d), %d not ended, %s on disk (at most %s)\n",
                          detached.jobs(), detached.max_jobs(), detached.unfinished_jobs(),
                          Size(detached.disk_bytes()), Size(detached.max_disk_bytes()));
  }
  absl::StrAppendFormat(&text, "upload at most %s a file\n", Size(status.limits().max_upload_bytes()));
  absl::StrAppendFormat(&text, "roots  %s\n",
                        status.allowed_roots().empty() ? std::string("none: inputs must be uploaded")
                                                       : absl::StrJoin(status.allowed_roots(), ", "));
  const uint64_t listed = static_cast<uint64_t>(status.psfs_size()), psfs = status.psfs_total();
  absl::StrAppendFormat(&text, "PSFs   %d warm, budget %s\n", psfs, Size(status.limits().psf_cache_bytes()));
  for (const v1::PsfInfo& psf : status.psfs()) text += WarmLine(psf);
  if (psfs > listed) absl::StrAppendFormat(&text, "  and %d more: spex psf list\n", psfs - listed);
  return text;
}

absl::StatusOr<std::string> Status(client::Connection& connection, const ServerCommandOptions& options,
                                   client::Connection::Deadline deadline) {
  SPEXD_ASSIGN_OR_RETURN(const v1::Capabilities status, connection.GetCapabilities(deadline));
  return options.json ? ToJson(connection.address(), status) : StatusText(connection.address(), status);
}

client::LoadOptions LoadOptionsOf(const ServerCommandOptions& options) {
  client::LoadOptions load = options.load;
  load.kind = KindOf(options.kind);
  return load;
}

absl::StatusOr<std::string> LoadPsf(client::Connection& connection, const ServerCommandOptions& options,
                                    client::Connection::Deadline deadline) {
  SPEXD_ASSIGN_OR_RETURN(const v1::PsfInfo psf,
                         client::LoadPsf(&connection, options.psf, LoadOptionsOf(options), deadline));
  return options.json ? ToJson(connection.address(), psf) : WarmLine(psf);
}

absl::StatusOr<std::string> ListPsfs(client::Connection& connection, const ServerCommandOptions& options,
                                     client::Connection::Deadline deadline) {
  SPEXD_ASSIGN_OR_RETURN(const v1::ListPsfsResponse response,
                         options.kind.empty()
                             ? client::ListAllWarm(&connection, deadline)
                             : client::ListWarm(&connection, KindOf(options.kind), deadline));
  if (options.json) return ToJson(connection.address(), response);
  std::string text = absl::StrFormat("%s, %s of %s\n", CountText(response), Size(response.bytes()),
                                     Size(response.budget_bytes()));
  for (const v1::PsfInfo& item : response.psfs()) text += WarmLine(item);
  return text;
}

// Returns the warm file whose hash begins with these digits, as a status page shows them.
absl::StatusOr<v1::PsfInfo> Find(client::Connection& connection, const std::string& digits,
                                 client::Connection::Deadline deadline) {
  if (digits.size() < kMinHashDigits) {
    return absl::InvalidArgumentError(absl::StrFormat("hash %s has %d digits, must have at least %d", digits,
                                                      digits.size(), kMinHashDigits));
  }
  SPEXD_ASSIGN_OR_RETURN(const v1::ListPsfsResponse items, client::ListAllWarm(&connection, deadline));
  std::vector<v1::PsfInfo> found;
  std::vector<std::string> hashes;
  for (const v1::PsfInfo& item : items.psfs()) {
    if (!absl::StartsWith(item.hash(), digits)) continue;
    found.push_back(item);
    hashes.push_back(item.hash());
  }
  if (found.empty())
    return absl::NotFoundError(absl::StrFormat("nothing is loaded whose hash begins with %s", digits));
  if (found.size() > 1) {
    return absl::InvalidArgumentError(absl::StrFormat("the hashes of %d begin with %s: %s", found.size(),
                                                      digits, absl::StrJoin(hashes, ", ")));
  }
  return found[0];
}

// Unloads a file by its full hash. It tries all kinds, because a caller who may not list files does not know
// the kind.
absl::Status UnloadWhole(client::Connection& connection, const std::string& hash,
                         client::Connection::Deadline deadline) {
  absl::Status status;
  for (const v1::WarmKind kind : client::kWarmKinds) {
    status = connection.UnloadPsf(hash, kind, deadline);
    if (!absl::IsNotFound(status)) break;
  }
  return status;
}

absl::StatusOr<std::string> UnloadPsf(client::Connection& connection, const ServerCommandOptions& options,
                                      client::Connection::Deadline deadline) {
  std::string hash(absl::StripPrefix(options.psf, client::kPsfHashPrefix));
  if (hash.size() >= kHashDigits) {
    SPEXD_RETURN_IF_ERROR(UnloadWhole(connection, hash, deadline));
  } else {
    SPEXD_ASSIGN_OR_RETURN(const v1::PsfInfo item, Find(connection, hash, deadline));
    hash = item.hash();
    SPEXD_RETURN_IF_ERROR(connection.UnloadPsf(hash, item.kind(), deadline));
  }
  return absl::StrFormat("Unloaded %s\n", hash);
}

int Run(const ServerCommandOptions& options, const Call& call) {
  const auto wait = std::chrono::milliseconds(static_cast<int64_t>(1000 * options.timeout));
  return AskEveryServer(options.server, options.json, [&](client::Connection* connection) {
    return call(*connection, options, client::Clock::now() + wait);
  });
}

CLI::App* AddCommand(CLI::App* app, const char* name, const char* help,
                     const std::shared_ptr<ServerCommandOptions>& options, Call call, Action* action) {
  CLI::App* command = app->add_subcommand(name, help);
  AddServerFlags(command,
                 "Servers, separated by commas: host:port, unix:/path, or dns:///name:port for all addresses "
                 "of a name. Each address is asked",
                 "Server", &options->server);
  command->add_option("--timeout", options->timeout, "Time to wait for an answer")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(RealRange(0.001, 1e7));
  command->callback([options, action, call = std::move(call)] {
    *action = [options, call] { return Run(*options, call); };
  });
  return command;
}

}  // namespace

void AddStatus(CLI::App* app, Action* action) {
  auto options = std::make_shared<ServerCommandOptions>();
  AddCommand(app, "status", "Show what servers are and do", options, Status, action)
      ->add_flag("--json", options->json, "Print JSON: an array with an object for each server");
}

void AddPsf(CLI::App* app, Action* action) {
  CLI::App* psf = app->add_subcommand(
      "psf",
      "Load, list and unload the PSFs, fiberflats, templates and trace references that servers keep warm");
  psf->require_subcommand(1);
  auto options = std::make_shared<ServerCommandOptions>();
  const auto add_kind = [&options](CLI::App* command, const char* help) {
    command->add_option("--kind", options->kind, help)
        ->check(CLI::IsMember({"psf", "fiberflat", "templates", "trace_reference"}));
  };
  CLI::App* load = AddCommand(psf, "load", "Load a file before jobs use it", options, LoadPsf, action);
  load->add_option("psf", options->psf, "File to load: a PSF, or what --kind says")
      ->type_name("FILE")
      ->required();
  add_kind(load, "Kind of the file. Default: psf");
  load->add_flag("--upload", options->load.upload, "Send the file's bytes instead of its path");
  load->add_flag("--pin", options->load.pin, "Keep it in memory until it is unloaded");
  load->add_flag("--json", options->json, "Print JSON: an array with an object for each server");
  CLI::App* list = AddCommand(psf, "list", "List what is loaded", options, ListPsfs, action);
  add_kind(list, "Kind to list. Default: all");
  list->add_flag("--json", options->json, "Print JSON: an array with an object for each server");
  AddCommand(psf, "unload", "Unload a file", options, UnloadPsf, action)
      ->add_option("hash", options->psf, "SHA-256 of the file, or at least its first 8 digits")
      ->type_name("HASH")
      ->required();
}

}  // namespace spexd::cli
