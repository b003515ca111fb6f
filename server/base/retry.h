// Errors that tell the client when to try again, and conversion of errors for the client.
#ifndef SPEXD_SERVER_BASE_RETRY_H_
#define SPEXD_SERVER_BASE_RETRY_H_

#include <chrono>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"

namespace spexd {

// `status` with a google.rpc.RetryInfo payload.
absl::Status WithRetryDelay(absl::Status status, std::chrono::milliseconds delay);
std::optional<std::chrono::milliseconds> RetryDelayOf(const absl::Status& status);

// The same code and message; payloads become the details of grpc-status-details-bin.
grpc::Status ToGrpcStatus(const absl::Status& status);

// The status that ends a call, after its delay for a retry, if any, was put into the trailing metadata too.
// ResourceExhausted without a word where there is no memory for that.
grpc::Status EndCall(const absl::Status& status, grpc::ServerContextBase* context) noexcept;

// "ok", "invalid_argument", ...: the label of a status in metrics and logs.
std::string CodeLabel(absl::StatusCode code);

}  // namespace spexd

#endif  // SPEXD_SERVER_BASE_RETRY_H_
