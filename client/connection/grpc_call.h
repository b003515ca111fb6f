// The common part of all gRPC calls to a server.
#ifndef SPEXD_CLIENT_CONNECTION_GRPC_CALL_H_
#define SPEXD_CLIENT_CONNECTION_GRPC_CALL_H_

#include <grpcpp/client_context.h>

#include <atomic>
#include <string>

#include "absl/status/status.h"
#include "client/connection/connection.h"

namespace spexd::client {

// The metadata that is sent with each call; "" is not sent.
struct CallMetadata {
  std::string token = {};
  std::string traceparent = {};  // a valid one
};

class GrpcCall {
 public:
  // `address`: that of the server, for messages.
  GrpcCall(std::string address, const CallMetadata& metadata, const Connection::Deadline& deadline);

  grpc::ClientContext* context() { return &context_; }
  // Cancels the call. May be called from any thread.
  void Cancel() {
    cancelled_ = true;
    context_.TryCancel();
  }
  // Returns the status of the call. Unavailable names the server. gRPC's own CANCELLED of a server that is
  // shutting down becomes Unavailable.
  absl::Status StatusOf(const grpc::Status& status) const;
  // Returns the status with the server's RetryInfo or pushback. Call it after the call has ended.
  CallResult ResultOf(const grpc::Status& status) const;

 private:
  const std::string address_;
  grpc::ClientContext context_;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_CONNECTION_GRPC_CALL_H_
