#include "server/http_server.h"

#include <httplib.h>
#include <sys/socket.h>

#include <utility>

#include "absl/strings/str_format.h"

namespace spexd {
namespace {

constexpr int kThreads = 2;
constexpr int kTimeoutSeconds = 5;
constexpr size_t kMaxRequestBytes = 4096;

}  // namespace

HttpServer::HttpServer(Handlers handlers)
    : handlers_(std::move(handlers)), server_(std::make_unique<httplib::Server>()) {
  server_->new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  // Not SO_REUSEPORT, the library's default: two servers on one port are a mistake.
  server_->set_socket_options([](socket_t socket) {
    const int on = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  });
  server_->set_keep_alive_max_count(1);  // so that stopping waits for no idle connection
  server_->set_read_timeout(kTimeoutSeconds);
  server_->set_write_timeout(kTimeoutSeconds);
  server_->set_payload_max_length(kMaxRequestBytes);
  server_->Get("/metrics", [this](const httplib::Request&, httplib::Response& response) {
    response.set_content(handlers_.metrics(), "text/plain; version=0.0.4; charset=utf-8");
  });
  server_->Get("/livez", [](const httplib::Request&, httplib::Response& response) {
    response.set_content("ok\n", "text/plain");
  });
  server_->Get("/readyz", [this](const httplib::Request&, httplib::Response& response) {
    const std::string reason = handlers_.why_not_ready();
    response.status = reason.empty() ? 200 : 503;
    response.set_content(reason.empty() ? "ok\n" : reason + "\n", "text/plain; charset=utf-8");
  });
  server_->Get("/", [this](const httplib::Request&, httplib::Response& response) {
    response.set_content(handlers_.status(), "text/html; charset=utf-8");
  });
}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& host, int port,
                                                              Handlers handlers) {
  std::unique_ptr<HttpServer> http(new HttpServer(std::move(handlers)));
  if (port == 0) {
    http->port_ = http->server_->bind_to_any_port(host);
  } else {
    http->port_ = http->server_->bind_to_port(host, port) ? port : -1;
  }
  if (http->port_ < 0) {
    return absl::UnavailableError(absl::StrFormat("--http: cannot listen on %s:%d", host, port));
  }
  http->thread_ = std::thread([server = http->server_.get()] { server->listen_after_bind(); });
  // stop() before the loop began would be lost, so an answered request marks the start.
  const bool any = host == "0.0.0.0" || host == "::";
  httplib::Client client(any ? "localhost" : host, http->port_);
  if (!client.Get("/livez")) {
    return absl::UnavailableError(absl::StrFormat("--http: %s:%d does not answer", host, http->port_));
  }
  return http;
}

HttpServer::~HttpServer() {
  if (!thread_.joinable()) return;
  server_->stop();
  thread_.join();
}

}  // namespace spexd
