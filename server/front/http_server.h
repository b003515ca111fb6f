// The operator's HTTP port: /metrics, /livez, /readyz and a status page.
//
// It answers while clients are slow, and whatever they send: connections, their memory and their time are
// limited.
#ifndef SPEXD_SERVER_FRONT_HTTP_SERVER_H_
#define SPEXD_SERVER_FRONT_HTTP_SERVER_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace spexd {

class HttpServer {
 public:
  // Called from the server's thread, one at a time.
  struct Handlers {
    std::function<std::string()> metrics;        // text/plain, Prometheus' format
    std::function<std::string()> why_not_alive;  // "": 200; else 503 with it
    std::function<std::string()> why_not_ready;  // the same
    std::function<std::string()> status;         // text/html
    std::function<void()> refused;               // a connection was closed for a limit
  };
  // A connection serves one request. One more than `connections` ends the oldest, and one more than
  // `connections_of_a_peer` the oldest of its peer: so idle connections do not exclude new ones.
  struct Limits {
    int connections = 256, connections_of_a_peer = 32;
    size_t request_bytes = 16 << 10;  // of the request line and headers
    std::chrono::milliseconds connection_time = std::chrono::seconds(10);
  };

  // The server serves once this returns. Port 0: chosen by the kernel. Unavailable if the address is not
  // available.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const std::string& host, int port,
                                                           Handlers handlers, const Limits& limits);
  // Closes all connections, finished or not.
  ~HttpServer();

  int port() const { return port_; }
  // Unavailable if the port takes no more connections: its socket does not listen.
  absl::Status Check() const;

 private:
  class Daemon;
  HttpServer() = default;

  std::unique_ptr<Daemon> daemon_;
  int port_ = 0;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_FRONT_HTTP_SERVER_H_
