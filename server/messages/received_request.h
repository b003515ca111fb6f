// A message of a client of Extract or Analyse. It refers to gRPC's buffer, so that the payload of a chunk is
// copied only once, to its position in the whole input.
#ifndef SPEXD_SERVER_MESSAGES_RECEIVED_REQUEST_H_
#define SPEXD_SERVER_MESSAGES_RECEIVED_REQUEST_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/byte_buffer.h"
#include "spexd/v1/analysis.pb.h"
#include "spexd/v1/extraction.pb.h"

namespace spexd {

// `Message`: ExtractRequest or AnalyseRequest.
template <typename Message>
class ReceivedRequest {
 public:
  // The buffer into which gRPC puts the next message.
  grpc::ByteBuffer* buffer() { return &buffer_; }
  // Parses the message in the buffer. InvalidArgument: it is no `Message`.
  absl::Status Parse();

  // The message, and the pieces of its payload if it is a chunk; the message's own payload is then empty.
  // Valid after Parse, until Clear or the next message.
  const Message& message() const { return message_; }
  const std::vector<absl::string_view>& payload() const { return payload_; }
  void Clear();

 private:
  bool ParseChunk();

  grpc::ByteBuffer buffer_;
  Message message_;
  std::vector<absl::string_view> payload_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_MESSAGES_RECEIVED_REQUEST_H_
