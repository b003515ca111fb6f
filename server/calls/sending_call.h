// The base of calls that send messages, as fast as the client reads them.
#ifndef SPEXD_SERVER_CALLS_SENDING_CALL_H_
#define SPEXD_SERVER_CALLS_SENDING_CALL_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"

namespace spexd {

// `Base`: a StreamCall. `Message`: the type that its reactor writes.
template <typename Base, typename Message>
class SendingCall : public Base {
 protected:
  using Base::Base;

  // Step of the derived call: all messages are sent. If a task runs, the call may be stopping.
  virtual absl::Status AllSent() = 0;

  void Add(Message message) { unsent_.push_back(std::move(message)); }
  bool has_unsent() const { return !unsent_.empty(); }
  bool writing() const { return writing_; }
  double send_seconds() const { return send_seconds_; }  // total time of waiting for the client to read

  // Sends the added messages, one after the other. `status_follows`: the call ends after the last one, which
  // may therefore be sent together with the status. REQUIRES: has_unsent() and not writing().
  absl::Status Send(bool status_follows = false) {
    status_follows_ = status_follows;
    this->times_.WaitForClientToRead();
    writing_ = true;
    write_since_ = this->times_.seconds();
    grpc::WriteOptions options;
    const bool last = next_ + 1 == unsent_.size();
    if (last ? status_follows : BytesOf(unsent_[next_]) < kSmallBytes) options.set_buffer_hint();
    this->StartWrite(&unsent_[next_], options);
    return absl::OkStatus();
  }

  // Step: a time limit has passed, or memory was taken back.
  absl::Status TimeOut(const absl::Status& why) override {
    if (!writing_) return why;
    const bool late = this->stopping() || this->times_.stalled();
    this->StopWith(why);
    if (late) {
      this->context_->TryCancel();  // a status would wait behind the message that the client does not read
    } else {
      this->times_.AllowLastMessage();
    }
    return absl::OkStatus();
  }

 private:
  // Messages of this size or larger are sent at once. Smaller ones may be sent with the next message.
  static constexpr size_t kSmallBytes = 64 << 10;

  static size_t BytesOf(const grpc::ByteBuffer& message) { return message.Length(); }
  template <typename Proto>
  static size_t BytesOf(const Proto& message) {
    return message.ByteSizeLong();
  }

  // noexcept: without memory for the step, the process ends. Otherwise a running job would wait for ever.
  void OnWriteDone(bool ok) noexcept final {
    this->Take([&]() -> absl::Status {
      writing_ = false;
      send_seconds_ += this->times_.seconds() - write_since_;
      if (ok) this->parts_.metrics->CountSent(static_cast<int64_t>(BytesOf(unsent_[next_])));
      unsent_[next_++].Clear();
      const bool rest = ok && !this->stopping() && next_ < unsent_.size();
      if (rest) return Send(status_follows_);
      unsent_.clear();
      next_ = 0;
      if (!ok) this->StopWith(this->Gone());
      if (this->stopping() && !this->has_task()) return this->why_stopping();
      return AllSent();
    });
  }

  std::vector<Message> unsent_;
  size_t next_ = 0;  // index of the message that is being written, or will be next
  bool writing_ = false;
  bool status_follows_ = false;
  double write_since_ = 0;
  double send_seconds_ = 0;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_CALLS_SENDING_CALL_H_
