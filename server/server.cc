#include "server/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "core/base/build_version.h"
#include "core/base/file_descriptor.h"
#include "core/base/machine/cpus.h"
#include "core/base/memory/heap.h"
#include "core/base/status_macros.h"
#include "nlohmann/json.hpp"
#include "server/config/configuration.h"
#include "server/config/descriptor_budget.h"
#include "server/front/grpc_probe.h"
#include "server/status/status_page.h"

namespace spexd {
namespace {

using std::chrono::system_clock;

// The number of tasks for calls that are not jobs and for jobs that will be refused.
constexpr int kSpareTasks = 256;
// The number of tasks of a running job: one for Extract, two for a detached job.
constexpr int kTasksOfRuns = 2;
// The number of streams of one connection for calls without --max-streams: health watches, short calls.
constexpr int kSpareStreams = 64;
constexpr std::chrono::milliseconds kProbePatience{2000};
constexpr int kMinPingIntervalMs = 10000;  // the client library pings every 20 s
constexpr int kHandshakeMs = 10000;
constexpr int kIdleConnectionMs = 300000;
// The time for last answers and for streams that never end by themselves (health watches).
constexpr std::chrono::seconds kShutdownTime(1);

JobQueue::Limits QueueLimits(const ServerOptions& options) {
  return {.running = options.max_running_jobs,
          .queued = options.max_queued_jobs,
          .bytes = options.max_queued_bytes,
          .seconds = options.max_queued_seconds,
          .results = options.max_result_bytes};
}

// Returns the number of devices that take jobs; 1 for an engine without devices.
int DevicesAtWork(const Engine& engine) {
  const std::vector<DeviceStatus> devices = engine.Devices();
  const auto healthy = std::count_if(devices.begin(), devices.end(),
                                     [](const DeviceStatus& device) { return device.health.ok(); });
  return std::max(1, static_cast<int>(healthy));
}

// Returns the most bytes that one upload may reserve, if the server knows identities; nullopt: it does not.
std::optional<int64_t> LargestUpload(const ServerOptions& options) {
  if (options.identities.empty()) return std::nullopt;
  return options.max_upload_bytes;
}

int Processors(const ServerOptions& options) {
  return std::max(1, options.engine.threads > 0 ? options.engine.threads : AvailableCpus());
}

int Milliseconds(double seconds) { return static_cast<int>(1000 * seconds); }

absl::StatusOr<ListeningSockets> ListenAt(const std::string& address) {
  const absl::string_view path = absl::StripPrefix(address, "unix:");
  if (path.size() < address.size()) return ListeningSockets::OnPath(std::string(path));
  SPEXD_ASSIGN_OR_RETURN(const HostPort where, ParseHostPort("--listen", address));
  return ListeningSockets::OnPort(where.host, where.port);
}

}  // namespace

Server::Server(const ServerOptions& options, Machines machines, Files files, std::unique_ptr<LogSink> log)
    : asked_(options),
      options_(WithDefaultsFor(*machines.engine, options)),
      engine_(std::move(machines.engine)),
      engine_note_(std::move(machines.engine_note)),
      analyser_(std::move(machines.analyser)),
      paths_(std::move(files.paths)),
      log_(options.log_level, std::move(log), Logger::kMaxQueuedBytes, options.log_format),
      grpc_log_(&log_),
      health_(engine_.get(), &log_),
      monitor_(engine_->Devices().empty() ? nullptr : DeviceMonitor::Load()),
      access_(std::move(files.identities), &log_, &metrics_),
      queue_(QueueLimits(options_)),
      cache_(engine_.get(), options_.psf_cache_bytes),
      uploads_("uploads in flight (--max-upload-total-bytes)", options_.max_upload_total_bytes,
               LargestUpload(options_)),
      results_("results to be sent", options_.max_result_bytes),
      files_("files being read", options_.max_input_bytes),
      decoded_("decoded inputs", options_.max_input_bytes),
      products_("frames and their products", options_.max_product_bytes),
      readers_(Processors(options_)),
      product_threads_("threads that make products", Processors(options_)),
      streams_({options_.max_streams, options_.max_streams_per_peer, options_.max_streams_per_connection}),
      tasks_(kTasksOfRuns * options_.max_running_jobs + options_.max_queued_jobs + kSpareTasks),
      parts_{.options = &options_,
             .engine = engine_.get(),
             .engine_note = &engine_note_,
             .analyser = analyser_.analyser.get(),
             .health = &health_,
             .access = &access_,
             .paths = &paths_,
             .cache = &cache_,
             .queue = &queue_,
             .uploads = &uploads_,
             .results = &results_,
             .files = &files_,
             .decoded = &decoded_,
             .products = &products_,
             .readers = &readers_,
             .product_threads = &product_threads_,
             .streams = &streams_,
             .watchdog = &watchdog_,
             .events = &events_,
             .tasks = &tasks_,
             .metrics = &metrics_,
             .board = &board_,
             .log = &log_,
             .started = std::chrono::steady_clock::now()},
      extraction_(parts_),
      analysis_(parts_),
      registry_(parts_) {}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options,
                                                      std::unique_ptr<Engine> engine,
                                                      std::unique_ptr<LogSink> log, std::string engine_note,
                                                      ChosenAnalyser analyser) {
  SPEXD_RETURN_IF_ERROR(CheckOptions(options));
  SPEXD_ASSIGN_OR_RETURN(Identities identities, LoadIdentities(options));
  SPEXD_ASSIGN_OR_RETURN(PathPolicy paths, PathPolicy::Make(options.allow_roots));
  std::unique_ptr<TlsCertificates> certificates;
  if (!options.tls_certificate.empty()) {
    SPEXD_ASSIGN_OR_RETURN(certificates, TlsCertificates::Read(options));
  }
  std::unique_ptr<Server> server(new Server(options,
                                            {std::move(engine), std::move(engine_note), std::move(analyser)},
                                            {std::move(paths), std::move(identities)}, std::move(log)));
  server->certificates_ = std::move(certificates);
  SPEXD_RETURN_IF_ERROR(server->StartJobs());
  SPEXD_RETURN_IF_ERROR(server->StartGrpc());
  server->StartServing();
  if (options.http != "none") SPEXD_RETURN_IF_ERROR(server->StartHttp());
  if (!options.port_file.empty()) SPEXD_RETURN_IF_ERROR(server->WritePortFile());
  server->LogStart();
  server->CheckHealth().IgnoreError();  // called only to log the state
  return server;
}

void Server::LogStart() {
  const EngineInfo info = engine_->Info();
  log_.Info("started", {{"version", BuildVersion()},
                        {"grpc", grpc_address_},
                        {"http_port", http_port()},
                        {"engine", info.kind},
                        {"device", info.device},
                        {"threads", info.threads},
                        {"products", analyser_.analyser != nullptr ? "cuda" : "cpu"},
                        {"max_running_jobs", options_.max_running_jobs},
                        {"max_connections", options_.max_connections},
                        {"allowed_roots", paths_.roots()},
                        {"tls", !options_.tls_certificate.empty()},
                        {"client_certificates", !options_.tls_client_ca.empty()},
                        {"identities", !options_.identities.empty()}});
  if (!engine_note_.empty()) {
    log_.Warning("engine_fallback", {{"engine", info.kind}, {"cuda", engine_note_}});
  }
  if (!analyser_.note.empty()) log_.Warning("products_by_processors", {{"cuda", analyser_.note}});
}

void Server::Reload(const absl::StatusOr<ServerOptions>& fresh) {
  absl::StatusOr<Identities> identities = fresh.ok() ? LoadIdentities(*fresh) : fresh.status();
  const bool opens = identities.ok() && identities->open() && !asked_.identities.empty();
  if (opens) identities = absl::InvalidArgumentError("--identities was taken away, which takes a restart");
  if (!identities.ok()) {
    log_.Failure("reload_failed", identities.status());
    return;
  }
  const int known = identities->size();
  access_.Replace(*std::move(identities));
  log_.SetLevel(LogLevel::kInfo);  // so that the line "reloaded" is written whatever the new level is
  log_.Info("reloaded", {{"log_level", LogLevelName(fresh->log_level)},
                         {"identities", known},
                         {"need_restart", NeedRestart(asked_, *fresh)}});
  log_.SetLevel(fresh->log_level);
}

Server::~Server() {
  http_.reset();  // first, because it uses the parts below
  preloader_.reset();
  listener_.reset();      // accepts no further connections
  health_.StopServing();  // tasks use health_ until they end, which may be after grpc_ is destroyed
  if (grpc_ != nullptr) grpc_->Shutdown(system_clock::now());
  if (detached_ != nullptr) detached_->Stop();
}

absl::Status Server::StartJobs() {
  if (!options_.jobs_dir.empty()) {
    SPEXD_ASSIGN_OR_RETURN(detached_, DetachedJobs::Open(parts_));
  }
  extraction_.TellOf(detached_.get());
  analysis_.TellOf(detached_.get());
  jobs_ = std::make_unique<JobsService>(parts_, detached_.get());
  return absl::OkStatus();
}

void Server::RefreshCertificates() {
  if (certificates_ == nullptr) return;
  const absl::Status read = certificates_->Refresh();
  MutexLock lock(&tls_mutex_);
  const std::string problem(read.message());
  if (problem != tls_problem_ && !problem.empty()) log_.Error("certificates_refused", {{"message", problem}});
  tls_problem_ = problem;
  const int64_t renewals = certificates_->renewals();
  if (std::exchange(tls_renewals_, renewals) < renewals) log_.Info("certificates_renewed");
}

absl::Status Server::CheckHealth() {
  const absl::Status accepting = listener_->Check();
  if (!accepting.ok() && !listener_failed_.exchange(true)) {
    log_.Failure("listener_failed", accepting);
  }
  const absl::Status engine = health_.Check();
  RefreshCertificates();
  queue_.SetDevices(DevicesAtWork(*engine_));
  return engine.ok() ? accepting : engine;
}

absl::Status Server::CheckHttp() {
  absl::Status listening = http_ == nullptr ? absl::OkStatus() : http_->Check();
  if (!listening.ok()) log_.Failure("listener_failed", listening);
  return listening;
}

void Server::ReturnMemoryOfFloods() {
  if (streams_.FloodEnded()) returns_ = 2;  // the second one returns what connections held until they closed
  if (returns_ == 0) return;
  --returns_;
  ReturnFreedMemory();
}

absl::Status Server::StartGrpc() {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  // Compression of messages is refused, because gRPC inflates a message before it knows its size. Pixels may
  // be sent as compressed files.
  for (const grpc_compression_algorithm algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP})
    builder.SetCompressionAlgorithmSupportStatus(algorithm, false);
  absl::StatusOr<ListeningSockets> sockets = ListenAt(options_.listen);
  if (!sockets.ok()) {
    return absl::Status(
        sockets.status().code(),
        absl::StrFormat("--listen: cannot listen on %s: %s", options_.listen, sockets.status().message()));
  }
  AddAcceptors(&builder);
  builder.RegisterService(&extraction_);
  builder.RegisterService(&analysis_);
  builder.RegisterService(&registry_);
  builder.RegisterService(jobs_.get());
  // Clients hold back streams beyond this limit. The server's own limit, which refuses calls with a message,
  // is lower.
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             options_.max_streams_per_connection + kSpareStreams);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleConnectionMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(options_.keepalive_seconds));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(options_.keepalive_timeout_seconds));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinPingIntervalMs);
  grpc_ = builder.BuildAndStart();
  if (grpc_ == nullptr) return absl::UnavailableError("gRPC's server cannot be started");
  grpc_port_ = sockets->port();
  grpc_address_ = options_.listen;
  if (grpc_port_ > 0)
    grpc_address_ = absl::StrCat(grpc_address_.substr(0, grpc_address_.rfind(':')), ":", grpc_port_);
  ConnectionListener::Callbacks callbacks;
  callbacks.take = [this](FileDescriptor connection) { Take(std::move(connection)); };
  callbacks.refused = [this] { metrics_.CountRejection("connections"); };
  listener_ = std::make_unique<ConnectionListener>(
      *std::move(sockets),
      ConnectionListener::Limits{options_.max_connections, options_.max_connections_per_peer,
                                 std::chrono::milliseconds(Milliseconds(options_.keepalive_seconds +
                                                                        options_.keepalive_timeout_seconds)),
                                 std::chrono::milliseconds(kHandshakeMs)},
      std::move(callbacks));
  return absl::OkStatus();
}

void Server::StartServing() {
  const auto start = [this] { health_.StartServing([this](bool serving) { SetServing(serving); }); };
  if (options_.preload_psfs.empty()) return start();
  SetServing(false);
  std::vector<Preload> preloads;
  for (const std::string& text : options_.preload_psfs)
    preloads.push_back(*ParsePreload("--preload-psf", text));  // CheckOptions has checked them
  preloader_ = std::make_unique<Preloader>(parts_, std::move(preloads), start);
}

absl::Status Server::CheckPreloaded() const {
  return preloader_ == nullptr ? absl::OkStatus() : preloader_->status();
}

void Server::AddAcceptors(grpc::ServerBuilder* builder) {
  if (absl::StartsWith(options_.listen, "unix:")) return users_.AddTo(builder);
  acceptor_ = builder->experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      certificates_ == nullptr ? grpc::InsecureServerCredentials() : certificates_->MakeCredentials());
}

void Server::Take(FileDescriptor connection) {
  if (acceptor_ == nullptr) {
    const absl::Status taken = users_.Take(std::move(connection));
    if (taken.ok()) return;
    metrics_.CountRejection("connections");
    log_.Warning("connection_refused", {{"reason", std::string(taken.message())}});
    return;
  }
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
  parameters.fd = connection.Release();
  acceptor_->HandleNewConnection(&parameters);
}

absl::Status Server::StartHttp() {
  SPEXD_ASSIGN_OR_RETURN(const HostPort where, ParseHostPort("--http", options_.http));
  HttpServer::Handlers handlers;
  handlers.metrics = [this] { return MetricsText(); };
  handlers.why_not_alive = [this] { return WhyNotAlive(); };
  handlers.why_not_ready = [this] { return WhyNotReady(); };
  handlers.status = [this] { return StatusPageText(); };
  handlers.refused = [this] { metrics_.CountRejection("http_connections"); };
  HttpServer::Limits limits;
  limits.connections = ShareDescriptors(DescriptorLimit(), options_.max_running_jobs).http;
  limits.connections_of_a_peer = std::clamp(limits.connections / 2, 1, limits.connections_of_a_peer);
  SPEXD_ASSIGN_OR_RETURN(http_, HttpServer::Start(where.host, where.port, std::move(handlers), limits));
  return absl::OkStatus();
}

std::string Server::MetricsText() {
  Metrics::Sources sources;
  sources.queue = queue_.stats();
  sources.cache = cache_.stats();
  sources.engine = engine_.get();
  sources.monitor = monitor_.get();
  sources.connections = listener_->connections();
  sources.streams = streams_.open();
  {
    MutexLock lock(&tls_mutex_);
    sources.certificates_refused = !tls_problem_.empty();
  }
  if (certificates_ != nullptr) sources.certificate_expiry = certificates_->expiry();
  sources.dropped_log_lines = log_.dropped();
  if (detached_ != nullptr) sources.detached = detached_->stats();
  return metrics_.Text(sources);
}

std::string Server::WhyNotAlive() {
  const int64_t refused = listener_->refused();
  const bool tls = !options_.tls_certificate.empty();
  const absl::Status probe =
      tls ? ProbeTls(grpc_address_, kProbePatience) : ProbeGrpc(grpc_address_, kProbePatience);
  // The probe may have been refused because of a limit. A flood is no reason to restart a server that works.
  if (listener_->refused() > refused) return "";
  return std::string(probe.message());
}

std::string Server::WhyNotReady() {
  if (queue_.stats().draining) return "draining";
  if (preloader_ != nullptr) {
    if (std::string loading = preloader_->WhyNotReady(); !loading.empty()) return loading;
  }
  return std::string(CheckHealth().message());
}

std::string Server::StatusLine() const {
  const JobQueue::Stats stats = queue_.stats();
  return absl::StrCat(stats.running, " jobs run, ", stats.waiting, " wait");
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
  health->SetServingStatus(v1::Analysis::service_full_name(), serving);
  health->SetServingStatus(v1::PsfRegistry::service_full_name(), serving);
  health->SetServingStatus(v1::Jobs::service_full_name(), serving);
}

bool Server::Drain() {
  queue_.StartDraining();
  if (detached_ != nullptr) detached_->StartDraining();
  health_.StopServing();
  const JobQueue::Stats stats = queue_.stats();
  log_.Info("draining", {{"running", stats.running}, {"waiting", stats.waiting}});
  const auto grace = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(options_.grace_seconds));
  bool clean = queue_.WaitUntilEmpty(std::chrono::steady_clock::now() + grace);
  if (detached_ != nullptr) {
    detached_->Stop();
    clean = clean || queue_.WaitUntilEmpty(std::chrono::steady_clock::now());
  }
  grpc_->Shutdown(system_clock::now() + (clean ? kShutdownTime : std::chrono::seconds(0)));
  if (clean) {
    log_.Info("stopped");
  } else {
    log_.Warning("stopped_with_jobs", {{"grace_seconds", options_.grace_seconds}});
  }
  return clean;
}

std::string Server::StatusPageText() {
  std::map<int, DeviceUsage> usage;
  if (monitor_ != nullptr) {
    for (const DeviceStatus& device : engine_->Devices())
      usage[device.index] = monitor_->UsageOf(device.index);
  }
  const StoreStats stored = detached_ == nullptr ? StoreStats() : detached_->stats();
  return StatusPage(
      {.status = extraction_.Status(),
       .address = grpc_address_,
       .not_ready = WhyNotReady(),
       .usage = std::move(usage),
       .jobs = board_.view(),
       .detached_queued = stored.jobs[v1::DETACHED_STATE_QUEUED],
       .detached_running = stored.jobs[v1::DETACHED_STATE_RUNNING],
       .now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count()});
}

}  // namespace spexd
