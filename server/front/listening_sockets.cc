#include "server/front/listening_sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"

namespace spexd {
namespace {

absl::Status Error(const char* why) { return absl::UnavailableError(why); }

FileDescriptor NewSocket(int family) {
  return FileDescriptor(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

bool Listen(const FileDescriptor& socket, const sockaddr* address, socklen_t size) {
  return bind(socket.get(), address, size) == 0 && listen(socket.get(), SOMAXCONN) == 0;
}

int PortOf(const FileDescriptor& socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

void SetPort(sockaddr* address, int port) {
  const in_port_t value = htons(static_cast<uint16_t>(port));
  if (address->sa_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(address)->sin6_port = value;
  } else {
    reinterpret_cast<sockaddr_in*>(address)->sin_port = value;
  }
}

// Returns the inode of a socket's file; nullopt: there is no such file.
std::optional<ino_t> SocketFile(const std::string& path) {
  struct stat file = {};
  if (lstat(path.c_str(), &file) != 0 || !S_ISSOCK(file.st_mode)) return std::nullopt;
  return file.st_ino;
}

absl::Status CheckIsFree(const sockaddr_un& address) {
  const FileDescriptor probe = NewSocket(AF_UNIX);
  if (probe.get() < 0) return Error(std::strerror(errno));
  const bool answers =
      connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 ||
      errno == EAGAIN;
  if (!answers) return absl::OkStatus();
  return absl::UnavailableError(absl::StrFormat("another server listens on unix:%s", address.sun_path));
}

}  // namespace

absl::StatusOr<ListeningSockets> ListeningSockets::OnPort(const std::string& host, int port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); error != 0)
    return Error(gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, &freeaddrinfo);
  ListeningSockets listening;
  listening.port_ = port;
  int reason = EADDRNOTAVAIL;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    FileDescriptor socket = NewSocket(one->ai_family);
    SetPort(one->ai_addr, listening.port_);
    // SO_REUSEPORT is not set, because two servers on one port are a mistake.
    const int on = 1;
    if (socket.get() < 0 || setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        !Listen(socket, one->ai_addr, one->ai_addrlen)) {
      reason = errno;
      continue;
    }
    listening.port_ = PortOf(socket);
    listening.sockets_.push_back(std::move(socket));
  }
  if (listening.sockets_.empty()) return Error(std::strerror(reason));
  return listening;
}

absl::StatusOr<ListeningSockets> ListeningSockets::OnPath(const std::string& path) {
  sockaddr_un address = {};
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrFormat("a socket's path of %d bytes, the limit is %d",
                                                      path.size(), sizeof(address.sun_path) - 1));
  }
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, path.size());
  SPEXD_RETURN_IF_ERROR(CheckIsFree(address));
  if (SocketFile(path).has_value()) unlink(path.c_str());
  FileDescriptor socket = NewSocket(AF_UNIX);
  if (socket.get() < 0 ||
      !Listen(socket, reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(sizeof(address)))) {
    return Error(std::strerror(errno));
  }
  ListeningSockets listening;
  listening.sockets_.push_back(std::move(socket));
  listening.path_ = path;
  listening.inode_ = SocketFile(path).value_or(0);
  return listening;
}

ListeningSockets::~ListeningSockets() {
  if (!sockets_.empty() && !path_.empty() && SocketFile(path_) == inode_) unlink(path_.c_str());
}

}  // namespace spexd
