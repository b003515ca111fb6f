#include "client/connection/health_check.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <string>
#include <vector>

namespace spexd::client {
namespace {

// The bytes of HealthCheckResponse { ServingStatus status = 1; }: a tag, and 1 for SERVING or 2 for
// NOT_SERVING.
constexpr char kStatusTag = 0x08, kServing = 1, kNotServing = 2;

std::string BytesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

}  // namespace

HealthAnswer CheckHealth(const std::shared_ptr<grpc::ChannelInterface>& channel,
                         grpc::ClientContext* context) {
  // gRPC's C++ packages lack the messages of this service. A request for the whole server has no bytes.
  const grpc::Slice empty("");
  const grpc::ByteBuffer request(&empty, 1);
  grpc::ByteBuffer response;
  HealthAnswer answer;
  grpc::CompletionQueue queue;
  grpc::GenericStub stub(channel);
  const auto call = stub.PrepareUnaryCall(context, "/grpc.health.v1.Health/Check", request, &queue);
  call->StartCall();
  call->Finish(&response, &answer.status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  if (!answer.status.ok()) return answer;
  const std::string bytes = BytesOf(response);
  if (bytes.size() == 2 && bytes[0] == kStatusTag && bytes[1] == kServing) answer.health = Health::kServing;
  if (bytes.size() == 2 && bytes[0] == kStatusTag && bytes[1] == kNotServing) {
    answer.health = Health::kNotServing;
  }
  return answer;
}

}  // namespace spexd::client
