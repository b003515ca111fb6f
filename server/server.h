// The whole server: it builds and owns every part. main and the tests start it.
#ifndef SPEXD_SERVER_SERVER_H_
#define SPEXD_SERVER_SERVER_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/base/threads/mutex.h"
#include "cuda/loader/choose_analyser.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "server/access/peer_users.h"
#include "server/detached/detached_jobs.h"
#include "server/front/connection_listener.h"
#include "server/front/grpc_log.h"
#include "server/front/http_server.h"
#include "server/front/tls.h"
#include "server/jobs/preload.h"
#include "server/jobs/server_parts.h"
#include "server/rpc/analysis_service.h"
#include "server/rpc/extraction_service.h"
#include "server/rpc/jobs_service.h"
#include "server/rpc/registry_service.h"

namespace spexd {

class Server {
 public:
  // Starts a server, which serves when this returns. `log`: where its log goes. `engine_note`: see
  // ChosenEngine. `analyser`: computes products on a device; without one, processors do. InvalidArgument: see
  // CheckOptions. Unavailable: an address is not available.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                                       std::unique_ptr<Engine> engine,
                                                       std::unique_ptr<LogSink> log,
                                                       std::string engine_note = "",
                                                       ChosenAnalyser analyser = {});
  // Cancels the running calls.
  ~Server();

  // Drains the server: reports NOT_SERVING, refuses new jobs, waits for the accepted ones and stops. Returns
  // false if the grace time passed before they ended; the rest was then cancelled. Detached jobs without a
  // slot, or whose run was cancelled, are left to the next server. Call it once, from one thread.
  bool Drain();

  // Updates health, readiness and log, and puts changed certificates into force. Call it once a second.
  // Unavailable: the engine can run no more jobs, or no more connections can be accepted.
  absl::Status CheckHealth();

  // Checks the HTTP port and logs its failure. Call it from the thread that started the server. Unavailable:
  // the port takes no more connections; the server must then be stopped.
  absl::Status CheckHttp();

  // Returns the error of a PSF that cannot be preloaded. InvalidArgument: its file is wrong. Call it
  // regularly.
  absl::Status CheckPreloaded() const;

  // Returns why the gRPC port does not answer; "": it does, so that the server is alive.
  std::string WhyNotAlive();
  // Returns why the server is not ready for jobs; "": it is.
  std::string WhyNotReady();
  std::string StatusLine() const;  // "2 jobs run, 5 wait"

  // Returns memory to the system after a flood of streams has ended. Call it about every second, from one
  // thread.
  void ReturnMemoryOfFloods();

  // Applies a configuration that was read again: the log level and the identities. The log names options that
  // only a restart can change, and mistakes, after which nothing is changed. Call it from one thread.
  void Reload(const absl::StatusOr<ServerOptions>& fresh);

  const std::string& grpc_address() const { return grpc_address_; }  // with the port in use
  int grpc_port() const { return grpc_port_; }                       // 0 for unix:
  int http_port() const { return http_ == nullptr ? 0 : http_->port(); }

 private:
  // What Start reads before it makes anything else.
  struct Files {
    PathPolicy paths;
    Identities identities;
  };
  // The engine and the analyser, with the notes about their choice.
  struct Machines {
    std::unique_ptr<Engine> engine;
    std::string engine_note;
    ChosenAnalyser analyser;
  };
  Server(const ServerOptions& options, Machines machines, Files files, std::unique_ptr<LogSink> log);
  void AddAcceptors(grpc::ServerBuilder* builder);
  void Take(FileDescriptor connection);  // gives the connection to gRPC
  absl::Status StartJobs();
  absl::Status StartGrpc();
  absl::Status StartHttp();
  absl::Status WritePortFile() const;
  std::string MetricsText();
  void SetServing(bool serving);
  void RefreshCertificates() ABSL_LOCKS_EXCLUDED(tls_mutex_);  // and logs changes
  void LogStart();
  void StartServing();  // tells gRPC's health service when all PSFs are preloaded
  std::string StatusPageText();

  const ServerOptions asked_;    // as the operator gave them
  const ServerOptions options_;  // as they are in force, apart from changes by Reload
  const std::unique_ptr<Engine> engine_;
  const std::string engine_note_;
  const ChosenAnalyser analyser_;
  const PathPolicy paths_;
  Logger log_;
  GrpcLog grpc_log_;
  EngineHealth health_;
  Metrics metrics_;
  JobBoard board_;
  const std::unique_ptr<DeviceMonitor> monitor_;  // null: there are no devices, or the driver tells nothing
  Access access_;
  JobQueue queue_;
  WarmCache cache_;
  ByteBudget uploads_;
  ByteBudget results_;
  ByteBudget files_;
  ByteBudget decoded_;
  ByteBudget products_;
  SharedThreads readers_;
  ByteBudget product_threads_;
  StreamLimits streams_;
  StallWatchdog watchdog_;
  std::unique_ptr<JobsService> jobs_;       // outlives detached_, on whose threads its calls end
  std::unique_ptr<DetachedJobs> detached_;  // null: the server keeps no jobs
  // Calls end on these threads, which the parts above outlive.
  EventThread events_;
  TaskThreads tasks_;
  const ServerParts parts_;
  ExtractionService extraction_;
  AnalysisService analysis_;
  RegistryService registry_;
  PeerUsers users_;                                // for a Unix socket
  std::unique_ptr<TlsCertificates> certificates_;  // null: no TLS. It outlives grpc_
  Mutex tls_mutex_;
  std::string tls_problem_ ABSL_GUARDED_BY(tls_mutex_);   // last logged problem with the files; "": none
  int64_t tls_renewals_ ABSL_GUARDED_BY(tls_mutex_) = 0;  // number of logged renewals
  std::unique_ptr<grpc::Server> grpc_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;  // for TCP
  std::unique_ptr<ConnectionListener> listener_;
  std::atomic<bool> listener_failed_ = false;  // and was logged
  int returns_ = 0;                            // number of returns of memory that are due
  std::unique_ptr<Preloader> preloader_;       // null: nothing is preloaded
  std::unique_ptr<HttpServer> http_;
  std::string grpc_address_;
  int grpc_port_ = 0;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_SERVER_H_
