#include "client/analysis/analysis_client.h"

#include <algorithm>
#include <memory>
#include <set>

#include "absl/strings/str_cat.h"
#include "client/analysis/analysis_request.h"
#include "client/analysis/file_assembler.h"
#include "client/job_call.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"

namespace spexd::client {
namespace {

// Makes one attempt. Sets `outcome` if it ended well.
Attempt AnalyseOnce(const AnalysisJob& job, const v1::AnalysisHeader& header, AnalyseStream* stream,
                    JobObserver* observer, AnalysisOutcome* outcome) {
  FileAssembler assembler(header, observer);
  const auto finish = [&]() -> absl::Status {
    SPEXD_ASSIGN_OR_RETURN(*outcome, assembler.Finish());
    return absl::OkStatus();
  };
  return ReadCall(SendAnalysis(job, header, stream), stream, &assembler, finish);
}

// The servers that do not have the detached jobs of an analysis.
class ServersWithoutJobs {
 public:
  explicit ServersWithoutJobs(const ServerSource& find) : find_(find) {}

  // Adds `server`. Returns whether some other server may have the jobs.
  bool AreNotAll(const Connection* server) {
    without_.insert(server);
    const absl::StatusOr<Servers> servers = find_();
    return servers.ok() && std::any_of(servers->begin(), servers->end(), [this](const auto& other) {
             return without_.count(other.get()) == 0;
           });
  }

 private:
  const ServerSource& find_;
  std::set<const Connection*> without_;
};

}  // namespace

absl::StatusOr<AnalysisOutcome> RemoteAnalyser::Run(const AnalysisJob& job, JobObserver* observer,
                                                    std::stop_token stop) {
  return CatchExceptions([&] { return RunAttempts(job, observer, stop); });
}

absl::StatusOr<AnalysisOutcome> RemoteAnalyser::RunAttempts(const AnalysisJob& job, JobObserver* observer,
                                                            const std::stop_token& stop) {
  SPEXD_ASSIGN_OR_RETURN(const v1::AnalysisHeader header, MakeAnalysisHeader(job, options_.upload));
  const bool of_jobs = std::any_of(header.spectra().begin(), header.spectra().end(),
                                   [](const v1::SpectraSource& source) { return source.has_job_id(); });
  // There is no balancer for detached jobs, because a server that lacks the jobs is not slow.
  const AttemptLimits limits = {
      .retry = options_.retry, .deadline = job.deadline, .balancer = of_jobs ? nullptr : &balancer_};
  ServersWithoutJobs unknowing(find_);
  AnalysisOutcome outcome;
  SPEXD_RETURN_IF_ERROR(TryCalls(
      find_, limits, observer, stop, [&](Connection* server) { return server->Analyse(job.deadline); },
      [&](Connection* server, AnalyseStream* stream) {
        Attempt attempt = AnalyseOnce(job, header, stream, observer, &outcome);
        if (of_jobs && absl::IsNotFound(attempt.status) && unknowing.AreNotAll(server))
          attempt.then = Attempt::Then::kElsewhere;
        if (absl::IsUnimplemented(attempt.status)) {
          attempt.status = absl::UnimplementedError(
              absl::StrCat("spexd at ", server->address(), ": is too old to analyse files (",
                           attempt.status.message(), "); analyse them here, or on a newer server"));
        }
        return attempt;
      }));
  return outcome;
}

}  // namespace spexd::client
