// The service spexd.v1.Extraction.
#ifndef SPEXD_SERVER_RPC_EXTRACTION_SERVICE_H_
#define SPEXD_SERVER_RPC_EXTRACTION_SERVICE_H_

#include "server/jobs/server_parts.h"
#include "server/rpc/job_call.h"
#include "server/rpc/job_ids.h"
#include "server/security/identity.h"
#include "spexd/v1/extraction.grpc.pb.h"

namespace spexd {

class DetachedJobs;

// Extract's messages are sent and received as bytes (see JobReactor).
using ExtractionCallbacks = v1::Extraction::WithRawCallbackMethod_Extract<
    v1::Extraction::WithCallbackMethod_GetCapabilities<v1::Extraction::Service>>;

class ExtractionService final : public ExtractionCallbacks {
 public:
  explicit ExtractionService(const ServerParts& parts) : parts_(parts) {}
  // Sets the detached jobs that GetCapabilities reports; not owned. null: there are none. Call it before the
  // server starts.
  void TellOf(const DetachedJobs* jobs) { detached_ = jobs; }

  JobReactor* Extract(grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* GetCapabilities(grpc::CallbackServerContext* context,
                                            const v1::GetCapabilitiesRequest* request,
                                            v1::Capabilities* response) override;

  // Returns the answer of GetCapabilities to a caller with these shares. May block, because it asks the
  // engine.
  v1::Capabilities Status(const Shares& shares = {}) const;

 private:
  const ServerParts parts_;
  const DetachedJobs* detached_ = nullptr;
  JobIds ids_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_RPC_EXTRACTION_SERVICE_H_
