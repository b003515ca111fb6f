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
  // Not under the lock: name servers may take seconds.
  const absl::StatusOr<std::vector<Endpoint>> endpoints = FindServers(address_, resolve_);
  const MutexLock lock(&mutex_);
  if (!endpoints.ok() && found_.empty()) return endpoints.status();
  if (endpoints.ok() && number > known_) {  // else a later look-up was faster
    known_ = number;
    std::vector<Server> now;
    for (const Endpoint& endpoint : *endpoints) {
      const auto known = std::find_if(found_.begin(), found_.end(), [&endpoint](const Server& server) {
        return server.target == endpoint.target;
      });
      if (known != found_.end()) {
        now.push_back(*known);
        continue;
      }
      SPEXD_ASSIGN_OR_RETURN(std::unique_ptr<Connection> made, connect_(endpoint));
      now.push_back({endpoint.target, std::move(made)});
    }
    found_ = std::move(now);
  }
  Servers servers;
  for (const Server& server : found_) servers.push_back(server.connection);
  return servers;
}

}  // namespace spexd::client
