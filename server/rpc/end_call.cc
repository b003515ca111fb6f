#include "server/rpc/end_call.h"

#include "absl/strings/str_cat.h"
#include "core/base/threads/guard.h"
#include "server/base/retry.h"

namespace spexd {

grpc::Status EndCall(const absl::Status& status, grpc::ServerContextBase* context,
                     Metrics* metrics) noexcept {
  grpc::Status answer(grpc::StatusCode::RESOURCE_EXHAUSTED, "");
  CatchExceptions([&] {
    metrics->CountRefusal(status);
    if (const auto delay = RetryDelayOf(status); delay.has_value()) {
      context->AddTrailingMetadata("grpc-retry-pushback-ms", absl::StrCat(delay->count()));
    }
    answer = ToGrpcStatus(status);
  }).IgnoreError();
  return answer;
}

}  // namespace spexd
