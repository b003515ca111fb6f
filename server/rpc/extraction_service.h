// spexd.v1.Extraction.
#ifndef SPEXD_SERVER_RPC_EXTRACTION_SERVICE_H_
#define SPEXD_SERVER_RPC_EXTRACTION_SERVICE_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "server/jobs/server_parts.h"
#include "server/rpc/extract_call.h"
#include "server/security/identity.h"
#include "spexd/v1/extraction.grpc.pb.h"

namespace spexd {

class DetachedJobs;

// Extract's messages come and go as bytes: see received_request.h and event_messages.h.
using ExtractionCallbacks = v1::Extraction::WithRawCallbackMethod_Extract<
    v1::Extraction::WithCallbackMethod_GetCapabilities<v1::Extraction::Service>>;

class ExtractionService final : public ExtractionCallbacks {
 public:
  explicit ExtractionService(const ServerParts& parts);
  // Jobs that GetCapabilities tells of, not owned; null: there are none. Call it before calls come.
  void TellOf(const DetachedJobs* jobs) { detached_ = jobs; }

  ExtractCall::Reactor* Extract(grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* GetCapabilities(grpc::CallbackServerContext* context,
                                            const v1::GetCapabilitiesRequest* request,
                                            v1::Capabilities* response) override;

  // The answer of GetCapabilities to a caller with these shares. It asks the engine, which may block.
  v1::Capabilities Status(const Shares& shares = {}) const;

 private:
  const ServerParts parts_;
  const DetachedJobs* detached_ = nullptr;
  const std::string job_prefix_;  // differs from one start of the server to the next
  std::atomic<uint64_t> jobs_ = 0;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_RPC_EXTRACTION_SERVICE_H_
