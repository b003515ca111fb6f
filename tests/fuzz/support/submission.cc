#include "tests/fuzz/support/submission.h"

#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/util/delimited_message_util.h"

namespace spexd::fuzz {

using google::protobuf::io::ArrayInputStream;
using google::protobuf::io::StringOutputStream;

std::vector<v1::SubmitRequest> MessagesOf(const std::string& bytes) {
  ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  std::vector<v1::SubmitRequest> messages;
  v1::SubmitRequest message;
  bool ended = false;
  while (google::protobuf::util::ParseDelimitedFromZeroCopyStream(&message, &stream, &ended)) {
    messages.push_back(message);
    message.Clear();
  }
  return messages;
}

std::string BytesOf(const std::vector<v1::SubmitRequest>& messages) {
  std::string bytes;
  StringOutputStream stream(&bytes);
  for (const v1::SubmitRequest& message : messages)
    google::protobuf::util::SerializeDelimitedToZeroCopyStream(message, &stream);
  return bytes;
}

}  // namespace spexd::fuzz
