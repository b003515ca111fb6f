// The client of Analyse: it runs analyses on a spexd server, or on one of several.
#ifndef SPEXD_CLIENT_ANALYSIS_ANALYSIS_CLIENT_H_
#define SPEXD_CLIENT_ANALYSIS_ANALYSIS_CLIENT_H_

#include <stop_token>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/analysis/analysis_job.h"
#include "client/balance/server_balancer.h"
#include "client/connection/connection.h"
#include "client/connection/server_directory.h"
#include "client/extract_client.h"

namespace spexd::client {

// Analyses are shared among servers and retried as jobs of RemoteExtractor are. An analysis of detached jobs
// (kJobPrefix), whose frames are on one server, is tried on all servers until one has them.
class RemoteAnalyser {
 public:
  explicit RemoteAnalyser(ServerSource find, RemoteOptions options = {})
      : find_(std::move(find)), options_(options), balancer_(MakeRandom(options.retry)()) {}
  // The servers outlive this object. REQUIRES: there is at least one.
  explicit RemoteAnalyser(const std::vector<Connection*>& servers, RemoteOptions options = {})
      : RemoteAnalyser(SameServers(servers), options) {}
  explicit RemoteAnalyser(Connection* server, RemoteOptions options = {})
      : RemoteAnalyser(std::vector<Connection*>{server}, options) {}

  // Runs the job and returns all files. A file that could not be made has a status of its own. `observer` may
  // be null. A stop request cancels the job. InvalidArgument as in MakeAnalysisHeader; other errors as in
  // Extractor::Run.
  absl::StatusOr<AnalysisOutcome> Run(const AnalysisJob& job, JobObserver* observer, std::stop_token stop);

 private:
  absl::StatusOr<AnalysisOutcome> RunAttempts(const AnalysisJob& job, JobObserver* observer,
                                              const std::stop_token& stop);

  const ServerSource find_;
  const RemoteOptions options_;
  ServerBalancer balancer_;
};

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_ANALYSIS_ANALYSIS_CLIENT_H_
