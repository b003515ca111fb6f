// A message from a client of Extract as gRPC received it, in slices; the first byte of an input sets their
// length.
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "server/messages/received_request.h"
#include "tests/fuzz/support/fuzz_check.h"

namespace spexd::fuzz {
namespace {

grpc::ByteBuffer Sliced(const std::string& bytes, size_t length) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size(); at += length) slices.emplace_back(bytes.substr(at, length));
  return grpc::ByteBuffer(slices.data(), slices.size());
}

void Fuzz(const std::string& bytes, size_t slice_bytes) {
  ReceivedRequest<v1::ExtractRequest> request;
  *request.buffer() = Sliced(bytes, slice_bytes);
  const absl::Status parsed = request.Parse();
  RequireGoodError(parsed);
  v1::ExtractRequest expected, message = request.message();
  Require(expected.ParseFromString(bytes) == parsed.ok(), "a message is taken where protobuf takes it");
  if (!parsed.ok()) return;
  const std::string payload = absl::StrJoin(request.payload(), "");
  Require(payload == expected.chunk().payload(), "a chunk's payload is in its pieces");
  if (message.has_chunk()) message.mutable_chunk()->set_payload(payload);
  Require(message.SerializeAsString() == expected.SerializeAsString(),
          "a message is read as protobuf reads it");
}

}  // namespace
}  // namespace spexd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  spexd::fuzz::Fuzz(std::string(reinterpret_cast<const char*>(data) + 1, size - 1), size_t{data[0]} + 1);
  return 0;
}
