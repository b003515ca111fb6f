#include "client/connection/server_address.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"

namespace spexd::client {
namespace {

constexpr char kDnsPrefix[] = "dns:///";

absl::Status NoPort(absl::string_view address, absl::string_view example) {
  return absl::InvalidArgumentError(absl::StrCat("server address ", ForMessage(address),
                                                 " has no port; give host:port, such as ", example,
                                                 " (50051 is spexd's default)"));
}

// Refuses a target to which gRPC would not connect, or would connect at a port that the user did not name.
absl::Status CheckTarget(absl::string_view target) {
  for (const char* scheme : {"unix:", "unix-abstract:", "vsock:", "xds:", kDnsPrefix}) {
    if (absl::StartsWith(target, scheme)) return absl::OkStatus();
  }
  if (const size_t scheme = target.find("://"); scheme != absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("server address ", ForMessage(target), " must be host:port, without ",
                     ForMessage(target.substr(0, scheme + 3)), "; such as localhost:50051"));
  }
  absl::string_view address = target;
  for (const char* scheme : {"dns:", "ipv4:", "ipv6:"}) absl::ConsumePrefix(&address, scheme);
  const size_t bracket = address.rfind(']'), colon = address.rfind(':');
  const absl::string_view host = address.substr(0, colon);
  int port = 0;
  if (bracket == absl::string_view::npos && absl::StrContains(host, ':') && colon != absl::string_view::npos) {
    return NoPort(target, absl::StrCat("[", ForMessage(address), "]:50051"));  // an IPv6 address without port
  }
  if (colon == absl::string_view::npos || (bracket != absl::string_view::npos && bracket > colon)) {
    return NoPort(target, absl::StrCat(ForMessage(address), ":50051"));
  }
  if (host.empty()) return NoPort(target, "localhost:50051");
  if (absl::SimpleAtoi(address.substr(colon + 1), &port) && port >= 1 && port <= 65535) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("server address ", ForMessage(target),
                                                 ": the port must be a number from 1 to 65535, such as ",
                                                 ForMessage(host), ":50051"));
}

absl::StatusOr<std::vector<Endpoint>> LookUp(absl::string_view name, const Resolver& resolve) {
  const size_t colon = name.rfind(':');
  if (colon == absl::string_view::npos || colon == 0 || colon + 1 == name.size()) {
    return absl::InvalidArgumentError(absl::StrCat("server address ", kDnsPrefix, ForMessage(name), " must be ",
                                                   kDnsPrefix, "name:port, such as ", kDnsPrefix,
                                                   "spexd.example:50051"));
  }
  const std::string host(name.substr(0, colon));
  SPEXD_ASSIGN_OR_RETURN(std::vector<std::string> addresses,
                         resolve(host, std::string(name.substr(colon + 1))));
  // Name servers rotate addresses. Sorting gives a request id the same first server each time.
  std::sort(addresses.begin(), addresses.end());
  std::vector<Endpoint> servers;
  for (const std::string& address : addresses) servers.push_back({address, host});
  return servers;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ResolveByDns(const std::string& host, const std::string& port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) {
    return absl::UnavailableError(
        absl::StrCat("server address ", host, ":", port, ": ", gai_strerror(error),
                     "; check the name's spelling, and the name servers of this machine"));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  std::vector<std::string> addresses;
  for (; found != nullptr; found = found->ai_next) {
    char ip[NI_MAXHOST], number[NI_MAXSERV];
    if (getnameinfo(found->ai_addr, found->ai_addrlen, ip, sizeof(ip), number, sizeof(number),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
      continue;
    }
    addresses.push_back(found->ai_family == AF_INET6 ? absl::StrCat("[", ip, "]:", number)
                                                     : absl::StrCat(ip, ":", number));
  }
  return addresses;
}

absl::StatusOr<std::vector<Endpoint>> FindServers(const std::string& address, const Resolver& resolve) {
  std::vector<Endpoint> servers;
  for (const absl::string_view part : absl::StrSplit(address, ',')) {
    absl::string_view one = absl::StripAsciiWhitespace(part);
    if (one.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("server address \"", ForMessage(address), "\" has an empty part"));
    }
    SPEXD_RETURN_IF_ERROR(CheckTarget(one));
    std::vector<Endpoint> more = {{std::string(one), ""}};
    if (absl::ConsumePrefix(&one, kDnsPrefix)) {
      SPEXD_ASSIGN_OR_RETURN(more, LookUp(one, resolve));
    }
    for (Endpoint& server : more) {
      const auto same = [&server](const Endpoint& other) { return other.target == server.target; };
      if (std::none_of(servers.begin(), servers.end(), same)) servers.push_back(std::move(server));
    }
  }
  if (servers.empty())
    return absl::UnavailableError(absl::StrCat("server address ", ForMessage(address), " names no server"));
  return servers;
}

}  // namespace spexd::client
