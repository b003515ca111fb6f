// The base of calls that receive a header and more messages.
#ifndef SPEXD_SERVER_CALLS_RECEIVING_CALL_H_
#define SPEXD_SERVER_CALLS_RECEIVING_CALL_H_

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "core/base/status_macros.h"
#include "server/admission/byte_budget.h"
#include "server/calls/stream_call.h"

namespace spexd {

// A message that gRPC parses. ReceivedRequest has the same interface for messages that the server parses.
template <typename Message>
class ParsedRequest {
 public:
  Message* buffer() { return &message_; }
  absl::Status Parse() { return absl::OkStatus(); }
  const Message& message() const { return message_; }
  void Clear() { message_.Clear(); }

 private:
  Message message_;
};

// `Request`: ParsedRequest or ReceivedRequest of a message with a field `header`.
template <typename GrpcReactor, typename Request>
class ReceivingCall : public StreamCall<GrpcReactor> {
 protected:
  using Base = StreamCall<GrpcReactor>;
  using Base::Base;

  // Begins the call, which lives until gRPC and the call's task have ended.
  GrpcReactor* Begin() {
    return this->BeginWith([this] {
      this->times_.WaitForHeader();
      this->StartRead(request_.buffer());
      return absl::OkStatus();
    });
  }

  // Steps of the derived call. The received message is in request_.
  virtual absl::Status HeaderCame() = 0;
  virtual absl::Status MessageCame() = 0;
  virtual absl::Status InputEnded() = 0;  // the client half-closed after a header
  virtual absl::Status NoHeaderCame() {   // the client half-closed before a header
    return absl::InvalidArgumentError("the stream ended without a header");
  }

  // Starts a task. The memory of the upload is not taken back while the task uses it.
  absl::Status Start(typename Base::Task task, typename Base::Task then) {
    SPEXD_RETURN_IF_ERROR(memory_.EndWait());
    return Base::Start(std::move(task), std::move(then));
  }

  // Returns the owner of the memory for the upload. If the memory is taken back, the call ends.
  ByteBudget::Owner Uploader() { return {this->caller_.name, this->Waker(&ReceivingCall::TakenBack)}; }

  // Waits for the next message. Must be the last action of a step. `came`: bytes of the upload in the message
  // that was received.
  absl::Status ReadOn(int64_t came = 0) {
    if (this->stop_requested()) return this->Gone();
    this->parts_.metrics->CountReceived(came);
    memory_.Came(came);
    SPEXD_RETURN_IF_ERROR(memory_.WaitForUpload());
    this->times_.WaitForInput();
    this->StartRead(request_.buffer());
    return absl::OkStatus();
  }

  Request request_;
  ByteBudget::Reservation memory_;  // for the upload

 private:
  void OnReadDone(bool ok) final {
    this->Take([&]() -> absl::Status {
      if (!ok && this->stop_requested()) return this->Gone();
      if (!ok) return has_header_ ? InputEnded() : NoHeaderCame();
      SPEXD_RETURN_IF_ERROR(request_.Parse());
      if (has_header_) return MessageCame();
      if (!request_.message().has_header())
        return absl::InvalidArgumentError("the first message must be the header");
      this->times_.HeaderCame();
      has_header_ = true;
      return HeaderCame();
    });
  }

  absl::Status TakenBack() { return this->Expire(memory_.EndWait()); }

  bool has_header_ = false;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_CALLS_RECEIVING_CALL_H_
