// What the calls of all streaming RPCs have in common: a state machine that costs no thread while it waits.
#ifndef SPEXD_SERVER_CALLS_STREAM_CALL_H_
#define SPEXD_SERVER_CALLS_STREAM_CALL_H_

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
#include "server/calls/call_times.h"
#include "server/calls/end_call.h"
#include "server/jobs/server_parts.h"

namespace spexd {

// A call that was let in.
struct CallStart {
  grpc::CallbackServerContext* context;
  Identity caller;
  StreamLimits::Lease stream;
};

// gRPC, the event thread and the call's own task take steps, one at a time: each runs under the call's lock.
// What may block or compute for long is a task, of which one runs at a time, without the lock: steps leave
// alone what it uses. `GrpcReactor` is one of gRPC's server reactors; ReceivingCall and SendingCall add what
// reads and writes.
template <typename GrpcReactor>
class StreamCall : public GrpcReactor, public std::enable_shared_from_this<StreamCall<GrpcReactor>> {
 public:
  using Reactor = GrpcReactor;

 protected:
  using Task = std::function<absl::Status()>;

  // `rpc`: its name ("spexd.v1.Jobs/Submit"), for the audit log; a literal. `max_seconds`: see CallTimes.
  StreamCall(const ServerParts& parts, const char* rpc, CallStart start, double max_seconds)
      : parts_(parts),
        rpc_(rpc),
        context_(start.context),
        caller_(std::move(start.caller)),
        times_(*parts.options, max_seconds, parts.watchdog, [this] { parts_.events->Post(time_passed_); }),
        stream_(std::move(start.stream)) {}

  // Begins the call, which lives until gRPC and its task are done with it, with its first step.
  template <typename Step>
  Reactor* BeginWith(const Step& step) {
    {
      MutexLock lock(&mutex_);
      time_passed_ = StepOf(&StreamCall::TimePassed);
      self_ = this->shared_from_this();
    }
    Take(step);
    return this;
  }

  // Steps for events that calls take in different ways. An error ends the call.
  virtual absl::Status ClientWent() { return absl::OkStatus(); }  // what is under way fails by itself
  virtual absl::Status TimeOut(const absl::Status& why) { return why; }
  // The call ends: gives back what it holds.
  virtual void Release(const absl::Status& status) = 0;
  // Whether the call's status says what the caller may do, for the audit log; or else how a job ended.
  virtual bool IsDecision() const { return true; }
  // What a call ends with whose client has gone.
  virtual absl::Status Gone() { return absl::CancelledError("the client cancelled the call or went away"); }
  // Runs a task; by default on a thread that it has to itself.
  virtual absl::Status Launch(std::function<void()> task) { return parts_.tasks->Start(std::move(task)); }

  // A time has passed, or what the call holds was taken back: TimeOut is next. Nothing, if `why` is OK.
  absl::Status Expire(const absl::Status& why) {
    if (why.ok()) return why;
    timed_out_ = true;
    return TimeOut(why);
  }
  bool timed_out() const { return timed_out_; }

  // Runs a step under the lock, unless the call has ended. If it fails or throws, the call ends with that.
  template <typename Step>
  void Take(const Step& step) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (ended_) return;
    if (const absl::Status status = CatchExceptions(step); !status.ok()) EndAfterTask(status);
  }
  // A member as a step of the event thread, taken if the call is still there by then.
  template <typename Call>
  std::shared_ptr<EventThread::Step> StepOf(absl::Status (Call::*step)()) {
    return std::make_shared<EventThread::Step>([weak = this->weak_from_this(), step] {
      const std::shared_ptr<StreamCall> call = weak.lock();
      if (call != nullptr) call->Take([&] { return (static_cast<Call&>(*call).*step)(); });
    });
  }
  // A function that posts the step.
  template <typename Call>
  std::function<void()> Waker(absl::Status (Call::*step)()) {
    return [events = parts_.events, step = StepOf(step)] { events->Post(step); };
  }

  // Runs `task`, and then the step `then`; neither if the call is to end meanwhile.
  absl::Status Start(Task task, Task then) {
    times_.WaitForServer();
    SPEXD_RETURN_IF_ERROR(
        Launch([self = this->shared_from_this(), task = std::move(task), then = std::move(then)] {
          const absl::Status status = CatchExceptions(task);
          self->Take([&]() -> absl::Status {
            SPEXD_RETURN_IF_ERROR(self->EndTask());
            SPEXD_RETURN_IF_ERROR(status);
            return then();
          });
        }));
    BeginTask();  // the lock is held: the task has not ended yet
    return absl::OkStatus();
  }
  // A task begins, and has ended. An error is what the call was to end with meanwhile.
  void BeginTask() { task_ = true; }
  absl::Status EndTask() {
    task_ = false;
    return end_;
  }
  // Ends the call with the first error that it is given, once its task, which is asked to stop, has ended.
  void EndAfterTask(const absl::Status& why) {
    StopWith(why);
    if (!task_) End(end_);
  }
  void StopWith(const absl::Status& why) {
    end_.Update(why);
    stop_.request_stop();
  }
  bool stopping() const { return !end_.ok(); }
  const absl::Status& why_stopping() const { return end_; }
  // The process ends if there is no memory for the end: the call would hang.
  void End(const absl::Status& status) noexcept {
    ended_ = true;
    Release(status);
    stream_.reset();
    if (IsDecision()) parts_.access->NoteIfDenied(*context_, rpc_, caller_, status);
    this->Finish(EndCall(status, context_, parts_.metrics));
  }

  std::stop_token stop_token() const { return stop_.get_token(); }
  bool stop_requested() const { return stop_.stop_requested(); }
  bool has_task() const { return task_; }

  const ServerParts parts_;
  const char* const rpc_;
  grpc::CallbackServerContext* const context_;  // not to be used after End
  const Identity caller_;

 private:
  std::shared_ptr<EventThread::Step> time_passed_;  // never changes once the call has begun; outlives times_

 protected:
  CallTimes times_;

 private:
  // Called by gRPC.
  void OnCancel() final {
    stop_.request_stop();
    Take([&] { return ClientWent(); });
  }
  void OnDone() final {
    std::shared_ptr<StreamCall> self;
    MutexLock lock(&mutex_);
    self.swap(self_);
  }

  // If no time has passed, what the call waited for came at the same moment.
  absl::Status TimePassed() { return Expire(times_.Passed()); }

  std::stop_source stop_;
  Mutex mutex_;
  // Guarded by mutex_: touched by steps alone.
  std::shared_ptr<StreamCall> self_;  // until OnDone
  bool task_ = false;                 // one runs
  bool ended_ = false;
  bool timed_out_ = false;
  absl::Status end_;  // not OK: what the call is to end with
  std::optional<StreamLimits::Lease> stream_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_CALLS_STREAM_CALL_H_
