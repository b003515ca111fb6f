#include "server/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "core/base/cpus.h"
#include "core/base/file_descriptor.h"
#include "core/base/status_macros.h"
#include "core/base/version.h"
#include "nlohmann/json.hpp"
#include "server/grpc_probe.h"

namespace spexd {
namespace {

using std::chrono::system_clock;

// Threads for calls that are not jobs, and for jobs that are about to be refused.
constexpr int kSpareThreads = 256;
constexpr std::chrono::milliseconds kProbePatience{2000};
constexpr int kKeepaliveMs = 60000;
constexpr int kKeepaliveTimeoutMs = 20000;
constexpr int kLeastPingIntervalMs = 10000;
// Time for last answers, and for streams that never end by themselves (health watches).
constexpr std::chrono::seconds kShutdownTime(1);

std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

// An error if a server listens on this Unix socket: gRPC would take its place away, and remove it at the end.
absl::Status CheckSocketIsFree(const std::string& listen) {
  sockaddr_un address = {};
  const std::string path(absl::StripPrefix(listen, "unix:"));
  if (path.size() == listen.size()) return absl::OkStatus();
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--listen: a socket's path of %d bytes, the limit is %d", path.size(), sizeof(address.sun_path) - 1));
  }
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, path.size());
  const FileDescriptor probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (probe.get() < 0) return absl::UnavailableError(absl::StrFormat("--listen: %s", std::strerror(errno)));
  const bool answers =
      connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 ||
      errno == EAGAIN;
  if (!answers) return absl::OkStatus();
  return absl::UnavailableError(absl::StrFormat("--listen: another server listens on %s", listen));
}

}  // namespace

Server::Server(const ServerOptions& options, std::unique_ptr<Engine> engine, PathPolicy paths,
               std::unique_ptr<LogSink> log, std::string engine_note)
    : options_(options),
      engine_(std::move(engine)),
      engine_note_(std::move(engine_note)),
      paths_(std::move(paths)),
      log_(options.log_level, std::move(log)),
      health_(engine_.get(), &log_),
      queue_({options.max_running_jobs, options.max_queued_jobs}),
      cache_(engine_.get(), options.psf_cache_bytes),
      uploads_("uploads in flight", options.max_upload_total_bytes),
      results_("results to be sent", options.max_result_bytes),
      readers_(options.engine.threads > 0 ? options.engine.threads : AvailableCpus()),
      watchdog_(std::chrono::duration<double>(options.stall_seconds)),
      parts_{&options_,     engine_.get(),
             &engine_note_, &health_,
             &paths_,       &cache_,
             &queue_,       &uploads_,
             &results_,     &readers_,
             &watchdog_,    &metrics_,
             &log_,         std::chrono::steady_clock::now()},
      extraction_(parts_, options.max_running_jobs + options.max_queued_jobs + kSpareThreads),
      registry_(parts_) {}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options,
                                                      std::unique_ptr<Engine> engine,
                                                      std::unique_ptr<LogSink> log, std::string engine_note) {
  SPEXD_RETURN_IF_ERROR(CheckOptions(options));
  SPEXD_ASSIGN_OR_RETURN(PathPolicy paths, PathPolicy::Make(options.allow_roots));
  const ServerOptions effective = WithDefaultsFor(*engine, options);
  std::unique_ptr<Server> server(
      new Server(effective, std::move(engine), std::move(paths), std::move(log), std::move(engine_note)));
  SPEXD_RETURN_IF_ERROR(server->StartGrpc());
  if (options.http != "none") SPEXD_RETURN_IF_ERROR(server->StartHttp());
  if (!options.port_file.empty()) SPEXD_RETURN_IF_ERROR(server->WritePortFile());
  server->LogStart();
  server->CheckHealth().IgnoreError();  // called only to log the state
  return server;
}

void Server::LogStart() {
  const EngineInfo info = engine_->Info();
  log_.Info("started", {{"version", kVersion},
                        {"grpc", grpc_address_},
                        {"http_port", http_port()},
                        {"engine", info.kind},
                        {"device", info.device},
                        {"threads", info.threads},
                        {"max_running_jobs", options_.max_running_jobs},
                        {"allowed_roots", paths_.roots()}});
  if (!engine_note_.empty()) {
    log_.Warning("engine_fallback", {{"engine", info.kind}, {"cuda", engine_note_}});
  }
}

Server::~Server() {
  if (grpc_ != nullptr) grpc_->Shutdown(system_clock::now());
}

absl::Status Server::StartGrpc() {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  // gRPC inflates a message before it knows how large it becomes. Pixels that are worth compressing come as
  // files that are.
  for (const grpc_compression_algorithm algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP})
    builder.SetCompressionAlgorithmSupportStatus(algorithm, false);
  SPEXD_RETURN_IF_ERROR(CheckSocketIsFree(options_.listen));
  builder.AddListeningPort(options_.listen, grpc::InsecureServerCredentials(), &grpc_port_);
  builder.RegisterService(&extraction_);
  builder.RegisterService(&registry_);
  grpc::ResourceQuota quota("spexd");
  quota.SetMaxThreads(options_.max_running_jobs + options_.max_queued_jobs + kSpareThreads);
  builder.SetResourceQuota(quota);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a second server on this port is a mistake
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kLeastPingIntervalMs);
  grpc_ = builder.BuildAndStart();
  const bool local_socket = absl::StartsWith(options_.listen, "unix:");
  if (grpc_ == nullptr || grpc_port_ <= 0) {
    return absl::UnavailableError(absl::StrFormat("--listen: cannot listen on %s", options_.listen));
  }
  if (local_socket) {
    grpc_port_ = 0;
    grpc_address_ = options_.listen;
  } else {
    grpc_address_ = absl::StrCat(options_.listen.substr(0, options_.listen.rfind(':')), ":", grpc_port_);
  }
  health_.StartServing([this](bool serving) { SetServing(serving); });
  return absl::OkStatus();
}

absl::Status Server::StartHttp() {
  SPEXD_ASSIGN_OR_RETURN(const HostPort where, ParseHostPort("--http", options_.http));
  HttpServer::Handlers handlers;
  handlers.metrics = [this] {
    return metrics_.Text(queue_.stats(), cache_.stats(), *engine_, log_.dropped());
  };
  handlers.why_not_alive = [this] { return std::string(ProbeGrpc(grpc_address_, kProbePatience).message()); };
  handlers.why_not_ready = [this] { return WhyNotReady(); };
  handlers.status = [this] { return StatusPage(); };
  SPEXD_ASSIGN_OR_RETURN(http_, HttpServer::Start(where.host, where.port, std::move(handlers), {}));
  return absl::OkStatus();
}

std::string Server::WhyNotReady() {
  if (queue_.stats().draining) return "draining";
  return std::string(CheckHealth().message());
}

absl::Status Server::WritePortFile() const {
  const nlohmann::ordered_json ports = {{"grpc", grpc_address_},
                                        {"grpc_port", grpc_port_},
                                        {"http_port", http_port()},
                                        {"pid", static_cast<int64_t>(getpid())}};
  const std::string temporary = absl::StrFormat("%s.%d.tmp", options_.port_file, getpid());
  std::ofstream file(temporary, std::ios::trunc);
  file << ports.dump() << "\n";
  file.close();
  if (!file.fail() && std::rename(temporary.c_str(), options_.port_file.c_str()) == 0)
    return absl::OkStatus();
  std::remove(temporary.c_str());
  return absl::UnavailableError(absl::StrFormat("--port-file \"%s\" cannot be written", options_.port_file));
}

void Server::SetServing(bool serving) {
  grpc::HealthCheckServiceInterface* health = grpc_->GetHealthCheckService();
  if (health == nullptr) return;
  health->SetServingStatus("", serving);
  health->SetServingStatus(v1::Extraction::service_full_name(), serving);
  health->SetServingStatus(v1::PsfRegistry::service_full_name(), serving);
}

bool Server::Drain() {
  queue_.StartDraining();
  health_.StopServing();
  const JobQueue::Stats stats = queue_.stats();
  log_.Info("draining", {{"running", stats.running}, {"waiting", stats.waiting}});
  const auto grace = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(options_.grace_seconds));
  const bool clean = queue_.WaitUntilEmpty(std::chrono::steady_clock::now() + grace);
  grpc_->Shutdown(system_clock::now() + (clean ? kShutdownTime : std::chrono::seconds(0)));
  if (clean) {
    log_.Info("stopped");
  } else {
    log_.Warning("stopped_with_jobs", {{"grace_seconds", options_.grace_seconds}});
  }
  return clean;
}

std::string Server::StatusPage() const {
  const v1::Capabilities status = extraction_.Status();
  const char* state = status.draining()              ? "draining"
                      : status.engines(0).runnable() ? "serving"
                                                     : "not serving";
  std::string page = absl::StrFormat(
      "<!doctype html><title>spexd</title><h1>spexd %s</h1><p>%s, up %.0f s, listening on %s</p>"
      "<p>jobs: %d running, %d queued</p><h2>Engine</h2><ul>",
      status.version(), state, status.uptime_seconds(), Escaped(grpc_address_), status.jobs_running(),
      status.jobs_queued());
  for (const v1::EngineStatus& engine : status.engines()) {
    absl::StrAppendFormat(&page, "<li>%s %s: %s", Escaped(engine.kind()),
                          engine.runnable() ? "runs" : "does not run", Escaped(engine.detail()));
    for (const v1::DeviceInfo& device : engine.devices()) {
      absl::StrAppendFormat(
          &page, "<li>device %d, %s: %s, %d jobs, %d bytes of PSFs and %d of workspaces in %d",
          device.index(), Escaped(device.name()),
          device.healthy() ? "healthy" : "failed: " + Escaped(device.detail()), device.running_jobs(),
          device.resident_bytes(), device.workspace_bytes(), device.memory_bytes());
    }
  }
  page += "</ul><h2>PSFs</h2><ul>";
  for (const v1::PsfInfo& psf : status.psfs()) {
    absl::StrAppendFormat(&page, "<li>%s: %s, %d fibres, %d bytes, %d grids%s",
                          Escaped(psf.hash().substr(0, 12)), Escaped(psf.name()), psf.fibres(), psf.bytes(),
                          psf.prepared_grids(), psf.pinned() ? ", pinned" : "");
  }
  return page +
         "</ul><p><a href=\"/metrics\">metrics</a> <a href=\"/livez\">livez</a> <a "
         "href=\"/readyz\">readyz</a></p>\n";
}

}  // namespace spexd
