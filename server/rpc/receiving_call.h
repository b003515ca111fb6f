// A call that receives a header and more messages, and answers once: what such calls have in common.
#ifndef SPEXD_SERVER_RPC_RECEIVING_CALL_H_
#define SPEXD_SERVER_RPC_RECEIVING_CALL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include "absl/status/status.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "core/base/threads/mutex.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/admission/byte_budget.h"
#include "server/jobs/server_parts.h"
#include "server/rpc/call_times.h"
#include "server/rpc/end_call.h"

namespace spexd {

// Costs no thread while it waits for the client; see ExtractCall. Steps and tasks are functions of the call,
// of which one runs at a time: so they need no further lock for what is the call's.
template <typename Request>
class ReceivingCall : public grpc::ServerReadReactor<Request>,
                      public std::enable_shared_from_this<ReceivingCall<Request>> {
 public:
  using Reactor = grpc::ServerReadReactor<Request>;

 protected:
  using Step = std::function<absl::Status()>;

  // `rpc`: its name ("spexd.v1.Jobs/Submit"), for the audit log; a literal.
  ReceivingCall(const ServerParts& parts, const char* rpc, grpc::CallbackServerContext* context,
                Identity caller, StreamLimits::Place place)
      : parts_(parts),
        rpc_(rpc),
        context_(context),
        caller_(std::move(caller)),
        place_(std::move(place)),
        times_(*parts.options, parts.watchdog, [this] { parts_.events->Post(time_passed_); }) {}

  // Begins the call, which lives until gRPC and its tasks are done with it.
  Reactor* Begin();

  // Steps, run under the lock. If one fails or throws, the call ends with that. The message is in request_.
  virtual absl::Status HeaderCame() = 0;
  virtual absl::Status MessageCame() = 0;
  virtual absl::Status InputEnded() = 0;  // half-closed, after a header
  // The call ends: gives back what it holds.
  virtual void Release(const absl::Status& status) = 0;

  // The owner of memory for what the caller uploads: the call ends if that memory is taken back.
  ByteBudget::Owner Uploader() {
    return {caller_.name,
            [events = parts_.events, step = StepOf(&ReceivingCall::TakenBack)] { events->Post(step); }};
  }

  // What a step may do last. `came`: bytes of the upload in the message that was read.
  absl::Status ReadOn(int64_t came = 0);
  // Runs `task` on a thread without the lock, and then the step `then`. A time that passes meanwhile ends the
  // call after the task, which is asked to stop.
  absl::Status Start(Step task, Step then);
  // The process ends if there is no memory for the end: the call would hang.
  void End(const absl::Status& status) noexcept;

  std::stop_token stop_token() const { return stop_.get_token(); }

  const ServerParts parts_;
  const char* const rpc_;
  grpc::CallbackServerContext* const context_;  // not to be used after End
  const Identity caller_;
  Request request_;
  ByteBudget::Reservation memory_;  // for what is received

 private:
  // Called by gRPC.
  void OnReadDone(bool ok) final;
  void OnCancel() final {
    stop_.request_stop();
    MutexLock lock(&mutex_);  // orders this before the destruction of what it touches
  }
  void OnDone() final;

  // Runs a step under the lock, unless the call has ended.
  template <typename AnyStep>
  void Take(const AnyStep& step) ABSL_LOCKS_EXCLUDED(mutex_);
  // This member as a step of the event thread, taken if the call is still there by then.
  std::shared_ptr<EventThread::Step> StepOf(absl::Status (ReceivingCall::*step)());
  absl::Status TimePassed();
  absl::Status TakenBack() { return memory_.EndWait(); }

  std::stop_source stop_;
  Mutex mutex_;
  // Guarded by mutex_: touched by steps alone.
  std::shared_ptr<ReceivingCall> self_;  // until OnDone
  bool has_header_ = false;
  bool ended_ = false;
  bool task_ = false;  // one runs
  std::optional<StreamLimits::Place> place_;
  std::shared_ptr<EventThread::Step> time_passed_;  // never changes once the call has begun
  CallTimes times_;
  absl::Status timeout_;  // not OK: a time has passed while a task ran
};

template <typename Request>
typename ReceivingCall<Request>::Reactor* ReceivingCall<Request>::Begin() {
  MutexLock lock(&mutex_);
  time_passed_ = StepOf(&ReceivingCall::TimePassed);
  times_.WaitForHeader();
  self_ = this->shared_from_this();
  this->StartRead(&request_);
  return this;
}

template <typename Request>
template <typename AnyStep>
void ReceivingCall<Request>::Take(const AnyStep& step) {
  MutexLock lock(&mutex_);
  if (ended_) return;
  if (const absl::Status status = CatchExceptions(step); !status.ok()) End(status);
}

template <typename Request>
std::shared_ptr<EventThread::Step> ReceivingCall<Request>::StepOf(absl::Status (ReceivingCall::*step)()) {
  return std::make_shared<EventThread::Step>([weak = this->weak_from_this(), step] {
    const std::shared_ptr<ReceivingCall> there = weak.lock();
    if (there != nullptr) there->Take([&] { return (*there.*step)(); });
  });
}

template <typename Request>
void ReceivingCall<Request>::OnReadDone(bool ok) {
  Take([&]() -> absl::Status {
    if (ok && has_header_) return MessageCame();
    if (ok) {
      if (!request_.has_header()) return absl::InvalidArgumentError("the first message must be the header");
      times_.HeaderCame();
      has_header_ = true;
      return HeaderCame();
    }
    if (stop_.stop_requested()) return absl::CancelledError("the client cancelled the call or went away");
    if (!has_header_) return absl::InvalidArgumentError("the stream ended without a header");
    return InputEnded();
  });
}

template <typename Request>
void ReceivingCall<Request>::OnDone() {
  std::shared_ptr<ReceivingCall> self;
  MutexLock lock(&mutex_);
  self.swap(self_);
}

template <typename Request>
absl::Status ReceivingCall<Request>::ReadOn(int64_t came) {
  if (stop_.stop_requested()) return absl::CancelledError("the client cancelled the call or went away");
  parts_.metrics->CountReceived(came);
  memory_.Came(came);
  SPEXD_RETURN_IF_ERROR(memory_.WaitForUpload());
  times_.WaitForInput();
  this->StartRead(&request_);
  return absl::OkStatus();
}

template <typename Request>
absl::Status ReceivingCall<Request>::Start(Step task, Step then) {
  SPEXD_RETURN_IF_ERROR(memory_.EndWait());
  times_.WaitForServer();
  task_ = true;
  return parts_.tasks->Start(
      [self = this->shared_from_this(), task = std::move(task), then = std::move(then)] {
        const absl::Status status = CatchExceptions(task);
        self->Take([&]() -> absl::Status {
          self->task_ = false;
          SPEXD_RETURN_IF_ERROR(self->timeout_);
          SPEXD_RETURN_IF_ERROR(status);
          return then();
        });
      });
}

template <typename Request>
absl::Status ReceivingCall<Request>::TimePassed() {
  const absl::Status passed = times_.Passed();
  if (passed.ok() || !task_) return passed;
  timeout_ = passed;
  stop_.request_stop();
  return absl::OkStatus();
}

template <typename Request>
void ReceivingCall<Request>::End(const absl::Status& status) noexcept {
  ended_ = true;
  Release(status);
  memory_ = ByteBudget::Reservation();
  place_.reset();
  parts_.access->NoteIfDenied(*context_, rpc_, caller_, status);
  this->Finish(EndCall(status, context_, parts_.metrics));
}

}  // namespace spexd

#endif  // SPEXD_SERVER_RPC_RECEIVING_CALL_H_
