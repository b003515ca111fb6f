#include "server/rpc/end_call.h"

#include "absl/strings/str_cat.h"
#include "server/base/retry.h"

namespace spexd {

grpc::Status EndCall(const absl::Status& status, grpc::ServerContextBase* context,
                     Metrics* metrics) noexcept {
  metrics->CountRefusal(status);
  if (const auto delay = RetryDelayOf(status); delay.has_value()) {
    context->AddTrailingMetadata("grpc-retry-pushback-ms", absl::StrCat(delay->count()));
  }
  return ToGrpcStatus(status);
}

}  // namespace spexd
