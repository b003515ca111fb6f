// A message of a client of Extract or Analyse, read where gRPC received it: a chunk's payload is not copied
// before it is where the whole input will be.
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
  // gRPC puts the next message here.
  grpc::ByteBuffer* buffer() { return &buffer_; }
  // To be called once it has. InvalidArgument: it is no such message.
  absl::Status Parse();

  // Valid after Parse, until Clear or the next message. A chunk has its payload in the pieces alone.
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
