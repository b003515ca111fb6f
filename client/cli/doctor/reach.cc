#include "client/cli/doctor/reach.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "client/connection/server_address.h"

namespace spexd::cli {
namespace {

using std::chrono::milliseconds;

absl::Status WhyNot(int error, const Place& place, const std::string& address, milliseconds limit) {
  if (error == ECONNREFUSED) return absl::UnavailableError(absl::StrCat(address, ": nobody listens there"));
  if (error == ETIMEDOUT) {
    return absl::UnavailableError(
        absl::StrFormat("%s: no answer within %.3g s", address, static_cast<double>(limit.count()) / 1000));
  }
  if (error == ENOENT && place.kind == Place::Kind::kUnixSocket)
    return absl::UnavailableError(absl::StrCat(address, ": there is no such socket"));
  if (error == EACCES && place.kind == Place::Kind::kUnixSocket)
    return absl::PermissionDeniedError(absl::StrCat(address, ": you may not open this socket"));
  return absl::UnavailableError(absl::StrCat(address, ": ", std::strerror(error)));
}

// Returns the error of connect(); 0: none.
int ConnectWithin(int socket, const sockaddr* address, socklen_t bytes, milliseconds limit) {
  if (connect(socket, address, bytes) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd ready{.fd = socket, .events = POLLOUT, .revents = 0};
  if (poll(&ready, 1, static_cast<int>(limit.count())) != 1) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

absl::StatusOr<Reached> ReachSocket(const Place& place, milliseconds limit) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (place.path.size() >= sizeof(address.sun_path)) return WhyNot(ENAMETOOLONG, place, place.path, limit);
  std::copy(place.path.begin(), place.path.end(), address.sun_path);
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int error =
      ConnectWithin(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address), limit);
  if (error != 0) return WhyNot(error, place, place.path, limit);
  return Reached{std::move(socket), place.path};
}

absl::StatusOr<Reached> ReachPort(const Place& place, const std::vector<std::string>& addresses,
                                  milliseconds limit) {
  absl::Status refusal = absl::UnavailableError(absl::StrCat(place.host, ": the name has no address"));
  for (const std::string& address : addresses) {
    const Place numeric = PlaceOf(address);
    addrinfo hints{};
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (getaddrinfo(numeric.host.c_str(), numeric.port.c_str(), &hints, &found) != 0) continue;
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
    FileDescriptor socket(::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const int error =
        socket.get() < 0 ? errno : ConnectWithin(socket.get(), found->ai_addr, found->ai_addrlen, limit);
    if (error == 0) return Reached{std::move(socket), address};
    refusal = WhyNot(error, place, address, limit);
  }
  return refusal;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ResolveWithin(milliseconds limit, const std::string& host,
                                                       const std::string& port) {
  using Answer = absl::StatusOr<std::vector<std::string>>;
  auto promise = std::make_shared<std::promise<Answer>>();
  std::future<Answer> answer = promise->get_future();
  std::thread([promise, host, port] { promise->set_value(client::ResolveByDns(host, port)); }).detach();
  if (answer.wait_for(limit) == std::future_status::ready) return answer.get();
  return absl::UnavailableError(
      absl::StrFormat("server address %s:%s: the name servers of this machine did not answer within %.3g s",
                      host, port, static_cast<double>(limit.count()) / 1000));
}

Place PlaceOf(const std::string& target) {
  absl::string_view rest = target;
  if (absl::ConsumePrefix(&rest, "unix:")) {
    absl::ConsumePrefix(&rest, "//");  // unix:///path
    return {.kind = Place::Kind::kUnixSocket, .host = "", .port = "", .path = std::string(rest)};
  }
  for (const char* other : {"unix-abstract:", "vsock:", "xds:"}) {
    if (absl::StartsWith(rest, other)) return {};
  }
  for (const char* scheme : {"dns:", "ipv4:", "ipv6:"}) absl::ConsumePrefix(&rest, scheme);
  const size_t colon = rest.rfind(':');
  if (colon == absl::string_view::npos) return {};
  absl::string_view host = rest.substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  return {.kind = Place::Kind::kTcp,
          .host = std::string(host),
          .port = std::string(rest.substr(colon + 1)),
          .path = ""};
}

absl::StatusOr<std::vector<std::string>> AddressesOf(const Place& place, milliseconds limit) {
  if (place.kind == Place::Kind::kUnixSocket) return std::vector<std::string>{place.path};
  return ResolveWithin(limit, place.host, place.port);
}

absl::StatusOr<Reached> Reach(const Place& place, const std::vector<std::string>& addresses,
                              milliseconds limit) {
  if (place.kind == Place::Kind::kUnixSocket) return ReachSocket(place, limit);
  return ReachPort(place, addresses, limit);
}

}  // namespace spexd::cli
