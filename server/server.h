// The whole service: builds and owns every part. main and the tests start it.
#ifndef SPEXD_SERVER_SERVER_H_
#define SPEXD_SERVER_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "grpcpp/server.h"
#include "server/extraction_service.h"
#include "server/http_server.h"
#include "server/registry_service.h"
#include "server/server_parts.h"

namespace spexd {

class Server {
 public:
  // The server serves once this returns. Logs go to `log`, which outlives the server. `engine_note`: see
  // ChosenEngine. InvalidArgument: see CheckOptions. Unavailable: an address is not available.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                                       std::unique_ptr<Engine> engine,
                                                       std::unique_ptr<LogSink> log,
                                                       std::string engine_note = "");
  // Cancels the running calls.
  ~Server();

  // Reports NOT_SERVING, refuses new jobs, waits for the accepted ones and stops. Returns false if the grace
  // time ended before they did; the rest were cancelled then. Call it once, from one thread.
  bool Drain();

  // Unavailable if the engine can run no more jobs; health, readiness and log are updated. Call it regularly.
  absl::Status CheckHealth() { return health_.Check(); }

  const std::string& grpc_address() const { return grpc_address_; }  // address with the port in use
  int grpc_port() const { return grpc_port_; }                       // 0 for unix:
  int http_port() const { return http_ == nullptr ? 0 : http_->port(); }

 private:
  Server(const ServerOptions& options, std::unique_ptr<Engine> engine, PathPolicy paths,
         std::unique_ptr<LogSink> log, std::string engine_note);
  absl::Status StartGrpc();
  absl::Status StartHttp();
  absl::Status WritePortFile() const;
  void SetServing(bool serving);
  void LogStart();
  std::string WhyNotReady();  // "" when ready
  std::string StatusPage() const;

  const ServerOptions options_;
  const std::unique_ptr<Engine> engine_;
  const std::string engine_note_;
  const PathPolicy paths_;
  Logger log_;
  EngineHealth health_;
  Metrics metrics_;
  JobQueue queue_;
  PsfCache cache_;
  ByteBudget uploads_;
  ByteBudget results_;
  SharedThreads readers_;
  StallWatchdog watchdog_;
  const ServerParts parts_;
  ExtractionService extraction_;
  RegistryService registry_;
  std::unique_ptr<grpc::Server> grpc_;
  std::unique_ptr<HttpServer> http_;
  std::string grpc_address_;
  int grpc_port_ = 0;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_SERVER_H_
