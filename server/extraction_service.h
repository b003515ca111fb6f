// spexd.v1.Extraction.
#ifndef SPEXD_SERVER_EXTRACTION_SERVICE_H_
#define SPEXD_SERVER_EXTRACTION_SERVICE_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "server/call_threads.h"
#include "server/server_parts.h"
#include "spexd/v1/extraction.grpc.pb.h"

namespace spexd {

// Extract runs on its own threads, the other calls on gRPC's.
class ExtractionService final : public v1::Extraction::WithCallbackMethod_Extract<v1::Extraction::Service> {
 public:
  // `most_calls`: maximum number of Extract calls at once.
  ExtractionService(const ServerParts& parts, int most_calls);

  grpc::ServerBidiReactor<v1::ExtractRequest, v1::ExtractEvent>* Extract(
      grpc::CallbackServerContext* context) override;
  grpc::Status GetCapabilities(grpc::ServerContext* context, const v1::GetCapabilitiesRequest* request,
                               v1::Capabilities* response) override;

  // The answer of GetCapabilities, for the status page.
  v1::Capabilities Status() const;

 private:
  const ServerParts parts_;
  const std::string job_prefix_;  // differs from one start of the server to the next
  std::atomic<uint64_t> jobs_ = 0;
  CallThreads calls_;  // last member: calls end first
};

// Ends a call: trailing metadata for retries, then the status.
grpc::Status EndCall(const absl::Status& status, grpc::ServerContextBase* context);

}  // namespace spexd

#endif  // SPEXD_SERVER_EXTRACTION_SERVICE_H_
