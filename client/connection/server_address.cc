#include "client/connection/server_address.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"

namespace spexd::client {
namespace {

constexpr char kDnsPrefix[] = "dns:///";

absl::StatusOr<std::vector<Endpoint>> LookUp(absl::string_view name, const Resolver& resolve) {
  const size_t colon = name.rfind(':');
  if (colon == absl::string_view::npos || colon == 0 || colon + 1 == name.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("server address ", kDnsPrefix, ForMessage(name), " must be ", kDnsPrefix, "name:port"));
  }
  const std::string host(name.substr(0, colon));
  SPEXD_ASSIGN_OR_RETURN(std::vector<std::string> addresses,
                         resolve(host, std::string(name.substr(colon + 1))));
  // Name servers rotate them. The same request id begins with the same one only in the same order.
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
        absl::StrCat("server address ", host, ":", port, ": ", gai_strerror(error)));
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
