// One Watch call: sends a job's events from its event log, and waits for more.
#ifndef SPEXD_SERVER_RPC_WATCH_CALL_H_
#define SPEXD_SERVER_RPC_WATCH_CALL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/base/threads/mutex.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/base/stall_watchdog.h"
#include "server/detached/detached_jobs.h"
#include "server/jobs/server_parts.h"
#include "spexd/v1/jobs.grpc.pb.h"

namespace spexd {

inline constexpr char kWatchRpc[] = "spexd.v1.Jobs/Watch";

// Costs no thread while it waits for its client or its job. What reads the disk runs on a thread of
// DetachedJobs, without the lock; one event is held at a time, so that a slow client costs a message and
// slows nobody.
class WatchCall final : public grpc::ServerWriteReactor<v1::WatchEvent>,
                        public std::enable_shared_from_this<WatchCall> {
 public:
  using Reactor = grpc::ServerWriteReactor<v1::WatchEvent>;

  struct Begun {
    grpc::CallbackServerContext* context;
    Identity caller;
    StreamLimits::Place place;
    std::string job_id;
    uint64_t after;
  };
  // Begins a call that lives until gRPC and its steps are done with it. `jobs` is not owned.
  static Reactor* Begin(const ServerParts& parts, DetachedJobs* jobs, Begun begun);

 private:
  // What comes next.
  enum class Next { kSend, kSleep, kEnd };

  WatchCall(const ServerParts& parts, DetachedJobs* jobs, Begun begun);

  // Called by gRPC.
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  std::shared_ptr<EventThread::Step> StepOf(void (WatchCall::*step)());
  // Goes on with Step, on a thread that may wait for the disk. Cannot fail.
  void GoOn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Step() ABSL_LOCKS_EXCLUDED(mutex_);  // there
  void SendOrSleep(Next next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Woken() ABSL_LOCKS_EXCLUDED(mutex_);
  void TimePassed() ABSL_LOCKS_EXCLUDED(mutex_);
  void End(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Parts of Step, which has watched_ to message_ to itself. An error ends the call, OK too if there is
  // nothing left.
  absl::StatusOr<Next> Look();
  absl::StatusOr<Next> ReadEvent(const LiveJob::View& view);
  void WriteAccepted();
  void WriteProgress(const LiveJob::View& view);

  const ServerParts parts_;
  DetachedJobs* const jobs_;
  grpc::CallbackServerContext* const context_;  // not to be used after End
  const Identity caller_;
  const std::string job_id_;
  const uint64_t after_;
  // Made before it is needed: it may be told where there is no memory.
  const absl::Status client_went_ = absl::CancelledError("the client cancelled the call or went away");

  std::optional<JobStore::Watched> watched_;  // null until the first step
  uint64_t version_ = 0;                      // of the view that was sent
  bool accepted_ = false;
  bool progress_due_ = false;
  ByteBudget::Reservation memory_;  // of the message
  v1::WatchEvent message_;

  Mutex mutex_;
  enum class State { kStepping, kWriting, kAsleep, kEnded };
  State state_ ABSL_GUARDED_BY(mutex_) = State::kStepping;
  bool gone_ ABSL_GUARDED_BY(mutex_) = false;                // the client is
  std::shared_ptr<WatchCall> self_ ABSL_GUARDED_BY(mutex_);  // until OnDone
  std::optional<StreamLimits::Place> place_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<EventThread::Step> time_passed_, woken_, step_;
  StallWatchdog::Watch stall_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_RPC_WATCH_CALL_H_
