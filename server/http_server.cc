#include "server/http_server.h"

#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/file_descriptor.h"
#include "core/base/status_macros.h"
#include "server/stall_watchdog.h"

namespace spexd {
namespace {

absl::Status CannotListen(const std::string& host, int port, const char* why) {
  return absl::UnavailableError(absl::StrFormat("--http: cannot listen on %s:%d: %s", host, port, why));
}

absl::StatusOr<FileDescriptor> Listen(const std::string& host, int port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); error != 0)
    return CannotListen(host, port, gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, &freeaddrinfo);
  int reason = EADDRNOTAVAIL;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    FileDescriptor listener(
        socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, one->ai_protocol));
    // Not SO_REUSEPORT: two servers on one port are a mistake.
    const int on = 1;
    if (listener.get() >= 0 && setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
        bind(listener.get(), one->ai_addr, one->ai_addrlen) == 0 && listen(listener.get(), SOMAXCONN) == 0) {
      return listener;
    }
    reason = errno;
  }
  return CannotListen(host, port, std::strerror(reason));
}

int PortOf(const FileDescriptor& listener) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

struct Answer {
  unsigned code = MHD_HTTP_OK;
  std::string body;
  const char* type = "text/plain; charset=utf-8";
};

Answer AnswerTo(const HttpServer::Handlers& handlers, absl::string_view method, absl::string_view path) {
  if (method != "GET" && method != "HEAD") return {MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n"};
  if (path == "/livez" || path == "/readyz") {
    const std::string reason = path == "/livez" ? handlers.why_not_alive() : handlers.why_not_ready();
    if (reason.empty()) return {.body = "ok\n"};
    return {MHD_HTTP_SERVICE_UNAVAILABLE, reason + "\n"};
  }
  if (path == "/metrics")
    return {.body = handlers.metrics(), .type = "text/plain; version=0.0.4; charset=utf-8"};
  if (path == "/") return {.body = handlers.status(), .type = "text/html; charset=utf-8"};
  return {MHD_HTTP_NOT_FOUND, "not found\n"};
}

}  // namespace

// libmicrohttpd with one thread for all connections, which waits for none of them.
class HttpServer::Daemon {
 public:
  Daemon(Handlers handlers, const Limits& limits)
      : handlers_(std::move(handlers)), watchdog_(limits.connection_time) {}
  ~Daemon() {
    if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
  }

  // Takes the listener.
  absl::Status Run(FileDescriptor listener, const Limits& limits) {
    daemon_ = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, nullptr, nullptr, &Daemon::Serve, this,  //
                               MHD_OPTION_LISTEN_SOCKET, listener.get(),                                  //
                               MHD_OPTION_CONNECTION_LIMIT, static_cast<unsigned>(limits.connections),
                               MHD_OPTION_PER_IP_CONNECTION_LIMIT,
                               static_cast<unsigned>(limits.connections_of_a_peer),
                               MHD_OPTION_CONNECTION_MEMORY_LIMIT, limits.request_bytes,  //
                               MHD_OPTION_NOTIFY_CONNECTION, &Daemon::Note, this, MHD_OPTION_END);
    if (daemon_ == nullptr) return absl::UnavailableError("--http: the server's thread cannot be started");
    listener.Release();
    return absl::OkStatus();
  }

 private:
  static MHD_Result Serve(void* self, MHD_Connection* connection, const char* path, const char* method,
                          const char*, const char*, size_t*, void**) {
    try {
      const Answer answer = AnswerTo(static_cast<Daemon*>(self)->handlers_, method, path);
      MHD_Response* const response = MHD_create_response_from_buffer(
          answer.body.size(), const_cast<char*>(answer.body.data()), MHD_RESPMEM_MUST_COPY);
      if (response == nullptr) return MHD_NO;
      MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer.type);
      MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
      const MHD_Result result = MHD_queue_response(connection, answer.code, response);
      MHD_destroy_response(response);
      return result;
    } catch (...) {
      return MHD_NO;  // out of memory: this connection ends
    }
  }

  // Each connection has a watch, which the library keeps for it.
  static void Note(void* self, MHD_Connection* connection, void** watch,
                   MHD_ConnectionNotificationCode what) {
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
      delete static_cast<StallWatchdog::Watch*>(*watch);
      return;
    }
    const int socket = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    const auto end = [socket] { shutdown(socket, SHUT_RDWR); };  // the library finds it ended and closes it
    try {
      auto made = std::make_unique<StallWatchdog::Watch>(&static_cast<Daemon*>(self)->watchdog_, end);
      made->Arm();
      *watch = made.release();
    } catch (...) {
      end();  // out of memory
    }
  }

  const Handlers handlers_;
  StallWatchdog watchdog_;
  MHD_Daemon* daemon_ = nullptr;
};

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& host, int port,
                                                              Handlers handlers, const Limits& limits) {
  SPEXD_ASSIGN_OR_RETURN(FileDescriptor listener, Listen(host, port));
  std::unique_ptr<HttpServer> http(new HttpServer);
  http->port_ = PortOf(listener);
  http->daemon_ = std::make_unique<Daemon>(std::move(handlers), limits);
  SPEXD_RETURN_IF_ERROR(http->daemon_->Run(std::move(listener), limits));
  return http;
}

HttpServer::~HttpServer() = default;

}  // namespace spexd
