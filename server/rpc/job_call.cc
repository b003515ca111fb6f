#include "server/rpc/job_call.h"

#include <chrono>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "server/base/refusal.h"
#include "server/base/retry.h"
#include "server/base/trace.h"
#include "server/messages/event_messages.h"
#include "server/schedule/retry_delay.h"

namespace spexd {
namespace {

absl::Status DeadlinePassed(const std::string& state) {
  return absl::DeadlineExceededError(absl::StrCat("the job's deadline passed (", state, ")"));
}

// Returns the seconds until the client's deadline. It is computed in floating point, because a call without a
// deadline has the largest time_point, and its distance to a time before 1970 would overflow.
double SecondsLeft(const grpc::CallbackServerContext& context) {
  using Seconds = std::chrono::duration<double>;
  const Seconds left = Seconds(context.deadline().time_since_epoch()) -
                       Seconds(std::chrono::system_clock::now().time_since_epoch());
  return left.count();
}

}  // namespace

template <typename Message>
JobReactor* JobCall<Message>::Begin(const ServerParts& parts, const char* rpc,
                                    grpc::CallbackServerContext* context, JobIds* ids, Ask ask) {
  const auto begin = [&]() -> absl::StatusOr<JobReactor*> {
    SPEXD_ASSIGN_OR_RETURN(Identity caller, parts.access->Admit(*context, rpc));
    SPEXD_ASSIGN_OR_RETURN(StreamLimits::Lease stream, parts.streams->Acquire(context->peer()));
    const std::shared_ptr<JobCall> call(new JobCall(
        parts, rpc, {context, std::move(caller), std::move(stream)}, ids->Next(), std::move(ask)));
    return call->Base::Begin();
  };
  const absl::StatusOr<JobReactor*> call = CatchExceptions(begin);
  if (call.ok()) return *call;
  return new Refusal<JobReactor>(EndCall(call.status(), context, parts.metrics));
}

template <typename Message>
JobCall<Message>::JobCall(const ServerParts& parts, const char* rpc, CallStart start, std::string job_id,
                          Ask ask)
    : Base(parts, rpc, std::move(start), parts.options->max_job_seconds),
      trace_(TraceOf(*context_)),
      peer_(context_->peer()),
      ask_(std::move(ask)),
      job_(parts, job_id, JobFields(job_id, trace_)) {}

// Looking at files and asking the engine may block, so a task does it.
template <typename Message>
absl::Status JobCall<Message>::HeaderCame() {
  SPEXD_ASSIGN_OR_RETURN(AskedJob asked,
                         ask_(request_.message().header(), {caller_, peer_}, job_.log_fields()));
  receiver_ = std::move(asked.receiver);
  name_ = std::move(asked.name);
  work_ = std::move(asked.work);
  JobClaim claim = std::move(asked.claim);
  claim.bytes = receiver_->declared_bytes();
  claim.deadline = Bounds().deadline;
  request_.Clear();
  return Start([this, claim = std::move(claim)] { return Admit(claim); }, [this] { return Admitted(); });
}

template <typename Message>
absl::Status JobCall<Message>::Admit(JobClaim claim) {
  for (const std::string& path : receiver_->paths()) SPEXD_RETURN_IF_ERROR(parts_.paths->Check(path));
  if (absl::Status engine = parts_.health->Check(); !engine.ok())
    return Refuse(std::move(engine), "engine_failed", kAfterEngineFailure);
  absl::StatusOr<JobQueue::Ticket> ticket = parts_.queue->Admit(claim);
  if (!ticket.ok()) {
    // Slow uploads hold entries of the queue, too. If others need these, their calls end soon.
    const bool others =
        RetryDelayOf(ticket.status()).has_value() && ReasonOf(ticket.status()) != "identity_share";
    if (others && parts_.uploads->TakeBackFromSlow())
      return WithRetryDelay(ticket.status(), RetryDelayFor(0));
    return ticket.status();
  }
  ticket_.emplace(*std::move(ticket));
  SPEXD_ASSIGN_OR_RETURN(memory_, parts_.uploads->Reserve(claim.bytes, this->Uploader()));
  JsonFields fields = job_.log_fields();
  fields["peer"] = peer_;
  fields["identity"] = claim.identity;
  fields["priority"] = claim.priority;
  fields["queue_position"] = ticket_->position();
  fields["upload_bytes"] = claim.bytes;
  parts_.log->Info("job_accepted", fields);
  return absl::OkStatus();
}

template <typename Message>
absl::Status JobCall<Message>::Admitted() {
  SPEXD_RETURN_IF_ERROR(memory_.WaitForUpload());
  if (stop_requested()) return Gone();
  since_ = times_.seconds();
  job_.Appear(name_);
  v1::ExtractEvent event;
  event.mutable_accepted()->set_job_id(job_.id());
  event.mutable_accepted()->set_queue_position(ticket_->position());
  Add(ToMessage(event));
  return Send();
}

// A SHA-256 takes seconds, so it is computed in a task.
template <typename Message>
absl::Status JobCall<Message>::MessageCame() {
  const Message& message = request_.message();
  if (message.has_end() && receiver_->TakesLong(message.end())) {
    return Start([this] { return receiver_->Add(request_.message()); },
                 [this] { return stop_requested() ? Gone() : InputCame(0); });
  }
  int64_t bytes = 0;
  for (const absl::string_view piece : request_.payload()) bytes += static_cast<int64_t>(piece.size());
  SPEXD_RETURN_IF_ERROR(receiver_->Add(message, request_.payload()));
  return InputCame(bytes);
}

template <typename Message>
absl::Status JobCall<Message>::InputCame(int64_t bytes) {
  return receiver_->complete() ? AllCame() : ReadOn(bytes);
}

// The client has ended its stream early or has disconnected. After a disconnection, gRPC may report the
// failed read before the cancellation. Sending a message tells the two apart, because it fails after a
// disconnection.
template <typename Message>
absl::Status JobCall<Message>::EndIfClientIsThere(const absl::Status& why) {
  if_client_is_there_ = why;
  return SendState("receiving");
}

template <typename Message>
absl::Status JobCall<Message>::AllSent() {
  switch (phase_) {
    case Phase::kReceiving:
      if (if_client_is_there_.has_value()) return *if_client_is_there_;
      return InputCame(0);
    case Phase::kQueued:  // if the client went during the write, nothing else would end the call
      if (stop_requested()) return Gone();
      times_.WaitForServer();
      return absl::OkStatus();
    case Phase::kRunning:
      return PassOnEvents();
    case Phase::kSending:
      break;
  }
  End(absl::OkStatus());
  return absl::OkStatus();
}

template <typename Message>
absl::Status JobCall<Message>::AllCame() {
  SPEXD_RETURN_IF_ERROR(memory_.EndWait());
  SPEXD_ASSIGN_OR_RETURN(inputs_, receiver_->Finish());
  inputs_.memory = std::move(memory_);
  receiver_.reset();
  request_.Clear();
  receive_seconds_ = times_.seconds() - since_;
  parts_.metrics->ObserveStage("receive", receive_seconds_);
  phase_ = Phase::kQueued;
  job_.Enter("queued");
  if (stop_requested()) return Gone();
  since_ = times_.seconds();
  ticket_->Join(
      this->Waker(&JobCall::SlotCame));  // may be called before the client has read that its job waits
  return SendState("queued");
}

template <typename Message>
absl::Status JobCall<Message>::SlotCame() {
  queue_seconds_ = times_.seconds() - since_;
  parts_.metrics->ObserveStage("queue", queue_seconds_);
  if (stop_requested()) return Gone();
  SPEXD_RETURN_IF_ERROR(job_.Start(work_, std::move(inputs_), Bounds(), this->Waker(&JobCall::PassOnEvents),
                                   this->shared_from_this()));
  this->BeginTask();
  phase_ = Phase::kRunning;
  return PassOnEvents();
}

// Sends the events that have come together, up to the first bundle or product among them. A call that is to
// end drops them and waits for the job's end.
template <typename Message>
absl::Status JobCall<Message>::PassOnEvents() noexcept {
  if (phase_ != Phase::kRunning || writing()) return absl::OkStatus();
  for (;;) {
    JobEvent event;
    const JobMailbox::Got got = job_.Next(&event);
    if (got == JobMailbox::Got::kEnd && (!has_unsent() || job_.status().ok()))
      return CatchExceptions([this] { return JobEnded(); });
    if (got != JobMailbox::Got::kEvent) {
      if (has_unsent()) return Send();
      if (!timed_out()) times_.WaitForServer();
      return absl::OkStatus();
    }
    if (stopping()) continue;
    const bool is_bundle = std::holds_alternative<BundleEvent>(event);
    const bool send_now = is_bundle || std::holds_alternative<ProductEvent>(event);
    if (is_bundle && !std::exchange(first_bundle_sent_, true))
      parts_.metrics->ObserveFirstBundle(times_.seconds());
    for (grpc::ByteBuffer& message : ToMessages(std::move(event))) Add(std::move(message));
    if (send_now) return Send();
  }
}

template <typename Message>
absl::Status JobCall<Message>::JobEnded() {
  phase_ = Phase::kSending;
  if (job_.status().ok()) job_.Enter("sending");
  SPEXD_RETURN_IF_ERROR(EndTask());
  if (absl::IsCancelled(job_.status())) return Gone();
  SPEXD_RETURN_IF_ERROR(job_.status());
  parts_.metrics->ObserveStage("send", send_seconds());
  for (const v1::ExtractEvent& part :
       CutSummary(job_.Report(queue_seconds_, {{"receive", receive_seconds_}})))
    Add(ToMessage(part));
  return Send(/*status_follows=*/true);
}

template <typename Message>
absl::Status JobCall<Message>::SendState(const std::string& state) {
  for (grpc::ByteBuffer& message : ToMessages(StateEvent{state})) Add(std::move(message));
  return Send();
}

// A pending read or write fails by itself, and a running job is stopped. Only a waiting job needs an end
// here.
template <typename Message>
absl::Status JobCall<Message>::ClientWent() {
  return phase_ == Phase::kQueued && !writing() ? Gone() : absl::OkStatus();
}

template <typename Message>
absl::Status JobCall<Message>::Gone() {
  if (stopping()) return why_stopping();
  // The client uses its own clock, and has sent the remaining time rounded up to three digits.
  const double early = 0.05 + 0.01 * times_.seconds();
  const std::string state = job_.state();
  if (SecondsLeft(*context_) <= early) return DeadlinePassed(state);
  return absl::CancelledError(absl::StrCat("the client cancelled the job or went away (", state, ")"));
}

template <typename Message>
JobBounds JobCall<Message>::Bounds() {
  JobBounds bounds(this->stop_token(), parts_.options->max_job_seconds, times_.start(),
                   ticket_.has_value() ? &*ticket_ : nullptr);
  // The state is kReading, because jobs are estimated in no later state.
  bounds.Limit(SecondsLeft(*context_), "the client's deadline",
               DeadlinePassed(JobStateName(JobState::kReading)));
  return bounds;
}

template <typename Message>
void JobCall<Message>::Release(const absl::Status& status) {
  LogEnd(status);
  if (job_.has_appeared()) parts_.metrics->ObserveJob(status.code(), times_.seconds());
  job_.End(status, times_.seconds(), {{"receive", receive_seconds_}, {"queue", queue_seconds_}},
           {{"send", send_seconds()}});
  inputs_ = JobInputs();
  receiver_.reset();
  memory_.Release();
  ticket_.reset();
}

template <typename Message>
void JobCall<Message>::LogEnd(const absl::Status& status) {
  const std::string state = job_.state();
  parts_.metrics->CountJob(status.code());
  const bool cancelled = absl::IsCancelled(status) || absl::IsDeadlineExceeded(status);
  if (cancelled) parts_.metrics->CountCancellation(state);
  JsonFields fields = job_.log_fields();
  fields["peer"] = peer_;
  fields["code"] = CodeLabel(status.code());
  fields["stage"] = state;
  fields["seconds"] = times_.seconds();
  fields["receive_seconds"] = receive_seconds_;
  fields["queue_seconds"] = queue_seconds_;
  fields["send_seconds"] = send_seconds();
  if (const JobReport* const report = job_.report(); report != nullptr) {
    fields["estimated_seconds"] = report->estimated_seconds;
    fields["engine_seconds"] = report->engine_seconds;
  }
  if (!status.ok()) fields["message"] = std::string(status.message());
  if (timed_out()) fields["stalled"] = true;
  parts_.log->Write(absl::IsInternal(status) ? LogLevel::kError : LogLevel::kInfo, "job_ended", fields);
}

template class JobCall<v1::ExtractRequest>;
template class JobCall<v1::AnalyseRequest>;

}  // namespace spexd
