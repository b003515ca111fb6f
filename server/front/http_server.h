// The operator's HTTP port: /metrics, /livez, /readyz and a status page.
//
// The number, memory and time of connections are limited, so that slow or hostile clients cannot block it.
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
  // The functions are called by the server's thread, one at a time.
  struct Handlers {
    std::function<std::string()> metrics;        // text/plain, Prometheus' format
    std::function<std::string()> why_not_alive;  // "": 200; otherwise 503 with the text
    std::function<std::string()> why_not_ready;  // "": 200; otherwise 503 with the text
    std::function<std::string()> status;         // text/html
    std::function<void()> refused;               // called when a connection is closed because of a limit
  };
  // A connection serves one request. A new connection beyond `connections` ends the oldest one, and one
  // beyond `connections_of_a_peer` ends the oldest of its peer, so that idle connections do not exclude new
  // ones.
  struct Limits {
    int connections = 256, connections_of_a_peer = 32;
    size_t request_bytes = 16 << 10;  // memory of the request line and headers
    std::chrono::milliseconds connection_time = std::chrono::seconds(10);
  };

  // Starts the server, which serves when this returns. Port 0: the kernel chooses one. Unavailable: the
  // address is not available.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const std::string& host, int port,
                                                           Handlers handlers, const Limits& limits);
  // Closes all connections, even unfinished ones.
  ~HttpServer();

  int port() const { return port_; }
  // Unavailable: the port's socket does not listen, so that it takes no more connections.
  absl::Status Check() const;

 private:
  class Daemon;
  HttpServer() = default;

  std::unique_ptr<Daemon> daemon_;
  int port_ = 0;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_FRONT_HTTP_SERVER_H_
