#include "tests/support/loopback.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>

namespace spexd::testing {
namespace {

sockaddr_in Loopback(const std::string& host, int port) {
  sockaddr_in where = {};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, host.c_str(), &where.sin_addr);
  return where;
}

FileDescriptor NewSocket() { return FileDescriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

}  // namespace

FileDescriptor ListenOnLoopback(std::string* address) {
  FileDescriptor listener = NewSocket();
  sockaddr_in where = Loopback("127.0.0.1", 0);
  socklen_t size = sizeof(where);
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&where), size) != 0 ||
      listen(listener.get(), 8) != 0 ||
      getsockname(listener.get(), reinterpret_cast<sockaddr*>(&where), &size) != 0) {
    throw std::runtime_error("cannot listen on the loopback interface");
  }
  *address = "127.0.0.1:" + std::to_string(ntohs(where.sin_port));
  return listener;
}

FileDescriptor AcceptFrom(const FileDescriptor& listener) {
  return FileDescriptor(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
}

FileDescriptor ConnectOnLoopback(const std::string& address, const LoopbackOptions& options) {
  FileDescriptor connection = NewSocket();
  if (options.receive_bytes > 0)
    setsockopt(connection.get(), SOL_SOCKET, SO_RCVBUF, &options.receive_bytes, sizeof(int));
  const sockaddr_in from = Loopback(options.source, 0);
  const sockaddr_in where = Loopback("127.0.0.1", std::stoi(address.substr(address.rfind(':') + 1)));
  if (bind(connection.get(), reinterpret_cast<const sockaddr*>(&from), sizeof(from)) != 0 ||
      connect(connection.get(), reinterpret_cast<const sockaddr*>(&where), sizeof(where)) != 0) {
    return FileDescriptor(-1);
  }
  return connection;
}

bool MoveBytes(const FileDescriptor& from, const FileDescriptor& to, size_t most) {
  std::array<char, 65536> buffer;
  const ssize_t got = read(from.get(), buffer.data(), std::min(most, buffer.size()));
  for (ssize_t sent = 0; sent < got;) {
    const ssize_t more = send(to.get(), buffer.data() + sent, static_cast<size_t>(got - sent), MSG_NOSIGNAL);
    if (more <= 0) return false;
    sent += more;
  }
  return got > 0;
}

}  // namespace spexd::testing
