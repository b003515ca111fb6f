// A client's stream of messages that are neither made nor parsed, so that only the other side is measured.
#ifndef SPEXD_TESTS_MEASURE_RAW_STREAM_H_
#define SPEXD_TESTS_MEASURE_RAW_STREAM_H_

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

namespace spexd::testing {

// Makes one call after the other, and waits for the end of each.
class RawStream {
 public:
  RawStream(const std::shared_ptr<grpc::Channel>& channel, const std::string& method)
      : stub_(channel), stream_(stub_.PrepareCall(&context_, method, &queue_)) {
    stream_->StartCall(this);
    Wait();
  }

  bool Write(const grpc::ByteBuffer& message) {
    stream_->Write(message, this);
    return Wait();
  }
  bool WritesDone() {
    stream_->WritesDone(this);
    return Wait();
  }
  bool Read(grpc::ByteBuffer* message) {
    message->Clear();
    stream_->Read(message, this);
    return Wait();
  }
  grpc::Status Finish() {
    grpc::Status status;
    stream_->Finish(&status, this);
    Wait();
    return status;
  }

 private:
  bool Wait() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::CompletionQueue queue_;
  grpc::ClientContext context_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
};

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_MEASURE_RAW_STREAM_H_
