// The end of every call.
#ifndef SPEXD_SERVER_CALLS_END_CALL_H_
#define SPEXD_SERVER_CALLS_END_CALL_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/server_context.h"
#include "server/base/retry.h"
#include "server/operation/metrics.h"

namespace spexd {

// Returns the gRPC status of a call that ends with `status`. Counts a refusal, and sets the retry delay in
// the metadata that gRPC's own retries read.
inline grpc::Status EndCall(const absl::Status& status, grpc::ServerContextBase* context,
                            Metrics* metrics) noexcept {
  metrics->CountRefusal(status);
  if (const auto delay = RetryDelayOf(status); delay.has_value())
    context->AddTrailingMetadata("grpc-retry-pushback-ms", absl::StrCat(delay->count()));
  return ToGrpcStatus(status);
}

}  // namespace spexd

#endif  // SPEXD_SERVER_CALLS_END_CALL_H_
