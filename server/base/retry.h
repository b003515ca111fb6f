// Refusals, retry delays and conversion of errors for the client.
#ifndef SPEXD_SERVER_BASE_RETRY_H_
#define SPEXD_SERVER_BASE_RETRY_H_

#include <chrono>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace spexd {

// Retry delays after a device failed (short, since the server has others) and after the whole engine failed
// (long enough for a restart of the server).
inline constexpr std::chrono::milliseconds kAfterDeviceFailure(100), kAfterEngineFailure(2000);

// Returns `status` with a retry delay, as a payload google.rpc.RetryInfo.
absl::Status WithRetryDelay(absl::Status status, std::chrono::milliseconds delay);
std::optional<std::chrono::milliseconds> RetryDelayOf(const absl::Status& status);

// Returns `status` as the refusal of a call or a job. `reason`: a label of spexd_rejections_total; EndCall
// counts the refusal. `delay`: when the client should retry; nullopt: a retry alone does not help.
absl::Status Refuse(absl::Status status, const std::string& reason,
                    std::optional<std::chrono::milliseconds> delay = std::nullopt);
// Returns the reason of a refusal; "" for other errors.
std::string ReasonOf(const absl::Status& status);
// Returns `shown` for a caller that may not know that something exists. `why`: the denial, which stays on the
// server, for the audit log.
absl::Status Conceal(absl::Status shown, const std::string& why);
// Returns the denial that `status` conceals as PermissionDenied; `status` itself if it conceals none.
absl::Status Revealed(const absl::Status& status);
// Returns the refusal of a draining server, which is Unavailable.
absl::Status RefuseWhileDraining();

// Returns the same code and message, with the retry delay in grpc-status-details-bin. The reason of a refusal
// and a concealed denial stay on the server.
grpc::Status ToGrpcStatus(const absl::Status& status);

// Returns the label of a status in metrics and logs: "ok", "invalid_argument", ...
std::string CodeLabel(absl::StatusCode code);

}  // namespace spexd

#endif  // SPEXD_SERVER_BASE_RETRY_H_
