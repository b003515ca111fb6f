// A message of Extract's client, read where gRPC received it: a chunk's payload is not copied before it is
// where the whole input will be.
#ifndef SPEXD_SERVER_MESSAGES_RECEIVED_REQUEST_H_
#define SPEXD_SERVER_MESSAGES_RECEIVED_REQUEST_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/byte_buffer.h"
#include "spexd/v1/extraction.pb.h"

namespace spexd {

class ReceivedRequest {
 public:
  // gRPC puts the next message here.
  grpc::ByteBuffer* buffer() { return &buffer_; }
  // To be called once it has. InvalidArgument: it is no ExtractRequest.
  absl::Status Parse();

  // Valid after Parse, until Clear or the next message. A chunk has its payload in the pieces alone.
  const v1::ExtractRequest& message() const { return message_; }
  const std::vector<absl::string_view>& payload() const { return payload_; }
  void Clear();

 private:
  bool ParseChunk();

  grpc::ByteBuffer buffer_;
  v1::ExtractRequest message_;
  std::vector<absl::string_view> payload_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_MESSAGES_RECEIVED_REQUEST_H_
