// The directory of servers: the current servers of an address.
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
// Returns the servers to which a job may go at present, at least one.
using ServerSource = std::function<absl::StatusOr<Servers>()>;

// Returns a source of fixed servers, which outlive it.
ServerSource SameServers(const std::vector<Connection*>& servers);

// Looks up names after "dns:///" at each Find, because in a cluster servers are replaced by others at other
// addresses. A server that is found again keeps its connection. Safe to use from many threads.
class ServerDirectory {
 public:
  using Connector = std::function<absl::StatusOr<std::unique_ptr<Connection>>(const Endpoint&)>;

  ServerDirectory(std::string address, Connector connect, Resolver resolve);

  // Returns the current servers. If a name has no address or cannot be looked up, returns the servers that
  // were found last, if any. Addresses of a name for which the connector fails are left out while there are
  // other servers. Errors of FindServers and of the connector.
  absl::StatusOr<Servers> Find();
  ServerSource source() {
    return [this] { return Find(); };
  }

 private:
  struct Server {
    std::string target;
    std::shared_ptr<Connection> connection;
  };

  // Returns the servers of the endpoints: those of `found_`, and new ones.
  absl::StatusOr<std::vector<Server>> ServersAt(const std::vector<Endpoint>& endpoints) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string address_;
  const Connector connect_;
  const Resolver resolve_;
  Mutex mutex_;
  int64_t asked_ ABSL_GUARDED_BY(mutex_) = 0;  // number of look-ups that began
  int64_t known_ ABSL_GUARDED_BY(mutex_) = 0;  // number of the look-up of `found_`
  std::vector<Server> found_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_CONNECTION_SERVER_DIRECTORY_H_
