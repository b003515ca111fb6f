// One Extract call: admission, receiving, waiting its turn, and sending what the job's thread makes.
#ifndef SPEXD_SERVER_RPC_EXTRACT_CALL_H_
#define SPEXD_SERVER_RPC_EXTRACT_CALL_H_

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/threads/mutex.h"
#include "core/base/trace_context.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/jobs/extract_job.h"
#include "server/jobs/job_inputs.h"
#include "server/jobs/server_parts.h"
#include "server/messages/convert.h"
#include "server/messages/received_request.h"
#include "server/rpc/call_times.h"
#include "spexd/v1/extraction.grpc.pb.h"

namespace spexd {

inline constexpr char kExtractRpc[] = "spexd.v1.Extraction/Extract";

// A state machine that costs no thread while it waits: for the client, for its turn, or for its job. gRPC,
// the event thread and the call's own tasks (see TaskThreads) call it; each call is a step, one at a time.
// What may block or compute for long is a task.
class ExtractCall final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                          public std::enable_shared_from_this<ExtractCall> {
 public:
  using Reactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

  // Begins a call that lives until gRPC and its tasks are done with it.
  static Reactor* Begin(const ServerParts& parts, grpc::CallbackServerContext* context, Identity caller,
                        StreamLimits::Place place, std::string job_id);

 private:
  enum class Stage { kHeader, kChecking, kReceiving, kHashing, kQueued, kRunning, kSending, kEnded };
  struct Admission {
    JobQueue::Ticket ticket;
    ByteBudget::Reservation memory;
  };

  ExtractCall(const ServerParts& parts, grpc::CallbackServerContext* context, Identity caller,
              StreamLimits::Place place, std::string job_id);

  // Called by gRPC.
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  // Runs a step under the lock, unless the call has ended. If the step fails or throws, the call ends with
  // that.
  template <typename Step>
  void Take(const Step& step) ABSL_LOCKS_EXCLUDED(mutex_);
  // This member as a step of the event thread, taken if the call is still there by then.
  std::shared_ptr<EventThread::Step> StepOf(absl::Status (ExtractCall::*step)());
  // A function that posts the step.
  std::function<void()> Waker(absl::Status (ExtractCall::*step)());

  // Steps, run by Take. An error ends the call.
  absl::Status HeaderCame();
  absl::Status MessageCame();
  absl::Status ReadFailed();
  absl::Status Accept(Admission admission);
  absl::Status AllCame();
  absl::Status AllSent();
  absl::Status TurnCame();
  absl::Status PassOnEvents();
  absl::Status JobEnded();
  absl::Status TimePassed() { return TimeOut(times_.Passed()); }
  absl::Status TakenBack() { return TimeOut(memory_.EndWait()); }  // its memory, for others
  absl::Status TimeOut(const absl::Status& why);
  absl::Status TimedOut();

  // Tasks, on threads of their own without the lock.
  absl::StatusOr<Admission> Admit(const std::vector<std::string>& paths, const JobClaim& claim);
  void RunJob();

  void Queue(JobEvent event);
  absl::Status SendState(const std::string& state, int done, int total);
  absl::Status Send();     // what is in the outbox, one message after the other
  absl::Status Abandon();  // the client is gone
  absl::Status Gone();     // why it went: Cancelled or DeadlineExceeded
  void Fail(const absl::Status& status) noexcept;
  void End(const absl::Status& status) noexcept;
  void LogEnd(const absl::Status& status);
  void NoteEnd(const absl::Status& status);  // on the board
  JobBounds Bounds();

  const ServerParts parts_;
  grpc::CallbackServerContext* const context_;  // not to be used after End
  const Identity caller_;
  const std::string job_id_;
  const TraceContext trace_;
  const std::string peer_;
  std::stop_source stop_;

  Mutex mutex_;
  // Guarded by mutex_: touched by steps alone. A task has what it needs to itself in kChecking (nothing),
  // kHashing (request_ and receiver_) and kRunning (job_ and ticket_).
  std::shared_ptr<ExtractCall> self_;  // until OnDone
  Stage stage_ = Stage::kHeader;
  std::string label_ = "receiving";  // state named in the count of cancellations
  std::optional<StreamLimits::Place> place_;
  std::shared_ptr<EventThread::Step> time_passed_;  // never changes once the call has begun
  CallTimes times_;
  absl::Status timeout_;  // not OK: a time has passed, or its memory was taken back
  absl::Status failure_;  // not OK: a step failed while the job ran
  ReceivedRequest request_;
  std::deque<grpc::ByteBuffer> outbox_;  // the first is being written
  bool writing_ = false;
  bool gone_ = false;                               // nothing can be sent any more
  std::optional<absl::Status> if_client_is_there_;  // ends the call once a message could be sent
  std::string image_name_;
  JobSpec spec_;
  std::optional<InputReceiver> receiver_;
  std::optional<JobQueue::Ticket> ticket_;
  std::optional<JobBoard::Row> row_;  // from admission
  ByteBudget::Reservation memory_;
  JobInputs inputs_;
  std::unique_ptr<JobMailbox> mailbox_;
  std::optional<ExtractJob> job_;
  absl::Status job_status_;
  bool first_bundle_sent_ = false;
  double since_ = 0;  // begin of what is being measured: receiving, then queueing
  double write_since_ = 0;
  double receive_seconds_ = 0;
  double queue_seconds_ = 0;
  double send_seconds_ = 0;
  int spectra_ = 0;
  // Once the job ended well.
  double estimated_seconds_ = 0;  // by the engine
  double engine_seconds_ = 0;
  std::vector<StageSeconds> stages_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_RPC_EXTRACT_CALL_H_
