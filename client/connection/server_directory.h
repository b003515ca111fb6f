// The servers of an address, as its names stand now.
#ifndef SPEXD_CLIENT_CONNECTION_SERVER_DIRECTORY_H_
#define SPEXD_CLIENT_CONNECTION_SERVER_DIRECTORY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "client/connection/connection.h"
#include "client/connection/server_address.h"
#include "core/base/threads/mutex.h"

namespace spexd::client {

using Servers = std::vector<std::shared_ptr<Connection>>;
// Finds the servers that a job may go to now. There is one at least.
using ServerSource = std::function<absl::StatusOr<Servers>()>;

// Servers that stay as they are, and outlive the source.
ServerSource SameServers(const std::vector<Connection*>& servers);

// Looks names after "dns:///" up whenever it is asked: in a cluster, servers are replaced by others at other
// addresses. A server that is found again keeps its connection. Safe to use from many threads.
class ServerDirectory {
 public:
  using Connector = std::function<absl::StatusOr<std::unique_ptr<Connection>>(const Endpoint&)>;

  ServerDirectory(std::string address, Connector connect, Resolver resolve);

  // Errors of FindServers and of the connector. Where a name has no address now, or cannot be looked up, the
  // servers that were found last, if there were any: no server is ready, or only name servers are away.
  // Addresses of a name with which the connector fails are left out while there are other servers.
  absl::StatusOr<Servers> Find();
  ServerSource source() {
    return [this] { return Find(); };
  }

 private:
  struct Server {
    std::string target;
    std::shared_ptr<Connection> connection;
  };

  // Those of `found_` that are among the endpoints, and new ones.
  absl::StatusOr<std::vector<Server>> ServersAt(const std::vector<Endpoint>& endpoints) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string address_;
  const Connector connect_;
  const Resolver resolve_;
  Mutex mutex_;
  int64_t asked_ ABSL_GUARDED_BY(mutex_) = 0;  // number of look-ups that were begun
  int64_t known_ ABSL_GUARDED_BY(mutex_) = 0;  // which of them `found_` is of
  std::vector<Server> found_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_CONNECTION_SERVER_DIRECTORY_H_
