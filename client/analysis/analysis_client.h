// Runs analyses on a spexd server, or on the first of several that takes them.
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

// Analyses are shared among servers, and tried again, as RemoteExtractor's jobs are. Frames of detached jobs
// (kJobPrefix) are on one server: such an analysis is offered to all servers until one knows them.
class RemoteAnalyser {
 public:
  explicit RemoteAnalyser(ServerSource find, RemoteOptions options = {})
      : find_(std::move(find)), options_(options), balancer_(MakeRandom(options.retry)()) {}
  // The servers must outlive this. REQUIRES: there is one.
  explicit RemoteAnalyser(const std::vector<Connection*>& servers, RemoteOptions options = {})
      : RemoteAnalyser(SameServers(servers), options) {}
  explicit RemoteAnalyser(Connection* server, RemoteOptions options = {})
      : RemoteAnalyser(std::vector<Connection*>{server}, options) {}

  // Runs the job and returns when all files are there; one that could not be made has a status of its own.
  // `observer` may be null; a stop of `stop` cancels the job. InvalidArgument as MakeAnalysisHeader;
  // otherwise the errors of Extractor::Run.
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
