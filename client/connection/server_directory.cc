#include "client/connection/server_directory.h"

#include <algorithm>
#include <utility>

#include "core/base/status_macros.h"

namespace spexd::client {

ServerSource SameServers(const std::vector<Connection*>& servers) {
  Servers same;
  for (Connection* server : servers) same.emplace_back(std::shared_ptr<void>(), server);  // owns nothing
  return [same] { return same; };
}

ServerDirectory::ServerDirectory(std::string address, Connector connect, Resolver resolve)
    : address_(std::move(address)), connect_(std::move(connect)), resolve_(std::move(resolve)) {}

absl::StatusOr<Servers> ServerDirectory::Find() {
  const int64_t number = (MutexLock(&mutex_), ++asked_);
  // The lock is not held, because name servers may take seconds.
  const absl::StatusOr<std::vector<Endpoint>> endpoints = FindServers(address_, resolve_);
  const MutexLock lock(&mutex_);
  if (!endpoints.ok() && found_.empty()) return endpoints.status();
  if (endpoints.ok() && number > known_) {  // false: a later look-up was faster
    known_ = number;
    SPEXD_ASSIGN_OR_RETURN(found_, ServersAt(*endpoints));
  }
  Servers servers;
  for (const Server& server : found_) servers.push_back(server.connection);
  return servers;
}

absl::StatusOr<std::vector<ServerDirectory::Server>> ServerDirectory::ServersAt(
    const std::vector<Endpoint>& endpoints) const {
  std::vector<Server> servers;
  absl::Status refusal;
  for (const Endpoint& endpoint : endpoints) {
    const auto known = std::find_if(found_.begin(), found_.end(), [&endpoint](const Server& server) {
      return server.target == endpoint.target;
    });
    if (known != found_.end()) {
      servers.push_back(*known);
      continue;
    }
    absl::StatusOr<std::unique_ptr<Connection>> made = connect_(endpoint);
    if (made.ok()) {
      servers.push_back({endpoint.target, *std::move(made)});
    } else {
      if (endpoint.tls_name.empty()) return made.status();  // the user named this address itself
      refusal.Update(made.status());
    }
  }
  if (servers.empty()) return refusal;
  return servers;
}

}  // namespace spexd::client
