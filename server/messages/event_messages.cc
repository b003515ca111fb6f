#include "server/messages/event_messages.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "grpcpp/support/slice.h"
#include "server/messages/convert.h"

namespace spexd {
namespace {

using google::protobuf::io::CodedOutputStream;

// Returns the head of a field of `bytes` bytes: its tag and length.
std::string FieldHead(int field, size_t bytes) {
  constexpr int kMaxBytes = 10;
  constexpr uint32_t kLengthDelimited = 2;
  uint8_t head[kMaxBytes];
  uint8_t* end =
      CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(field) << 3 | kLengthDelimited, head);
  end = CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(bytes), end);
  return std::string(reinterpret_cast<const char*>(head), static_cast<size_t>(end - head));
}

// Returns a slice that refers to `bytes` and keeps their owner `of`.
template <typename T>
grpc::Slice SliceOf(absl::string_view bytes, const std::shared_ptr<const T>& of) {
  using Owner = std::shared_ptr<const T>;
  return grpc::Slice(
      const_cast<char*>(bytes.data()), bytes.size(), [](void* owner) { delete static_cast<Owner*>(owner); },
      new Owner(of));
}

// A message in slices. Protobuf writes heads into blocks and passes arrays by reference. It expects no
// exceptions, so the process ends if there is no memory for a slice.
class SliceStream : public google::protobuf::io::ZeroCopyOutputStream {
 public:
  explicit SliceStream(std::shared_ptr<const v1::ExtractEvent> event) : event_(std::move(event)) {}

  bool Next(void** data, int* size) noexcept override {
    constexpr size_t kBlockBytes = 1024;
    EndBlock();
    block_ = grpc::Slice(kBlockBytes);
    used_ = kBlockBytes;
    *data = const_cast<uint8_t*>(block_.begin());
    *size = static_cast<int>(used_);
    bytes_ += *size;
    return true;
  }
  void BackUp(int count) override {
    used_ -= static_cast<size_t>(count);
    bytes_ -= count;
  }
  int64_t ByteCount() const override { return bytes_; }
  bool AllowsAliasing() const override { return true; }
  bool WriteAliasedRaw(const void* data, int size) noexcept override {
    EndBlock();
    bytes_ += size;
    slices_.push_back(
        SliceOf(absl::string_view(static_cast<const char*>(data), static_cast<size_t>(size)), event_));
    return true;
  }
  grpc::ByteBuffer Message() {
    EndBlock();
    return grpc::ByteBuffer(slices_.data(), slices_.size());
  }

 private:
  void EndBlock() {
    if (used_ > 0) slices_.push_back(block_.sub(0, std::exchange(used_, 0)));
  }

  const std::shared_ptr<const v1::ExtractEvent> event_;
  std::vector<grpc::Slice> slices_;
  grpc::Slice block_;  // its first `used_` bytes belong to the message
  size_t used_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace

grpc::ByteBuffer ToMessage(const BundlePiece& piece, const std::shared_ptr<const BundleSpectra>& bundle) {
  const v1::ExtractEvent& event = piece.event;
  const std::string fields =
      event.has_model() ? event.model().SerializeAsString() : event.bundle().SerializeAsString();
  size_t size = fields.size();
  std::vector<grpc::Slice> slices(1);  // the first one is set when the size is known
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

grpc::ByteBuffer ToMessage(const std::shared_ptr<const v1::ExtractEvent>& event) {
  SliceStream stream(event);
  {
    CodedOutputStream output(&stream);
    output.EnableAliasing(true);
    event->SerializeToCodedStream(&output);
  }
  return stream.Message();
}

grpc::ByteBuffer ToMessage(const v1::ExtractEvent& event) {
  grpc::Slice slice(event.ByteSizeLong());
  event.SerializeWithCachedSizesToArray(const_cast<uint8_t*>(slice.begin()));
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace spexd
