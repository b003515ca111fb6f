#include "server/extract_call.h"

#include <thread>
#include <utility>
#include <variant>

#include "absl/strings/str_format.h"
#include "core/base/deadline.h"
#include "core/base/guard.h"
#include "core/base/status_macros.h"
#include "server/retry.h"

namespace spexd {
namespace {

// Delay before a job whose device failed may be tried again: short, since the server has other devices ...
constexpr std::chrono::milliseconds kAfterDeviceFailure(100);
// ... or long enough for a restart of the server.
constexpr std::chrono::milliseconds kAfterEngineFailure(2000);

std::string TraceId(const grpc::CallbackServerContext& context) {
  const auto found = context.client_metadata().find("traceparent");
  if (found == context.client_metadata().end()) return "";
  return TraceIdOf(std::string(found->second.data(), found->second.size()));
}

}  // namespace

ExtractCall::ExtractCall(const ServerParts& parts, grpc::CallbackServerContext* context,
                         ExtractStream* stream, std::string job_id)
    : parts_(parts),
      context_(context),
      stream_(stream),
      job_id_(std::move(job_id)),
      trace_id_(TraceId(*context)),
      watch_(parts.watchdog, [context] { context->TryCancel(); }) {}

double ExtractCall::SecondsSinceStart() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

nlohmann::ordered_json ExtractCall::LogFields() const {
  nlohmann::ordered_json fields = {{"job", job_id_}};
  if (!trace_id_.empty()) fields["trace_id"] = trace_id_;
  return fields;
}

absl::Status ExtractCall::Run() {
  const absl::Status status = CatchExceptions([this] { return Process(); });
  parts_.metrics->CountJob(status.code());
  const bool cancelled = absl::IsCancelled(status) || absl::IsDeadlineExceeded(status);
  if (cancelled) parts_.metrics->CountCancellation(stage_);

  nlohmann::ordered_json fields = LogFields();
  fields["peer"] = context_->peer();
  fields["code"] = CodeLabel(status.code());
  fields["stage"] = stage_;
  fields["seconds"] = SecondsSinceStart();
  fields["receive_seconds"] = receive_seconds_;
  fields["queue_seconds"] = queue_seconds_;
  fields["send_seconds"] = send_seconds_;
  if (engine_seconds_ > 0) {
    fields["estimated_seconds"] = estimated_seconds_;
    fields["engine_seconds"] = engine_seconds_;
  }
  if (!status.ok()) fields["message"] = std::string(status.message());
  if (watch_.stalled()) fields["stalled"] = true;
  parts_.log->Write(absl::IsInternal(status) ? LogLevel::kError : LogLevel::kInfo, "job_ended", fields);
  return status;
}

absl::Status ExtractCall::Process() {
  v1::ExtractRequest first;
  if (!Read(&first)) {
    if (ClientIsGone()) return Gone();
    return absl::InvalidArgumentError("the stream ended without a header");
  }
  if (!first.has_header()) return absl::InvalidArgumentError("the first message must be the header");
  SPEXD_ASSIGN_OR_RETURN(JobSpec spec, ToJobSpec(first.header()));
  SPEXD_ASSIGN_OR_RETURN(InputReceiver receiver,
                         InputReceiver::Make(first.header(), parts_.options->max_upload_bytes));
  for (const std::string& path : receiver.paths()) SPEXD_RETURN_IF_ERROR(parts_.paths->Check(path));

  ByteBudget::Reservation memory;
  SPEXD_ASSIGN_OR_RETURN(JobQueue::Ticket ticket, Admit(receiver, &memory));
  v1::ExtractEvent accepted;
  accepted.mutable_accepted()->set_job_id(job_id_);
  accepted.mutable_accepted()->set_queue_position(ticket.position());
  if (!Send(accepted)) return Gone();

  SPEXD_ASSIGN_OR_RETURN(JobInputs inputs, Receive(&receiver));
  inputs.memory = std::move(memory);

  stage_ = "queued";
  if (!SendState("queued", 0, 0)) return Gone();
  const double queued_since = SecondsSinceStart();
  const absl::Status turn = ticket.WaitForTurn(stream_->stop());
  queue_seconds_ = SecondsSinceStart() - queued_since;
  parts_.metrics->ObserveStage("queue", queue_seconds_);
  if (!turn.ok()) return Gone();
  return RunJob(std::move(spec), std::move(inputs), &ticket);
}

absl::StatusOr<JobQueue::Ticket> ExtractCall::Admit(const InputReceiver& receiver,
                                                    ByteBudget::Reservation* memory) {
  if (absl::Status engine = parts_.health->Check(); !engine.ok()) {
    parts_.metrics->CountRejection("engine_failed");
    return WithRetryDelay(std::move(engine), kAfterEngineFailure);
  }
  absl::StatusOr<JobQueue::Ticket> ticket = parts_.queue->Admit();
  if (!ticket.ok()) {
    parts_.metrics->CountRejection(absl::IsUnavailable(ticket.status()) ? "draining" : "queue_full");
    return ticket;
  }
  absl::StatusOr<ByteBudget::Reservation> reserved = parts_.uploads->Reserve(receiver.declared_bytes());
  if (!reserved.ok()) {
    parts_.metrics->CountRejection("memory");
    return reserved.status();
  }
  *memory = *std::move(reserved);
  nlohmann::ordered_json fields = LogFields();
  fields["peer"] = context_->peer();
  fields["queue_position"] = ticket->position();
  fields["upload_bytes"] = receiver.declared_bytes();
  parts_.log->Info("job_accepted", fields);
  return ticket;
}

absl::StatusOr<JobInputs> ExtractCall::Receive(InputReceiver* receiver) {
  const double since = SecondsSinceStart();
  v1::ExtractRequest message;
  while (!receiver->complete() && Read(&message)) {
    parts_.metrics->CountReceived(static_cast<int64_t>(message.chunk().payload().size()));
    SPEXD_RETURN_IF_ERROR(receiver->Add(message));
  }
  if (!receiver->complete() && ClientIsGone()) return Gone();
  receive_seconds_ = SecondsSinceStart() - since;
  parts_.metrics->ObserveStage("receive", receive_seconds_);
  return receiver->Finish();
}

absl::Status ExtractCall::RunJob(JobSpec spec, JobInputs inputs, JobQueue::Ticket* ticket) {
  JobMailbox mailbox;
  std::stop_source stop;
  const ForwardStop gone(stream_->stop(), stop);
  ExtractJob job(parts_, LogFields(), std::move(spec), std::move(inputs), &mailbox, stop.get_token());
  absl::Status status;
  std::thread worker([&] {
    status = CatchExceptions([&job] { return job.Run(); });
    ticket->EndTurn();
    mailbox.Close();
  });
  bool there = false;
  const absl::Status forwarded = CatchExceptions([&] {
    there = Forward(&mailbox);
    return absl::OkStatus();
  });
  if (!there) stop.request_stop();
  worker.join();
  stage_ = status.ok() ? "sending" : job.state();
  SPEXD_RETURN_IF_ERROR(forwarded);
  if (!there || absl::IsCancelled(status)) return Gone();
  if (absl::IsResourceExhausted(status) && RetryDelayOf(status).has_value())
    parts_.metrics->CountRejection("memory");
  if (!status.ok()) {
    const absl::Status engine = parts_.health->Check();  // the job may be first to show a failure
    if (!absl::IsUnavailable(status)) return status;
    return WithRetryDelay(status, engine.ok() ? kAfterDeviceFailure : kAfterEngineFailure);
  }

  JobReport report = job.report();
  report.job_id = job_id_;
  report.queue_seconds = queue_seconds_;
  estimated_seconds_ = report.estimated_seconds;
  engine_seconds_ = report.engine_seconds;
  report.stages.insert(report.stages.begin(), {"receive", receive_seconds_});
  parts_.metrics->ObserveStage("send", send_seconds_);
  if (!WriteSummary(report, [this](const v1::ExtractEvent& event) { return Send(event); })) return Gone();
  return absl::OkStatus();
}

bool ExtractCall::Forward(JobMailbox* mailbox) {
  for (;;) {
    JobEvent event;
    const JobMailbox::Got got = mailbox->Next(stream_->stop(), &event);
    if (got == JobMailbox::Got::kEnd) return true;
    if (got == JobMailbox::Got::kStopped || !SendEvent(event)) return false;
  }
}

bool ExtractCall::SendEvent(const JobEvent& event) {
  const EventWriter write = [this](const v1::ExtractEvent& message) { return Send(message); };
  if (const auto* state = std::get_if<StateEvent>(&event)) {
    return SendState(state->state, state->bundles_done, state->bundles_total);
  }
  if (const auto* plan = std::get_if<PlanEvent>(&event)) {
    return WriteFrameInfo(*plan->plan, plan->rows, plan->columns, write);
  }
  const auto& bundle = std::get<BundleEvent>(event);
  if (!std::exchange(first_bundle_sent_, true)) parts_.metrics->ObserveFirstBundle(SecondsSinceStart());
  return WriteBundle(*bundle.bundle, bundle.bins, write);
}

bool ExtractCall::SendState(const std::string& state, int done, int total) {
  v1::ExtractEvent event;
  event.mutable_progress()->set_state(state);
  event.mutable_progress()->set_bundles_done(done);
  event.mutable_progress()->set_bundles_total(total);
  return Send(event);
}

bool ExtractCall::Send(const v1::ExtractEvent& event) {
  const double since = SecondsSinceStart();
  const bool sent = watch_.Waiting([&] { return stream_->Write(event); });
  send_seconds_ += SecondsSinceStart() - since;
  if (sent) parts_.metrics->CountSent(static_cast<int64_t>(event.ByteSizeLong()));
  return sent;
}

bool ExtractCall::Read(v1::ExtractRequest* message) {
  return watch_.Waiting([&] { return stream_->Read(message); });
}

bool ExtractCall::ClientIsGone() { return stream_->stop().stop_requested() || !SendState("receiving", 0, 0); }

absl::Status ExtractCall::Gone() {
  // The client uses its own clock, and told this side the remaining time rounded up to three digits.
  const std::chrono::duration<double> early(0.05 + 0.01 * SecondsSinceStart());
  if (context_->deadline() - std::chrono::system_clock::now() <= early) {
    return absl::DeadlineExceededError(absl::StrFormat("the job's deadline passed (%s)", stage_));
  }
  if (watch_.stalled()) {
    return absl::CancelledError(absl::StrFormat("the client neither sent nor received for %g seconds",
                                                parts_.options->stall_seconds));
  }
  return absl::CancelledError(absl::StrFormat("the client cancelled the job or went away (%s)", stage_));
}

}  // namespace spexd
