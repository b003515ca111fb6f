#include "server/rpc/extract_call.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "server/base/retry.h"
#include "server/base/trace.h"
#include "server/jobs/job_claims.h"
#include "server/messages/event_messages.h"
#include "server/rpc/end_call.h"
#include "server/schedule/retry_delay.h"

namespace spexd {
namespace {

constexpr size_t kSmallMessage = 64 << 10;  // larger ones leave at once, whether or not others follow

// The image's name as the client gives it: its path, or the upload's or the arrays' name.
std::string ImageName(const v1::InputSource& image) {
  if (image.has_path()) return image.path();
  return image.has_raw() ? image.raw().name() : image.upload().name();
}

grpc::ByteBuffer StateMessage(const std::string& state, int done, int total) {
  v1::ExtractEvent event;
  event.mutable_progress()->set_state(state);
  event.mutable_progress()->set_bundles_done(done);
  event.mutable_progress()->set_bundles_total(total);
  return ToMessage(event);
}

absl::Status DeadlinePassed(const std::string& state) {
  return absl::DeadlineExceededError(absl::StrCat("the job's deadline passed (", state, ")"));
}

// Until the client's deadline. In floating point: a call without a deadline has the last time that there is,
// and a clock that shows a time before 1970 would be too far from it.
std::chrono::duration<double> TimeLeft(const grpc::CallbackServerContext& context) {
  using Seconds = std::chrono::duration<double>;
  return Seconds(context.deadline().time_since_epoch()) -
         Seconds(std::chrono::system_clock::now().time_since_epoch());
}

}  // namespace

ExtractCall::Reactor* ExtractCall::Begin(const ServerParts& parts, grpc::CallbackServerContext* context,
                                         Identity caller, StreamLimits::Place place, std::string job_id) {
  const std::shared_ptr<ExtractCall> call(
      new ExtractCall(parts, context, std::move(caller), std::move(place), std::move(job_id)));
  MutexLock lock(&call->mutex_);
  call->time_passed_ = call->StepOf(&ExtractCall::TimePassed);
  call->times_.WaitForHeader();
  call->self_ = call;
  call->StartRead(call->request_.buffer());
  return call.get();
}

ExtractCall::ExtractCall(const ServerParts& parts, grpc::CallbackServerContext* context, Identity caller,
                         StreamLimits::Place place, std::string job_id)
    : parts_(parts),
      context_(context),
      caller_(std::move(caller)),
      job_id_(std::move(job_id)),
      trace_(TraceOf(*context)),
      peer_(context->peer()),
      place_(std::move(place)),
      times_(*parts.options, parts.watchdog, [this] { parts_.events->Post(time_passed_); }) {}

template <typename Step>
void ExtractCall::Take(const Step& step) {
  MutexLock lock(&mutex_);
  if (stage_ == Stage::kEnded) return;
  if (const absl::Status status = CatchExceptions(step); !status.ok()) Fail(status);
}

std::shared_ptr<EventThread::Step> ExtractCall::StepOf(absl::Status (ExtractCall::*step)()) {
  return std::make_shared<EventThread::Step>([weak = weak_from_this(), step] {
    const std::shared_ptr<ExtractCall> call = weak.lock();
    if (call != nullptr) call->Take([&] { return (*call.*step)(); });
  });
}

std::function<void()> ExtractCall::Waker(absl::Status (ExtractCall::*step)()) {
  return [events = parts_.events, step = StepOf(step)] { events->Post(step); };
}

void ExtractCall::OnReadDone(bool ok) {
  Take([&] {
    if (!ok) return ReadFailed();
    SPEXD_RETURN_IF_ERROR(request_.Parse());
    return stage_ == Stage::kHeader ? HeaderCame() : MessageCame();
  });
}

void ExtractCall::OnWriteDone(bool ok) {
  Take([&] {
    writing_ = false;
    send_seconds_ += times_.seconds() - write_since_;
    if (!ok) return Abandon();
    parts_.metrics->CountSent(static_cast<int64_t>(outbox_.front().Length()));
    outbox_.pop_front();
    if (!timeout_.ok()) return TimedOut();
    return outbox_.empty() ? AllSent() : Send();
  });
}

// A read or write that is under way fails by itself; a job that runs is stopped.
void ExtractCall::OnCancel() {
  stop_.request_stop();
  Take([&] { return stage_ == Stage::kQueued && !writing_ ? Gone() : absl::OkStatus(); });
}

void ExtractCall::OnDone() {
  std::shared_ptr<ExtractCall> self;
  MutexLock lock(&mutex_);
  self.swap(self_);
}

// Files are looked at and the engine is asked on a thread: both may hang.
absl::Status ExtractCall::HeaderCame() {
  if (!request_.message().has_header())
    return absl::InvalidArgumentError("the first message must be the header");
  const v1::JobHeader& header = request_.message().header();
  times_.HeaderCame();
  SPEXD_ASSIGN_OR_RETURN(spec_, ToJobSpec(header));
  SPEXD_ASSIGN_OR_RETURN(receiver_, InputReceiver::Make(header, parts_.options->max_upload_bytes));
  image_name_ = ImageName(header.image());
  JobClaim claim = ClaimOf(header, caller_, peer_);
  claim.bytes = receiver_->declared_bytes();
  claim.deadline = Bounds().deadline;
  request_.Clear();
  stage_ = Stage::kChecking;
  times_.WaitForServer();
  return parts_.tasks->Start(
      [self = shared_from_this(), paths = receiver_->paths(), claim = std::move(claim)] {
        absl::StatusOr<Admission> admission = CatchExceptions([&] { return self->Admit(paths, claim); });
        self->Take([&]() -> absl::Status {
          if (!admission.ok()) return admission.status();
          return self->Accept(*std::move(admission));
        });
      });
}

absl::StatusOr<ExtractCall::Admission> ExtractCall::Admit(const std::vector<std::string>& paths,
                                                          const JobClaim& claim) {
  for (const std::string& path : paths) SPEXD_RETURN_IF_ERROR(parts_.paths->Check(path));
  if (absl::Status engine = parts_.health->Check(); !engine.ok())
    return Refuse(std::move(engine), "engine_failed", kAfterEngineFailure);
  absl::StatusOr<JobQueue::Ticket> ticket = parts_.queue->Admit(claim);
  if (!ticket.ok()) {
    // Slow uploads hold places in the queue, too. Their calls end soon.
    const bool others =
        RetryDelayOf(ticket.status()).has_value() && ReasonOf(ticket.status()) != "identity_share";
    if (others && parts_.uploads->TakeBackFromSlow())
      return WithRetryDelay(ticket.status(), RetryDelayFor(0));
    return ticket.status();
  }
  SPEXD_ASSIGN_OR_RETURN(
      ByteBudget::Reservation memory,
      parts_.uploads->Reserve(claim.bytes, {caller_.name, Waker(&ExtractCall::TakenBack)}));
  JsonFields fields = JobFields(job_id_, trace_);
  fields["peer"] = peer_;
  fields["identity"] = claim.identity;
  fields["priority"] = claim.priority;
  fields["queue_position"] = ticket->position();
  fields["upload_bytes"] = claim.bytes;
  parts_.log->Info("job_accepted", fields);
  return Admission{*std::move(ticket), std::move(memory)};
}

absl::Status ExtractCall::Accept(Admission admission) {
  ticket_.emplace(std::move(admission.ticket));
  memory_ = std::move(admission.memory);
  SPEXD_RETURN_IF_ERROR(memory_.WaitForUpload());
  if (stop_.stop_requested()) return Gone();
  stage_ = Stage::kReceiving;
  since_ = times_.seconds();
  row_.emplace(parts_.board, job_id_, image_name_);
  v1::ExtractEvent event;
  event.mutable_accepted()->set_job_id(job_id_);
  event.mutable_accepted()->set_queue_position(ticket_->position());
  outbox_.push_back(ToMessage(event));
  return Send();
}

// A SHA-256 takes seconds, so it is computed on a thread.
absl::Status ExtractCall::MessageCame() {
  const v1::ExtractRequest& message = request_.message();
  if (!message.has_end() || !receiver_->TakesLong(message.end())) {
    int64_t came = 0;
    for (const absl::string_view piece : request_.payload()) came += static_cast<int64_t>(piece.size());
    parts_.metrics->CountReceived(came);
    memory_.Came(came);
    SPEXD_RETURN_IF_ERROR(receiver_->Add(message, request_.payload()));
    return AllSent();
  }
  SPEXD_RETURN_IF_ERROR(memory_.EndWait());
  stage_ = Stage::kHashing;
  times_.WaitForServer();
  return parts_.tasks->Start([self = shared_from_this()] {
    const absl::Status added =
        CatchExceptions([&] { return self->receiver_->Add(self->request_.message()); });
    self->Take([&]() -> absl::Status {
      SPEXD_RETURN_IF_ERROR(added);
      if (self->stop_.stop_requested()) return self->Gone();
      self->stage_ = Stage::kReceiving;
      return self->AllSent();
    });
  });
}

// The client has sent everything, or has disconnected. gRPC may report a cancellation only after it ended a
// read because of it. By then nothing can be sent any more, so sending a message shows which of the two it
// is.
absl::Status ExtractCall::ReadFailed() {
  if (stop_.stop_requested()) return Gone();
  if_client_is_there_ = stage_ == Stage::kHeader
                            ? absl::InvalidArgumentError("the stream ended without a header")
                            : receiver_->Finish().status();
  return SendState("receiving", 0, 0);
}

absl::Status ExtractCall::AllSent() {
  switch (stage_) {
    case Stage::kQueued:  // a client that went during the write gets no turn: nothing else would end its call
      if (stop_.stop_requested()) return Gone();
      times_.WaitForServer();
      return absl::OkStatus();
    case Stage::kRunning:
      return PassOnEvents();
    case Stage::kSending:
      End(absl::OkStatus());
      return absl::OkStatus();
    default:
      break;
  }
  if (if_client_is_there_.has_value()) return *if_client_is_there_;
  if (receiver_->complete()) return AllCame();
  SPEXD_RETURN_IF_ERROR(memory_.WaitForUpload());
  times_.WaitForInput();
  StartRead(request_.buffer());
  return absl::OkStatus();
}

absl::Status ExtractCall::AllCame() {
  SPEXD_RETURN_IF_ERROR(memory_.EndWait());
  SPEXD_ASSIGN_OR_RETURN(inputs_, receiver_->Finish());
  inputs_.memory = std::move(memory_);
  receiver_.reset();
  request_.Clear();
  receive_seconds_ = times_.seconds() - since_;
  parts_.metrics->ObserveStage("receive", receive_seconds_);
  stage_ = Stage::kQueued;
  label_ = "queued";
  if (stop_.stop_requested()) return Gone();
  since_ = times_.seconds();
  ticket_->Join(Waker(&ExtractCall::TurnCame));  // the turn may come before the client has read that it waits
  return SendState("queued", 0, 0);
}

absl::Status ExtractCall::TurnCame() {
  queue_seconds_ = times_.seconds() - since_;
  parts_.metrics->ObserveStage("queue", queue_seconds_);
  if (stop_.stop_requested()) return Gone();
  mailbox_ = std::make_unique<JobMailbox>(Waker(&ExtractCall::PassOnEvents));
  job_.emplace(parts_, JobFields(job_id_, trace_), std::move(spec_), std::move(inputs_), mailbox_.get(),
               Bounds());
  SPEXD_RETURN_IF_ERROR(parts_.tasks->Start([self = shared_from_this()] { self->RunJob(); }));
  stage_ = Stage::kRunning;
  return PassOnEvents();
}

void ExtractCall::RunJob() {
  absl::Status status = CatchExceptions([this] { return job_->Run(); });
  status = CatchExceptions([&]() -> absl::Status {
    const Schedule::Cost cost = ticket_->EndTurn(status.ok());
    SPEXD_RETURN_IF_ERROR(status);
    parts_.metrics->ObserveEstimate(cost.taken, cost.estimated);
    return job_->MakeProducts();
  });
  if (!status.ok()) {
    const absl::Status engine = parts_.health->Check();  // the job may be first to show a failure
    if (absl::IsUnavailable(status)) {
      status = WithRetryDelay(status, engine.ok() ? kAfterDeviceFailure : kAfterEngineFailure);
    }
  }
  {
    MutexLock lock(&mutex_);
    job_status_ = std::move(status);
  }
  mailbox_->Close();
}

// Events that come at once leave together, up to the first bundle among them.
absl::Status ExtractCall::PassOnEvents() {
  if (stage_ != Stage::kRunning || writing_) return absl::OkStatus();
  for (;;) {
    JobEvent event;
    const JobMailbox::Got got = mailbox_->Next(&event);
    if (got == JobMailbox::Got::kEnd && (outbox_.empty() || job_status_.ok())) return JobEnded();
    if (got != JobMailbox::Got::kEvent) {
      if (!outbox_.empty()) return Send();
      if (timeout_.ok()) times_.WaitForServer();
      return absl::OkStatus();
    }
    if (gone_ || !timeout_.ok()) continue;
    const bool leaves =
        std::holds_alternative<BundleEvent>(event) || std::holds_alternative<ProductEvent>(event);
    Queue(std::move(event));
    if (leaves) return Send();
  }
}

absl::Status ExtractCall::JobEnded() {
  stage_ = Stage::kSending;
  label_ = job_status_.ok() ? "sending" : job_->state();
  SPEXD_RETURN_IF_ERROR(failure_);
  if (gone_ || !timeout_.ok() || absl::IsCancelled(job_status_)) return Gone();
  SPEXD_RETURN_IF_ERROR(job_status_);

  JobReport report = job_->report();
  report.job_id = job_id_;
  report.queue_seconds = queue_seconds_;
  estimated_seconds_ = report.estimated_seconds;
  engine_seconds_ = report.engine_seconds;
  report.stages.insert(report.stages.begin(), {"receive", receive_seconds_});
  stages_ = report.stages;
  row_->Enter("sending");
  parts_.metrics->ObserveStage("send", send_seconds_);
  WriteSummary(report, [this](const v1::ExtractEvent& event) {
    outbox_.push_back(ToMessage(event));
    return true;
  });
  return Send();
}

void ExtractCall::Queue(JobEvent event) {
  if (const auto* state = std::get_if<StateEvent>(&event)) {
    row_->Enter(state->state, state->bundles_done, state->bundles_total);
    outbox_.push_back(StateMessage(state->state, state->bundles_done, state->bundles_total));
    return;
  }
  if (const auto* plan = std::get_if<PlanEvent>(&event)) {
    WriteFrameInfo(*plan->plan, plan->rows, plan->columns, [this](const v1::ExtractEvent& message) {
      outbox_.push_back(ToMessage(message));
      return true;
    });
    return;
  }
  if (auto* product = std::get_if<ProductEvent>(&event)) {
    for (v1::ExtractEvent& part : product->parts)
      outbox_.push_back(ToMessage(std::make_shared<const v1::ExtractEvent>(std::move(part))));
    return;
  }
  const auto& bundle = std::get<BundleEvent>(event);
  spectra_ += bundle.bundle->fibres.count;
  if (!std::exchange(first_bundle_sent_, true)) parts_.metrics->ObserveFirstBundle(times_.seconds());
  for (const BundlePiece& piece : bundle.pieces) outbox_.push_back(ToMessage(piece, bundle.bundle));
}

absl::Status ExtractCall::SendState(const std::string& state, int done, int total) {
  if (row_.has_value()) row_->Enter(state, done, total);
  outbox_.push_back(StateMessage(state, done, total));
  return Send();
}

absl::Status ExtractCall::Send() {
  times_.WaitForClientToRead();
  writing_ = true;
  write_since_ = times_.seconds();
  grpc::WriteOptions options;
  const bool last = stage_ == Stage::kSending && outbox_.size() == 1;
  const bool small = outbox_.front().Length() < kSmallMessage;
  // What follows, or the status, is sent together with it.
  if ((outbox_.size() > 1 && small) || last) options.set_buffer_hint();
  StartWrite(&outbox_.front(), options);
  return absl::OkStatus();
}

absl::Status ExtractCall::TimeOut(const absl::Status& why) {
  if (why.ok()) return why;  // what it waited for came at the same moment
  const bool late = !timeout_.ok() || times_.stalled();
  timeout_ = why;
  stop_.request_stop();
  if (!writing_) return TimedOut();
  if (late) {
    context_->TryCancel();  // a status would wait behind the message that the client does not read
  } else {
    times_.AllowLastMessage();
  }
  return absl::OkStatus();
}

absl::Status ExtractCall::TimedOut() {
  outbox_.clear();
  if (stage_ == Stage::kRunning) return PassOnEvents();
  const bool task = stage_ == Stage::kChecking || stage_ == Stage::kHashing;
  return task ? absl::OkStatus() : Gone();
}

absl::Status ExtractCall::Abandon() {
  stop_.request_stop();
  gone_ = true;
  outbox_.clear();
  if (stage_ != Stage::kRunning) return Gone();
  return PassOnEvents();
}

absl::Status ExtractCall::Gone() {
  if (!timeout_.ok()) return timeout_;
  // The client uses its own clock, and told this side the remaining time rounded up to three digits.
  const std::chrono::duration<double> early(0.05 + 0.01 * times_.seconds());
  if (TimeLeft(*context_) <= early) return DeadlinePassed(label_);
  return absl::CancelledError(absl::StrCat("the client cancelled the job or went away (", label_, ")"));
}

JobBounds ExtractCall::Bounds() {
  JobBounds bounds{stop_.get_token(), times_.job_deadline(),
                   absl::StrCat("--max-job-seconds ", parts_.options->max_job_seconds),
                   MaxJobSecondsPassed(parts_.options->max_job_seconds),
                   ticket_.has_value() ? &*ticket_ : nullptr};
  const std::chrono::duration<double> left = TimeLeft(*context_);
  const std::chrono::duration<double> allowed = bounds.deadline - CallTimes::Clock::now();
  if (left < allowed) {
    bounds.deadline = CallTimes::Clock::now() + std::chrono::duration_cast<CallTimes::Clock::duration>(left);
    bounds.limit = "the client's deadline";
    bounds.passed = DeadlinePassed(JobStateName(JobState::kReading));  // no job is estimated in a later state
  }
  return bounds;
}

// While the job runs, the call waits for its end.
void ExtractCall::Fail(const absl::Status& status) noexcept {
  if (stage_ != Stage::kRunning) return End(status);
  failure_ = status;
  stop_.request_stop();
  gone_ = true;
  outbox_.clear();
  if (const absl::Status ended = PassOnEvents(); !ended.ok()) End(ended);
}

void ExtractCall::End(const absl::Status& status) noexcept {
  LogEnd(status);
  NoteEnd(status);
  stage_ = Stage::kEnded;
  job_.reset();
  inputs_ = JobInputs();
  receiver_.reset();
  memory_ = ByteBudget::Reservation();
  ticket_.reset();
  place_.reset();
  parts_.access->NoteIfDenied(*context_, kExtractRpc, caller_, status);
  Finish(EndCall(status, context_, parts_.metrics));
}

void ExtractCall::LogEnd(const absl::Status& status) {
  parts_.metrics->CountJob(status.code());
  const bool cancelled = absl::IsCancelled(status) || absl::IsDeadlineExceeded(status);
  if (cancelled) parts_.metrics->CountCancellation(label_);
  JsonFields fields = JobFields(job_id_, trace_);
  fields["peer"] = peer_;
  fields["code"] = CodeLabel(status.code());
  fields["stage"] = label_;
  fields["seconds"] = times_.seconds();
  fields["receive_seconds"] = receive_seconds_;
  fields["queue_seconds"] = queue_seconds_;
  fields["send_seconds"] = send_seconds_;
  if (engine_seconds_ > 0) {
    fields["estimated_seconds"] = estimated_seconds_;
    fields["engine_seconds"] = engine_seconds_;
  }
  if (!status.ok()) fields["message"] = std::string(status.message());
  if (!timeout_.ok()) fields["stalled"] = true;
  parts_.log->Write(absl::IsInternal(status) ? LogLevel::kError : LogLevel::kInfo, "job_ended", fields);
}

void ExtractCall::NoteEnd(const absl::Status& status) {
  if (!row_.has_value()) return;
  if (stages_.empty()) stages_ = {{"receive", receive_seconds_}};
  stages_.insert(stages_.begin() + 1, {"queue", queue_seconds_});
  stages_.push_back({"send", send_seconds_});
  parts_.metrics->ObserveJob(status.code(), times_.seconds());
  row_->End({.code = status.code(),
             .message = std::string(status.message()),
             .seconds = times_.seconds(),
             .engine_seconds = engine_seconds_,
             .stages = std::move(stages_),
             .spectra = spectra_});
  row_.reset();
}

}  // namespace spexd
