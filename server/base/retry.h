// Refusals, errors that tell the client when to try again, and conversion of errors for the client.
#ifndef SPEXD_SERVER_BASE_RETRY_H_
#define SPEXD_SERVER_BASE_RETRY_H_

#include <chrono>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace spexd {

// Delays before a job is tried again: after a device failed (short, since the server has others), and after
// the whole engine did (long enough for a restart of the server).
inline constexpr std::chrono::milliseconds kAfterDeviceFailure(100), kAfterEngineFailure(2000);

// `status` with a google.rpc.RetryInfo payload.
absl::Status WithRetryDelay(absl::Status status, std::chrono::milliseconds delay);
std::optional<std::chrono::milliseconds> RetryDelayOf(const absl::Status& status);

// `status` as the refusal of a call or a job for `reason`, a label of spexd_rejections_total: EndCall counts
// it, wherever it was refused. With `delay` the client should come again then; without one, to come again
// does not help by itself.
absl::Status Refuse(absl::Status status, const std::string& reason,
                    std::optional<std::chrono::milliseconds> delay = std::nullopt);
// The reason of a refusal; "" for other errors.
std::string ReasonOf(const absl::Status& status);
// `shown`, as the answer to a caller that may not know that what it asked for is there. `why` it was denied
// stays on the server, for the audit log.
absl::Status Conceal(absl::Status shown, const std::string& why);
// PermissionDenied with the reason that `status` conceals; `status` itself if it conceals none.
absl::Status Revealed(const absl::Status& status);
// The refusal of a server that drains.
absl::Status RefuseWhileDraining();

// The same code and message; the delay becomes a detail of grpc-status-details-bin. A refusal's reason and
// what is concealed stay on the server.
grpc::Status ToGrpcStatus(const absl::Status& status);

// "ok", "invalid_argument", ...: the label of a status in metrics and logs.
std::string CodeLabel(absl::StatusCode code);

}  // namespace spexd

#endif  // SPEXD_SERVER_BASE_RETRY_H_
