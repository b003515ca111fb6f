#include "server/front/http_server.h"

#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <list>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/file_descriptor.h"
#include "core/base/status_macros.h"
#include "server/base/stall_watchdog.h"
#include "server/front/listening_sockets.h"

namespace spexd {
namespace {

// The maximum number of connections that were ended for newer ones and that libmicrohttpd has not closed yet.
// It accepts up to 10 before it looks at ended ones.
constexpr int kMaxEnding = 16;

struct Answer {
  unsigned code = MHD_HTTP_OK;
  std::string body;
  const char* type = "text/plain; charset=utf-8";
};

// Returns the address of a peer, without its port.
std::string AddressOf(const sockaddr* peer) {
  char text[NI_MAXHOST] = "";
  getnameinfo(peer, peer->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in), text,
              sizeof(text), nullptr, 0, NI_NUMERICHOST);
  return text;
}

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

// libmicrohttpd with one thread for all connections, which blocks on none of them.
class HttpServer::Daemon {
 public:
  Daemon(Handlers handlers, const Limits& limits) : handlers_(std::move(handlers)), limits_(limits) {}
  ~Daemon() {
    if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
  }

  // Starts the thread, which takes ownership of the listening socket.
  absl::Status Run(FileDescriptor listener) {
    daemon_ =
        MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, nullptr, nullptr, &Daemon::Serve, this,  //
                         MHD_OPTION_LISTEN_SOCKET, listener.get(),                                  //
                         MHD_OPTION_CONNECTION_LIMIT, static_cast<unsigned>(limits_.connections + kMaxEnding),
                         MHD_OPTION_CONNECTION_MEMORY_LIMIT, limits_.request_bytes,  //
                         MHD_OPTION_NOTIFY_CONNECTION, &Daemon::Note, this, MHD_OPTION_END);
    if (daemon_ == nullptr) return absl::UnavailableError("--http: the server's thread cannot be started");
    listener.Release();
    return absl::OkStatus();
  }
  bool listens() const {
    const int listener = MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_LISTEN_FD)->listen_fd;
    int listens = 0;
    socklen_t size = sizeof(listens);
    return getsockopt(listener, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0;
  }

 private:
  // A connection that libmicrohttpd has not closed yet, with its time limit.
  struct Connection {
    Connection(StallWatchdog* watchdog, int descriptor, std::string address)
        : socket(descriptor), peer(std::move(address)), watch(watchdog, [descriptor] { End(descriptor); }) {}
    const int socket;
    const std::string peer;
    StallWatchdog::Watch watch;
    bool made_way = false;  // ended for a newer connection
  };

  // Ends a connection; libmicrohttpd notices and closes it.
  static void End(int socket) { shutdown(socket, SHUT_RDWR); }

  static MHD_Result Serve(void* self, MHD_Connection* connection, const char* path, const char* method,
                          const char*, const char*, size_t*, void**) {
    try {
      const Answer answer = AnswerTo(static_cast<Daemon*>(self)->handlers_, method, path);
      MHD_Response* const response = MHD_create_response_from_buffer(
          answer.body.size(), const_cast<char*>(answer.body.data()), MHD_RESPMEM_MUST_COPY);
      if (response == nullptr) return MHD_NO;
      MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer.type);
      MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
      MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
      // The page has names that clients chose. The browser must not run or fetch anything in it.
      MHD_add_response_header(response, "Content-Security-Policy",
                              "default-src 'none'; style-src 'unsafe-inline'");
      MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
      const MHD_Result result = MHD_queue_response(connection, answer.code, response);
      MHD_destroy_response(response);
      return result;
    } catch (...) {
      return MHD_NO;  // out of memory: this connection ends
    }
  }

  // Called by libmicrohttpd when a connection begins and ends. It keeps `ours`, a pointer to our Connection.
  static void Note(void* self, MHD_Connection* connection, void** ours, MHD_ConnectionNotificationCode what) {
    Daemon* const daemon = static_cast<Daemon*>(self);
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
      daemon->connections_.remove_if([&](const Connection& one) { return &one == *ours; });
      return;
    }
    const int socket = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    const sockaddr* const peer =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
    try {
      Connection& made = daemon->connections_.emplace_back(&daemon->watchdog_, socket, AddressOf(peer));
      *ours = &made;
      made.watch.Arm(StallWatchdog::Clock::now() + daemon->limits_.connection_time);
      daemon->EndOldestBeyond(daemon->limits_.connections_of_a_peer, &made.peer);
      daemon->EndOldestBeyond(daemon->limits_.connections, nullptr);
    } catch (...) {
      End(socket);  // out of memory
    }
  }

  // Ends the oldest connection, of `peer` if given, if there are more than `limit`.
  void EndOldestBeyond(int limit, const std::string* peer) {
    const auto counts = [peer](const Connection& one) {
      return !one.made_way && (peer == nullptr || one.peer == *peer);
    };
    if (std::count_if(connections_.begin(), connections_.end(), counts) <= limit) return;
    Connection& oldest = *std::find_if(connections_.begin(), connections_.end(), counts);
    handlers_.refused();  // before the end, so that a client that sees the end finds it counted
    oldest.made_way = true;
    End(oldest.socket);
  }

  const Handlers handlers_;
  const Limits limits_;
  StallWatchdog watchdog_;
  std::list<Connection> connections_;  // oldest first; only libmicrohttpd's thread uses it
  MHD_Daemon* daemon_ = nullptr;
};

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& host, int port,
                                                              Handlers handlers, const Limits& limits) {
  absl::StatusOr<ListeningSockets> listening = ListeningSockets::OnPort(host, port);
  if (!listening.ok()) {
    return absl::UnavailableError(
        absl::StrFormat("--http: cannot listen on %s:%d: %s", host, port, listening.status().message()));
  }
  std::unique_ptr<HttpServer> http(new HttpServer);
  http->port_ = listening->port();
  http->daemon_ = std::make_unique<Daemon>(std::move(handlers), limits);
  SPEXD_RETURN_IF_ERROR(http->daemon_->Run(std::move(listening->sockets().front())));
  return http;
}

HttpServer::~HttpServer() = default;

absl::Status HttpServer::Check() const {
  if (daemon_->listens()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("the HTTP port ", port_, " takes no more connections"));
}

}  // namespace spexd
