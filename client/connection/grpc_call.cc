#include "client/connection/grpc_call.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/connection/connection_error.h"
#include "core/base/trace_context.h"
#include "spexd/v1/rpc_details.pb.h"

namespace spexd::client {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kMaxDelayMs = 86400000;  // limit of a server's delay

std::optional<milliseconds> RetryDelay(const grpc::Status& status, const grpc::ClientContext& context) {
  v1::RpcStatus details;
  if (details.ParseFromString(status.error_details())) {
    for (const google::protobuf::Any& any : details.details()) {
      v1::RetryInfo info;
      if (absl::EndsWith(any.type_url(), "/google.rpc.RetryInfo") && info.ParseFromString(any.value())) {
        const int64_t seconds = std::clamp<int64_t>(info.retry_delay().seconds(), 0, kMaxDelayMs / 1000);
        return milliseconds(seconds * 1000 + std::max(info.retry_delay().nanos(), 0) / 1000000);
      }
    }
  }
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto pushback = trailers.find("grpc-retry-pushback-ms");
  int64_t value = 0;
  if (pushback != trailers.end() &&
      absl::SimpleAtoi(absl::string_view(pushback->second.data(), pushback->second.size()), &value) &&
      value >= 0) {
    return milliseconds(std::min(value, kMaxDelayMs));
  }
  return std::nullopt;
}

}  // namespace

GrpcCall::GrpcCall(std::string address, const CallMetadata& metadata, const Connection::Deadline& deadline)
    : address_(std::move(address)) {
  if (deadline.has_value()) context_.set_deadline(*deadline);
  if (!metadata.token.empty()) context_.AddMetadata("authorization", "Bearer " + metadata.token);
  if (!metadata.traceparent.empty()) context_.AddMetadata(kTraceHeader, metadata.traceparent);
}

absl::Status GrpcCall::StatusOf(const grpc::Status& status) const {
  if (status.ok()) return absl::OkStatus();
  const auto code = static_cast<absl::StatusCode>(status.error_code());  // the codes have the same numbers
  // This is gRPC's own answer if the server is shutting down.
  if (code == absl::StatusCode::kCancelled && status.error_message() == "CANCELLED" && !cancelled_) {
    return absl::UnavailableError(absl::StrCat("spexd at ", address_, ": the server stops"));
  }
  std::string message = ExplainConnectionError(status.error_message());
  if (code == absl::StatusCode::kUnavailable || message != status.error_message())
    message = absl::StrCat("spexd at ", address_, ": ", message);
  return absl::Status(code, message);
}

CallResult GrpcCall::ResultOf(const grpc::Status& status) const {
  return {StatusOf(status), RetryDelay(status, context_)};
}

}  // namespace spexd::client
