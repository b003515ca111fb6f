#include "server/messages/event_messages.h"

#include <google/protobuf/io/coded_stream.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "grpcpp/support/slice.h"
#include "server/messages/convert.h"

namespace spexd {
namespace {

using google::protobuf::io::CodedOutputStream;

// What comes before a field of so many bytes: its tag and length.
std::string FieldHead(int field, size_t bytes) {
  constexpr int kMostBytes = 10;
  constexpr uint32_t kLengthDelimited = 2;
  uint8_t head[kMostBytes];
  uint8_t* end =
      CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(field) << 3 | kLengthDelimited, head);
  end = CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(bytes), end);
  return std::string(reinterpret_cast<const char*>(head), static_cast<size_t>(end - head));
}

// A slice that keeps the bundle.
grpc::Slice SliceOf(absl::string_view bytes, const std::shared_ptr<const BundleSpectra>& bundle) {
  using Owner = std::shared_ptr<const BundleSpectra>;
  auto owner = std::make_unique<Owner>(bundle);
  grpc::Slice slice(
      const_cast<char*>(bytes.data()), bytes.size(), [](void* owner) { delete static_cast<Owner*>(owner); },
      owner.get());
  owner.release();  // the slice has it, unless there was no memory for the slice
  return slice;
}

}  // namespace

grpc::ByteBuffer ToMessage(const BundlePiece& piece, const std::shared_ptr<const BundleSpectra>& bundle) {
  const v1::ExtractEvent& event = piece.event;
  const std::string fields =
      event.has_model() ? event.model().SerializeAsString() : event.bundle().SerializeAsString();
  size_t size = fields.size();
  std::vector<grpc::Slice> slices(1);  // the first is made when the size is known
  for (const auto& [field, bytes] : piece.arrays) {
    if (bytes.empty()) continue;
    const std::string head = FieldHead(field, bytes.size());
    size += head.size() + bytes.size();
    slices.emplace_back(head);
    slices.push_back(SliceOf(bytes, bundle));
  }
  slices[0] = grpc::Slice(FieldHead(event.event_case(), size) + fields);
  return grpc::ByteBuffer(slices.data(), slices.size());
}

grpc::ByteBuffer ToMessage(const v1::ExtractEvent& event) {
  grpc::Slice slice(event.ByteSizeLong());
  event.SerializeWithCachedSizesToArray(const_cast<uint8_t*>(slice.begin()));
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace spexd
