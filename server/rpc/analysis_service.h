// The service spexd.v1.Analysis.
#ifndef SPEXD_SERVER_RPC_ANALYSIS_SERVICE_H_
#define SPEXD_SERVER_RPC_ANALYSIS_SERVICE_H_

#include "server/detached/detached_jobs.h"
#include "server/jobs/server_parts.h"
#include "server/rpc/job_call.h"
#include "server/rpc/job_ids.h"
#include "spexd/v1/analysis.grpc.pb.h"

namespace spexd {

// Messages are sent and received as bytes (see JobReactor).
class AnalysisService final : public v1::Analysis::WithRawCallbackMethod_Analyse<v1::Analysis::Service> {
 public:
  explicit AnalysisService(const ServerParts& parts) : parts_(parts) {}
  // Sets the detached jobs whose results may be analysed; not owned. null: there are none. Call it before the
  // server starts.
  void TellOf(DetachedJobs* jobs) { detached_ = jobs; }

  JobReactor* Analyse(grpc::CallbackServerContext* context) override;

 private:
  const ServerParts parts_;
  DetachedJobs* detached_ = nullptr;
  JobIds ids_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_RPC_ANALYSIS_SERVICE_H_
