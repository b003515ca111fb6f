// What gRPC itself can do: a server on the callback interface, as spexd's, that takes messages and drops
// them, or sends messages of requested sizes. No message is parsed, checked or made.
//
//   /raw/Take    reads until the client has sent everything, and answers with an empty message
//   /raw/Give    reads one message of uint32 sizes, and sends a message of each of these sizes
//
// Prints its port, and runs until it is killed.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace {

class Take final : public grpc::ServerGenericBidiReactor {
 public:
  Take() { StartRead(&message_); }
  void OnReadDone(bool ok) override {
    message_.Clear();
    if (ok) return StartRead(&message_);
    const grpc::Slice empty;
    message_ = grpc::ByteBuffer(&empty, 1);
    StartWriteAndFinish(&message_, grpc::WriteOptions(), grpc::Status::OK);
  }
  void OnDone() override { delete this; }

 private:
  grpc::ByteBuffer message_;
};

class Give final : public grpc::ServerGenericBidiReactor {
 public:
  Give() { StartRead(&message_); }
  void OnReadDone(bool ok) override {
    grpc::Slice asked;
    if (!ok || !message_.DumpToSingleSlice(&asked).ok()) {
      return Finish({grpc::StatusCode::INVALID_ARGUMENT, "no sizes came"});
    }
    sizes_.resize(asked.size() / sizeof(uint32_t));
    std::memcpy(sizes_.data(), asked.begin(), sizes_.size() * sizeof(uint32_t));
    memory_.assign(std::accumulate(sizes_.begin(), sizes_.end(), size_t{0}), 'x');
    Send();
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    Send();
  }
  void OnDone() override { delete this; }

 private:
  void Send() {
    if (sent_ == sizes_.size()) return Finish(grpc::Status::OK);
    const uint32_t size = sizes_[sent_++];
    const grpc::Slice slice(memory_.data() + at_, size, grpc::Slice::STATIC_SLICE);
    at_ += size;
    message_ = grpc::ByteBuffer(&slice, 1);
    StartWrite(&message_);
  }

  grpc::ByteBuffer message_;
  std::vector<uint32_t> sizes_;
  size_t sent_ = 0;
  std::string memory_;  // of all messages
  size_t at_ = 0;
};

class Service final : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    if (context->method() == "/raw/Take") return new Take;
    return new Give;
  }
};

}  // namespace

int main() {
  Service service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterCallbackGenericService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  std::printf("port %d\n", port);
  std::fflush(stdout);
  server->Wait();
  return 0;
}
