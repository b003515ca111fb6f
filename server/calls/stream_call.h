// The base of all streaming calls: a state machine that uses no thread while it waits.
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

// A call that was admitted.
struct CallStart {
  grpc::CallbackServerContext* context;
  Identity caller;
  StreamLimits::Lease stream;
};

// gRPC, the event thread and the call's task take steps. Steps run one at a time, under the call's lock, and
// must not block. Work that may block or compute for long is a task. At most one task runs at a time, without
// the lock, and steps do not touch what it uses. `GrpcReactor` is one of gRPC's server reactors;
// ReceivingCall and SendingCall add reading and writing.
template <typename GrpcReactor>
class StreamCall : public GrpcReactor, public std::enable_shared_from_this<StreamCall<GrpcReactor>> {
 public:
  using Reactor = GrpcReactor;

 protected:
  using Task = std::function<absl::Status()>;

  // `rpc`: a literal with its name ("spexd.v1.Jobs/Submit"), for the audit log. `max_seconds`: see CallTimes.
  StreamCall(const ServerParts& parts, const char* rpc, CallStart start, double max_seconds)
      : parts_(parts),
        rpc_(rpc),
        context_(start.context),
        caller_(std::move(start.caller)),
        times_(*parts.options, max_seconds, parts.watchdog, [this] { parts_.events->Post(time_passed_); }),
        stream_(std::move(start.stream)) {}

  // Begins the call with its first step. It lives until gRPC and its task have ended.
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

  // Steps that calls may override. An error ends the call.
  virtual absl::Status ClientWent() { return absl::OkStatus(); }  // pending reads and writes fail
  virtual absl::Status TimeOut(const absl::Status& why) { return why; }
  // Releases what the call holds, because it ends with `status`.
  virtual void Release(const absl::Status& status) = 0;
  // Whether the call's status is a decision for the audit log. False: it is the status of a job.
  virtual bool IsDecision() const { return true; }
  // Returns the status with which the call ends if the client has gone.
  virtual absl::Status Gone() { return absl::CancelledError("the client cancelled the call or went away"); }
  // Runs a task, by default on a thread of its own.
  virtual absl::Status Launch(std::function<void()> task) { return parts_.tasks->Start(std::move(task)); }

  // Takes the step TimeOut, because a time has passed or memory was taken back. Does nothing if `why` is OK.
  absl::Status Expire(const absl::Status& why) {
    if (why.ok()) return why;
    timed_out_ = true;
    return TimeOut(why);
  }
  bool timed_out() const { return timed_out_; }

  // Runs a step under the lock, unless the call has ended. If it fails or throws, the call ends with the
  // error.
  template <typename Step>
  void Take(const Step& step) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (ended_) return;
    if (const absl::Status status = CatchExceptions(step); !status.ok()) EndAfterTask(status);
  }
  // Returns a member function as a step for the event thread. It is skipped if the call no longer exists.
  template <typename Call>
  std::shared_ptr<EventThread::Step> StepOf(absl::Status (Call::*step)()) {
    return std::make_shared<EventThread::Step>([weak = this->weak_from_this(), step] {
      const std::shared_ptr<StreamCall> call = weak.lock();
      if (call != nullptr) call->Take([&] { return (static_cast<Call&>(*call).*step)(); });
    });
  }
  // Returns a function that posts the step.
  template <typename Call>
  std::function<void()> Waker(absl::Status (Call::*step)()) {
    return [events = parts_.events, step = StepOf(step)] { events->Post(step); };
  }

  // Runs `task`, then the step `then`. `then` is skipped if the task fails or the call is to end.
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
  // Mark the begin and the end of a task. EndTask returns the error with which the call is to end, if any.
  void BeginTask() { task_ = true; }
  absl::Status EndTask() {
    task_ = false;
    return end_;
  }
  // Ends the call with its first error. If a task runs, asks it to stop, and the call ends after it.
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
  // noexcept: without memory for the end, the process ends. Otherwise the call would hang.
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
  std::shared_ptr<EventThread::Step> time_passed_;  // constant once the call has begun; outlives times_

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

  // Expire does nothing if the event that the call waited for came at the same moment as the time limit.
  absl::Status TimePassed() { return Expire(times_.Passed()); }

  std::stop_source stop_;
  Mutex mutex_;
  // Guarded by mutex_: only steps use these.
  std::shared_ptr<StreamCall> self_;  // keeps the call until OnDone
  bool task_ = false;                 // a task runs
  bool ended_ = false;
  bool timed_out_ = false;
  absl::Status end_;  // not OK: the error with which the call is to end
  std::optional<StreamLimits::Lease> stream_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_CALLS_STREAM_CALL_H_
