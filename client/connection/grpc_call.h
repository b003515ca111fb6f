// What every gRPC call to a server has.
#ifndef SPEXD_CLIENT_CONNECTION_GRPC_CALL_H_
#define SPEXD_CLIENT_CONNECTION_GRPC_CALL_H_

#include <grpcpp/client_context.h>

#include <atomic>
#include <string>

#include "absl/status/status.h"
#include "client/connection/connection.h"

namespace spexd::client {

// What is sent along with each call, unless "".
struct CallMetadata {
  std::string token = {};
  std::string traceparent = {};  // valid
};

class GrpcCall {
 public:
  // `address`: the server's, for messages.
  GrpcCall(std::string address, const CallMetadata& metadata, const Connection::Deadline& deadline);

  grpc::ClientContext* context() { return &context_; }
  // Ends the call from this side. From any thread.
  void Cancel() {
    cancelled_ = true;
    context_.TryCancel();
  }
  // What the call ended with; Unavailable names the server, and is also gRPC's own CANCELLED of a server that
  // shuts down.
  absl::Status StatusOf(const grpc::Status& status) const;
  // The same, with the server's RetryInfo or pushback. Once the call has ended.
  CallResult ResultOf(const grpc::Status& status) const;

 private:
  const std::string address_;
  grpc::ClientContext context_;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_CONNECTION_GRPC_CALL_H_
