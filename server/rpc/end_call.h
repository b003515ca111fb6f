// How every call ends.
#ifndef SPEXD_SERVER_RPC_END_CALL_H_
#define SPEXD_SERVER_RPC_END_CALL_H_

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"
#include "server/operation/metrics.h"

namespace spexd {

// The status that ends a call. A refusal is counted; its delay, if it has one, is put into the trailing
// metadata, too. A call without an end would hang: the process ends if there is no memory for it.
grpc::Status EndCall(const absl::Status& status, grpc::ServerContextBase* context, Metrics* metrics) noexcept;

}  // namespace spexd

#endif  // SPEXD_SERVER_RPC_END_CALL_H_
