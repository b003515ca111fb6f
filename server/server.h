// The whole service: builds and owns every part. main and the tests start it.
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
  // The server serves once this returns. Logs go to `log`, which outlives the server. `engine_note`: see
  // ChosenEngine. InvalidArgument: see CheckOptions. Unavailable: an address is not available.
  // `analyser`: makes the products of jobs; processors do without one.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                                       std::unique_ptr<Engine> engine,
                                                       std::unique_ptr<LogSink> log,
                                                       std::string engine_note = "",
                                                       ChosenAnalyser analyser = {});
  // Cancels the running calls.
  ~Server();

  // Reports NOT_SERVING, refuses new jobs, waits for the accepted ones and stops. Returns false if the grace
  // time ended before they did; the rest were cancelled then. Detached jobs without a slot, or whose run the
  // grace time ended, are left to the next server. Call it once, from one thread.
  bool Drain();

  // Unavailable if the engine can run no more jobs, or no more connections can be accepted; health, readiness
  // and log are updated. Certificates that changed come into force. Call it once a second.
  absl::Status CheckHealth();

  // Unavailable if the HTTP port takes no more connections; the log says so. Call it from the thread that
  // started the server, which then is to end.
  absl::Status CheckHttp();

  // Not OK if a PSF that was to be preloaded cannot be; InvalidArgument: for its file. Call it regularly.
  absl::Status CheckPreloaded() const;

  // "" when alive: the gRPC port answers; "" when ready for jobs. Else why not.
  std::string WhyNotAlive();
  std::string WhyNotReady();
  std::string StatusLine() const;  // "2 jobs run, 5 wait"

  // Returns the memory of many streams to the system once they have ended. Call it every second or so, from
  // one thread.
  void ReturnMemoryOfFloods();

  // Applies a configuration that was read again: the level of the log and the identities. What only a restart
  // changes is named in the log, as are mistakes, which leave everything as it is. Call it from one thread.
  void Reload(const absl::StatusOr<ServerOptions>& fresh);

  const std::string& grpc_address() const { return grpc_address_; }  // address with the port in use
  int grpc_port() const { return grpc_port_; }                       // 0 for unix:
  int http_port() const { return http_ == nullptr ? 0 : http_->port(); }

 private:
  // What Start reads before anything else is made.
  struct Files {
    PathPolicy paths;
    Identities identities;
  };
  // What jobs are worked on by, with the notes on them.
  struct Machines {
    std::unique_ptr<Engine> engine;
    std::string engine_note;
    ChosenAnalyser analyser;
  };
  Server(const ServerOptions& options, Machines machines, Files files, std::unique_ptr<LogSink> log);
  void AddAcceptors(grpc::ServerBuilder* builder);
  void Take(FileDescriptor connection);  // gives it to gRPC
  absl::Status StartJobs();
  absl::Status StartGrpc();
  absl::Status StartHttp();
  absl::Status WritePortFile() const;
  std::string MetricsText();
  void SetServing(bool serving);
  void RefreshCertificates() ABSL_LOCKS_EXCLUDED(tls_mutex_);  // and tells of it
  void LogStart();
  void StartServing();  // tells gRPC's health service, once all is preloaded
  std::string StatusPageText();

  const ServerOptions asked_;    // as the operator gave them
  const ServerOptions options_;  // as they are in force, but for what Reload changed
  const std::unique_ptr<Engine> engine_;
  const std::string engine_note_;
  const ChosenAnalyser analyser_;
  const PathPolicy paths_;
  Logger log_;
  GrpcLog grpc_log_;
  EngineHealth health_;
  Metrics metrics_;
  JobBoard board_;
  const std::unique_ptr<DeviceMonitor> monitor_;  // null: the engine has no devices, or nothing is known
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
  std::unique_ptr<JobsService> jobs_;       // its calls end on threads of detached_
  std::unique_ptr<DetachedJobs> detached_;  // null: the server keeps no jobs
  // Calls end on these threads: the parts above outlive them.
  EventThread events_;
  TaskThreads tasks_;
  const ServerParts parts_;
  ExtractionService extraction_;
  AnalysisService analysis_;
  RegistryService registry_;
  PeerUsers users_;                                // of a Unix socket
  std::unique_ptr<TlsCertificates> certificates_;  // null: no TLS. Used by gRPC's server
  Mutex tls_mutex_;
  std::string tls_problem_ ABSL_GUARDED_BY(tls_mutex_);   // with the files, that the log told of; "": none
  int64_t tls_renewals_ ABSL_GUARDED_BY(tls_mutex_) = 0;  // that the log told of
  std::unique_ptr<grpc::Server> grpc_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;  // of a port
  std::unique_ptr<ConnectionListener> listener_;
  std::atomic<bool> listener_failed_ = false;  // and the log says so
  int returns_ = 0;                            // that are due: see ReturnMemoryOfFloods
  std::unique_ptr<Preloader> preloader_;       // null: nothing is preloaded
  std::unique_ptr<HttpServer> http_;
  std::string grpc_address_;
  int grpc_port_ = 0;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_SERVER_H_
