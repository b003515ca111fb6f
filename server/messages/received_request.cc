#include "server/messages/received_request.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/support/proto_buffer_reader.h"

namespace spexd {
namespace {

using google::protobuf::io::CodedInputStream;

// Wire types of fields.
constexpr uint32_t kVarint = 0, kLengthDelimited = 2;

constexpr uint32_t Tag(int field, uint32_t type) { return static_cast<uint32_t>(field) << 3 | type; }

// Takes the next `size` bytes as pieces of gRPC's slices. Returns false if there are fewer.
bool TakePieces(int size, CodedInputStream* in, std::vector<absl::string_view>* pieces) {
  while (size > 0) {
    const void* data = nullptr;
    int there = 0;
    if (!in->GetDirectBufferPointer(&data, &there)) return false;
    there = std::min(there, size);
    pieces->emplace_back(static_cast<const char*>(data), static_cast<size_t>(there));
    if (!in->Skip(there)) return false;
    size -= there;
  }
  return true;
}

}  // namespace

template <typename Message>
absl::Status ReceivedRequest<Message>::Parse() {
  payload_.clear();
  message_.Clear();
  if (ParseChunk()) return absl::OkStatus();
  payload_.clear();
  if (!grpc::GenericDeserialize<grpc::ProtoBufferReader, Message>(&buffer_, &message_).ok())
    return absl::InvalidArgumentError(
        absl::StrCat("a message came that is no ", Message::descriptor()->name()));
  if (message_.has_chunk()) payload_.emplace_back(message_.chunk().payload());
  return absl::OkStatus();
}

template <typename Message>
void ReceivedRequest<Message>::Clear() {
  payload_.clear();
  message_.Clear();
  buffer_.Clear();
}

// Parses a chunk as clients write it, with the payload as its last field and nothing after it. Returns false
// for any other message, which protobuf must parse.
template <typename Message>
bool ReceivedRequest<Message>::ParseChunk() {
  grpc::ProtoBufferReader reader(&buffer_);
  CodedInputStream in(&reader);
  const int length = static_cast<int>(buffer_.Length());
  int left = 0;
  if (in.ReadTag() != Tag(Message::kChunkFieldNumber, kLengthDelimited)) return false;
  if (!in.ReadVarintSizeAsInt(&left) || left != length - in.CurrentPosition()) return false;
  v1::InputChunk& chunk = *message_.mutable_chunk();
  for (;;) {
    uint64_t value = 0;
    switch (in.ReadTag()) {
      case Tag(v1::InputChunk::kInputFieldNumber, kVarint):
        if (!in.ReadVarint64(&value)) return false;
        chunk.set_input(static_cast<v1::Input>(value));
        break;
      case Tag(v1::InputChunk::kOffsetFieldNumber, kVarint):
        if (!in.ReadVarint64(&value)) return false;
        chunk.set_offset(value);
        break;
      case Tag(v1::InputChunk::kPayloadFieldNumber, kLengthDelimited):
        return in.ReadVarintSizeAsInt(&left) && left == length - in.CurrentPosition() &&
               TakePieces(left, &in, &payload_);
      default:
        return false;
    }
  }
}

template class ReceivedRequest<v1::ExtractRequest>;
template class ReceivedRequest<v1::AnalyseRequest>;

}  // namespace spexd
