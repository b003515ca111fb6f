#include "server/front/connection_listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"

namespace spexd {
namespace {

// How long no connection is accepted if there is not even a descriptor to refuse clients with.
constexpr int kPauseMs = 500;

FileDescriptor SpareDescriptor() { return FileDescriptor(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

// Who is counted as one peer: an address, or a user of this machine.
std::string PeerOf(int connection) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getpeername(connection, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text, sizeof(text));
  } else if (address.ss_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, text, sizeof(text));
  } else {
    ucred user = {};
    size = sizeof(user);
    getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &user, &size);
    return absl::StrCat("uid ", user.uid);
  }
  return text;
}

ino_t InodeOf(int descriptor) {
  struct stat file = {};
  return fstat(descriptor, &file) == 0 ? file.st_ino : 0;
}

// Whether the error concerns only this connection, which was closed or too slow. Others may be accepted.
bool IsOfOneConnection(int error) {
  return error == ECONNABORTED || error == EPROTO || error == EPERM || error == ENETDOWN ||
         error == ENOPROTOOPT || error == EHOSTDOWN || error == ENONET || error == EHOSTUNREACH ||
         error == ENETUNREACH || error == EINTR;
}

bool IsOutOfDescriptors(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

ConnectionListener::ConnectionListener(ListeningSockets sockets, const Limits& limits, Callbacks callbacks)
    : sockets_(std::move(sockets)),
      limits_(limits),
      callbacks_(std::move(callbacks)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      spare_(SpareDescriptor()),
      thread_([this] { Loop(); }) {}

ConnectionListener::~ConnectionListener() {
  const uint64_t one = 1;
  if (write(wake_.get(), &one, sizeof(one)) != sizeof(one)) std::abort();  // an eventfd takes a 1
  thread_.join();
}

absl::Status ConnectionListener::Check() const {
  MutexLock lock(&mutex_);
  return absl::Status(status_.code(), status_.message());
}

int ConnectionListener::connections() {
  MutexLock lock(&mutex_);
  ForgetClosed();
  return static_cast<int>(connections_.size());
}

void ConnectionListener::Loop() {
  const absl::Status ended = CatchExceptions([this] {
    for (;;) SPEXD_RETURN_IF_ERROR(Wait());
  });
  if (absl::IsCancelled(ended)) return;  // the destructor asked for it
  MutexLock lock(&mutex_);
  status_ = absl::UnavailableError(absl::StrCat("no connections are accepted any more: ", ended.message()));
}

absl::Status ConnectionListener::Wait() {
  std::vector<pollfd> polled = {{wake_.get(), POLLIN, 0}};
  for (const FileDescriptor& socket : sockets_.sockets()) polled.push_back({socket.get(), POLLIN, 0});
  if (poll(polled.data(), polled.size(), -1) < 0) {
    return errno == EINTR ? absl::OkStatus() : absl::UnavailableError(std::strerror(errno));
  }
  if (polled[0].revents != 0) return absl::CancelledError();
  for (size_t k = 1; k < polled.size(); ++k) {
    if (polled[k].revents != 0) SPEXD_RETURN_IF_ERROR(AcceptAll(polled[k].fd));
  }
  return absl::OkStatus();
}

absl::Status ConnectionListener::AcceptAll(int listening) {
  for (;;) {
    FileDescriptor connection(accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection.get() >= 0) {
      const std::string peer = PeerOf(connection.get());
      Admit(std::move(connection), peer);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return absl::OkStatus();
    } else if (IsOutOfDescriptors(errno)) {
      TurnAway(listening);
      return absl::OkStatus();
    } else if (!IsOfOneConnection(errno)) {
      return absl::UnavailableError(std::strerror(errno));
    }
  }
}

void ConnectionListener::TurnAway(int listening) {
  if (spare_.get() < 0) {
    pollfd end = {wake_.get(), POLLIN, 0};
    poll(&end, 1, kPauseMs);
  } else {
    { const FileDescriptor given_up = std::move(spare_); }
    const FileDescriptor refused(accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (refused.get() >= 0) CountRefused();
  }
  spare_ = SpareDescriptor();
}

void ConnectionListener::Admit(FileDescriptor connection, const std::string& peer) {
  const int on = 1;
  setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));  // not for Unix sockets
  // While sent data are not acknowledged, gRPC sends no pings. Only this timeout then detects a lost peer.
  const auto unacknowledged = static_cast<unsigned>(limits_.unacknowledged.count());
  setsockopt(connection.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged, sizeof(unacknowledged));
  {
    MutexLock lock(&mutex_);
    if (IsFull(peer)) ForgetClosed();
    if (!IsFull(peer)) {
      connections_.push_back({connection.get(), InodeOf(connection.get()), peer});
    } else {
      connection = FileDescriptor(-1);
    }
  }
  if (connection.get() < 0) {
    CountRefused();
  } else {
    callbacks_.take(std::move(connection));
  }
}

void ConnectionListener::CountRefused() {
  ++refused_;
  callbacks_.refused();
}

bool ConnectionListener::IsFull(const std::string& peer) {
  if (connections_.size() >= static_cast<size_t>(limits_.connections)) return true;
  return std::count_if(connections_.begin(), connections_.end(),
                       [&](const Connection& one) { return one.peer == peer; }) >= limits_.of_a_peer;
}

void ConnectionListener::ForgetClosed() {
  std::erase_if(connections_, [](const Connection& one) { return InodeOf(one.descriptor) != one.inode; });
}

}  // namespace spexd
