// spexd.v1.Extraction.
#ifndef SPEXD_SERVER_EXTRACTION_SERVICE_H_
#define SPEXD_SERVER_EXTRACTION_SERVICE_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "server/server_parts.h"
#include "spexd/v1/extraction.grpc.pb.h"

namespace spexd {

class ExtractionService final : public v1::Extraction::Service {
 public:
  explicit ExtractionService(const ServerParts& parts);

  grpc::Status Extract(grpc::ServerContext* context,
                       grpc::ServerReaderWriter<v1::ExtractEvent, v1::ExtractRequest>* stream) override;
  grpc::Status GetCapabilities(grpc::ServerContext* context, const v1::GetCapabilitiesRequest* request,
                               v1::Capabilities* response) override;

  // As GetCapabilities; for the status page.
  v1::Capabilities Status() const;

 private:
  const ServerParts parts_;
  const std::string job_prefix_;  // differs from one start of the server to the next
  std::atomic<uint64_t> jobs_ = 0;
};

// Ends a call: trailing metadata for retries, then the status.
grpc::Status EndCall(const absl::Status& status, grpc::ServerContext* context);

}  // namespace spexd

#endif  // SPEXD_SERVER_EXTRACTION_SERVICE_H_
