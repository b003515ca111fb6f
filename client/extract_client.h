// Runs jobs on a spexd server, or on the first of several that takes them.
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
      false;  // send the files' bytes; else their absolute paths, which the server must see and allow
  RetryPolicy retry;
};

// Each job begins with the server that is expected to finish it first (see ServerSpeeds), the first one with
// a random server, so that servers share the jobs by their speeds. A job is pure, so a refused one is tried
// again (see RetryPolicy): on another server at once, and later where all have refused. Never once bundles
// have arrived.
class RemoteExtractor : public Extractor {
 public:
  // Each job goes to servers that `find` finds when it begins, or later, where all have refused it.
  explicit RemoteExtractor(ServerSource find, RemoteOptions options = {})
      : find_(std::move(find)), options_(options), balancer_(MakeRandom(options.retry)()) {}
  // The servers must outlive this. REQUIRES: there is one.
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
