// The client of Extract: it runs jobs on a spexd server, or on one of several.
#ifndef SPEXD_CLIENT_EXTRACT_CLIENT_H_
#define SPEXD_CLIENT_EXTRACT_CLIENT_H_

#include <utility>
#include <vector>

#include "client/balance/server_balancer.h"
#include "client/connection/connection.h"
#include "client/connection/retry_policy.h"
#include "client/connection/server_directory.h"
#include "client/job.h"

namespace spexd::client {

struct RemoteOptions {
  bool upload =
      false;  // send the files' bytes; false: their absolute paths, which the server must see and allow
  RetryPolicy retry;
};

// Each job goes first to the server that is expected to finish it first (see ServerSpeeds), so that servers
// share the jobs by their speeds. The first job goes to a random one. A refused job is tried again (see
// RetryPolicy), at once on another server, and later when all have refused it. This is safe because jobs have
// no side effects. A job that a server has taken is tried again only if the server asks for it (its device
// failed, for example) or the answer was damaged, and never once bundles have arrived. Safe to use from many
// threads.
class RemoteExtractor : public Extractor {
 public:
  // Every job asks `find` for its servers when it begins, and again when all have refused it.
  explicit RemoteExtractor(ServerSource find, RemoteOptions options = {})
      : find_(std::move(find)), options_(options), balancer_(MakeRandom(options.retry)()) {}
  // The servers outlive this object. REQUIRES: there is at least one.
  explicit RemoteExtractor(const std::vector<Connection*>& servers, RemoteOptions options = {})
      : RemoteExtractor(SameServers(servers), options) {}
  explicit RemoteExtractor(Connection* server, RemoteOptions options = {})
      : RemoteExtractor(std::vector<Connection*>{server}, options) {}

  absl::StatusOr<JobOutcome> Run(const Job& job, JobObserver* observer, std::stop_token stop) override;

 private:
  absl::StatusOr<JobOutcome> RunAttempts(const Job& job, JobObserver* observer, const std::stop_token& stop);

  const ServerSource find_;
  const RemoteOptions options_;
  ServerBalancer balancer_;
};

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_EXTRACT_CLIENT_H_
