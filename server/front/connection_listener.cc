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

// The pause in accepting connections if there is not even a spare descriptor.
constexpr int kPauseMs = 500;
// The most connections that are accepted before silent ones are polled again.
constexpr int kMaxAtOnce = 64;

FileDescriptor SpareDescriptor() { return FileDescriptor(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

// Returns the peer for the limits: an address, or a user of this machine.
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

// Whether the error of accept concerns only one connection, so that others may be accepted.
bool IsOfOneConnection(int error) {
  return error == ECONNABORTED || error == EPROTO || error == EPERM || error == ENETDOWN ||
         error == ENOPROTOOPT || error == EHOSTDOWN || error == ENONET || error == EHOSTUNREACH ||
         error == ENETUNREACH || error == EINTR;
}

bool IsOutOfDescriptors(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

// Whether a connection waits to be accepted. Without descriptors, accept fails whether or not one waits.
bool IsAnyWaiting(int listening) {
  pollfd polled = {listening, POLLIN, 0};
  return poll(&polled, 1, 0) > 0;
}

enum class Heard { kNothing, kBytes, kEnd };

Heard Peek(int connection) {
  char byte = 0;
  const ssize_t got = recv(connection, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT);
  if (got > 0) return Heard::kBytes;
  const bool later = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  return later ? Heard::kNothing : Heard::kEnd;
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
  if (write(wake_.get(), &one, sizeof(one)) != sizeof(one)) std::abort();  // cannot fail
  thread_.join();
}

absl::Status ConnectionListener::Check() const {
  MutexLock lock(&mutex_);
  return absl::Status(status_.code(), status_.message());
}

int ConnectionListener::connections() {
  MutexLock lock(&mutex_);
  ForgetClosed();
  return open_;
}

void ConnectionListener::Loop() {
  const absl::Status ended = CatchExceptions([this] {
    for (;;) SPEXD_RETURN_IF_ERROR(Wait());
  });
  if (absl::IsCancelled(ended)) return;  // by the destructor
  MutexLock lock(&mutex_);
  status_ = absl::UnavailableError(absl::StrCat("no connections are accepted any more: ", ended.message()));
}

absl::Status ConnectionListener::Wait() {
  forgotten_ = false;
  const size_t listening = sockets_.sockets().size();
  std::vector<pollfd> polled = {{wake_.get(), POLLIN, 0}};
  for (const FileDescriptor& socket : sockets_.sockets()) polled.push_back({socket.get(), POLLIN, 0});
  for (const SilentConnection& one : silent_) polled.push_back({one.connection.get(), POLLIN, 0});
  if (poll(polled.data(), polled.size(), MillisecondsToNextClose()) < 0) {
    return errno == EINTR ? absl::OkStatus() : absl::UnavailableError(std::strerror(errno));
  }
  if (polled[0].revents != 0) return absl::CancelledError();
  Hear(absl::MakeConstSpan(polled).subspan(1 + listening));
  CloseSilentTooLong();
  for (size_t k = 1; k <= listening; ++k) {
    if (polled[k].revents != 0) SPEXD_RETURN_IF_ERROR(Accept(polled[k].fd));
  }
  return absl::OkStatus();
}

void ConnectionListener::Hear(absl::Span<const pollfd> polled) {
  auto one = silent_.begin();
  for (const pollfd& news : polled) {
    const Heard heard = news.revents == 0 ? Heard::kNothing : Peek(news.fd);
    if (heard == Heard::kBytes) {
      one = PassOn(one);
    } else if (heard == Heard::kEnd) {
      one = Close(one);
    } else {
      ++one;
    }
  }
}

void ConnectionListener::CloseSilentTooLong() {
  const auto now = std::chrono::steady_clock::now();
  while (!silent_.empty() && silent_.front().until <= now) {
    const auto oldest = silent_.begin();
    if (Peek(oldest->connection.get()) == Heard::kBytes) {
      PassOn(oldest);
    } else {
      Close(oldest);
    }
  }
}

int ConnectionListener::MillisecondsToNextClose() const {
  if (silent_.empty()) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(silent_.front().until - std::chrono::steady_clock::now());
  return static_cast<int>(std::max<int64_t>(left.count(), 0));
}

absl::Status ConnectionListener::Accept(int listening) {
  for (int k = 0; k < kMaxAtOnce; ++k) {
    FileDescriptor connection(accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection.get() >= 0) {
      const std::string peer = PeerOf(connection.get());
      Admit(std::move(connection), peer);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      break;
    } else if (IsOutOfDescriptors(errno)) {
      if (!IsAnyWaiting(listening)) break;
      if (CloseOldestSilent(nullptr)) continue;
      TurnAway(listening);
      break;
    } else if (!IsOfOneConnection(errno)) {
      return absl::UnavailableError(std::strerror(errno));
    }
  }
  return absl::OkStatus();
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
  setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));  // no effect on Unix sockets
  // gRPC sends no pings while sent data are unacknowledged. Only this timeout then detects a lost peer.
  const auto unacknowledged = static_cast<unsigned>(limits_.unacknowledged.count());
  setsockopt(connection.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged, sizeof(unacknowledged));
  if (!MakeRoom(peer)) return CountRefused();
  silent_.push_back({std::move(connection), peer, std::chrono::steady_clock::now() + limits_.silent});
  MutexLock lock(&mutex_);
  ++open_;
  ++of_peer_[peer];
}

bool ConnectionListener::MakeRoom(const std::string& peer) {
  for (;;) {
    bool full = false, peer_is_full = false;
    {
      MutexLock lock(&mutex_);
      full = open_ >= limits_.connections;
      peer_is_full = CountOf(peer) >= limits_.of_a_peer;
      if (!full && !peer_is_full) return true;
      if (!forgotten_) ForgetClosed();
    }
    // ForgetClosed looks at every connection that gRPC has. In a flood it must not run for each new
    // connection.
    if (std::exchange(forgotten_, true) && !CloseOldestSilent(peer_is_full ? &peer : nullptr)) return false;
  }
}

bool ConnectionListener::CloseOldestSilent(const std::string* peer) {
  for (auto one = silent_.begin(); one != silent_.end();) {
    if (peer != nullptr && one->peer != *peer) {
      ++one;
      continue;
    }
    const Heard heard = Peek(one->connection.get());
    if (heard == Heard::kBytes) {
      one = PassOn(one);
      continue;
    }
    Close(one);
    if (heard == Heard::kNothing) CountRefused();
    return true;
  }
  return false;
}

ConnectionListener::Silent::iterator ConnectionListener::PassOn(Silent::iterator one) {
  FileDescriptor connection = std::move(one->connection);
  {
    MutexLock lock(&mutex_);
    connections_.push_back({connection.get(), InodeOf(connection.get()), std::move(one->peer)});
  }
  const auto next = silent_.erase(one);
  callbacks_.take(std::move(connection));
  return next;
}

ConnectionListener::Silent::iterator ConnectionListener::Close(Silent::iterator one) {
  {
    MutexLock lock(&mutex_);
    CountOut(one->peer);
  }
  return silent_.erase(one);
}

void ConnectionListener::CountRefused() {
  ++refused_;
  callbacks_.refused();
}

int ConnectionListener::CountOf(const std::string& peer) {
  const auto found = of_peer_.find(peer);
  return found == of_peer_.end() ? 0 : found->second;
}

void ConnectionListener::CountOut(const std::string& peer) {
  --open_;
  const auto found = of_peer_.find(peer);
  if (--found->second == 0) of_peer_.erase(found);
}

void ConnectionListener::ForgetClosed() {
  std::erase_if(connections_, [this](const Connection& one) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (InodeOf(one.descriptor) == one.inode) return false;
    CountOut(one.peer);
    return true;
  });
}

}  // namespace spexd
