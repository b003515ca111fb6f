// The operator's HTTP port: /metrics, /livez, /readyz and a status page.
#ifndef SPEXD_SERVER_HTTP_SERVER_H_
#define SPEXD_SERVER_HTTP_SERVER_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"

namespace httplib {
class Server;
}

namespace spexd {

class HttpServer {
 public:
  // Called from the server's threads.
  struct Handlers {
    std::function<std::string()> metrics;        // text/plain, Prometheus' format
    std::function<std::string()> why_not_ready;  // "": 200; else 503 with it
    std::function<std::string()> status;         // text/html
  };

  // The server serves once this returns. Port 0: chosen by the kernel. Unavailable if the address is not
  // available.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const std::string& host, int port,
                                                           Handlers handlers);
  ~HttpServer();

  int port() const { return port_; }

 private:
  explicit HttpServer(Handlers handlers);

  const Handlers handlers_;
  std::unique_ptr<httplib::Server> server_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_HTTP_SERVER_H_
