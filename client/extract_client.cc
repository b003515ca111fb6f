#include "client/extract_client.h"

#include <memory>
#include <stop_token>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/attempts.h"
#include "proto/assembler/event_assembler.h"
#include "client/events_ahead.h"
#include "client/job_request.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "proto/product_part.h"

namespace spexd::client {
namespace {

absl::Status Send(const Job& job, const v1::JobHeader& header, ExtractStream* stream) {
  v1::ExtractRequest request;
  *request.mutable_header() = header;
  if (!stream->Write(request)) return absl::OkStatus();
  SPEXD_ASSIGN_OR_RETURN(const bool open, SendInputs<v1::ExtractRequest>(job, header, stream));
  if (open) stream->WritesDone();
  return absl::OkStatus();
}

// DataLoss unless the frame tells of the trace shifts that were asked for, and each product that was asked
// for has come, or its error.
absl::Status CheckAnswer(const v1::JobHeader& asked, const JobOutcome& outcome) {
  if (asked.trace_shifts() != v1::TRACE_AXES_OFF && !outcome.frame.origin.traces.has_value()) {
    return absl::DataLossError(
        "the server's answer is damaged: it has nothing of the trace shifts that were asked for");
  }
  const FrameProducts none;
  const FrameProducts& products = outcome.products.has_value() ? outcome.products->products : none;
  for (const ProductInfo& info : kProducts) {
    if (!Asks(asked.products(), info) || !absl::IsCancelled(info.StatusIn(products))) continue;
    return absl::DataLossError(
        "the server's answer is damaged: it ended without a product that was asked for");
  }
  return absl::OkStatus();
}

// One attempt; its outcome is in `outcome` if it ended well.
Attempt RunOnce(const Job& job, const v1::JobHeader& header, ExtractStream* stream, JobObserver* observer,
                JobOutcome* outcome) {
  EventAssembler assembler(observer);
  absl::Status local = Send(job, header, stream);
  if (local.ok()) {
    EventsAhead events(stream);
    v1::ExtractEvent event;
    while (local.ok() && events.Next(&event)) local = assembler.Add(event);
  }
  if (!local.ok()) stream->Cancel();
  CallResult result = stream->Finish();
  if (!local.ok()) result = {local, result.retry_delay};
  // So gRPC answers a call that comes while its server shuts down. (A stop of this side is looked at later.)
  if (absl::IsCancelled(result.status) && !assembler.accepted()) {
    result.status = absl::UnavailableError(
        absl::StrCat("the call was cancelled before the job was taken: ", result.status.message()));
  }
  if (result.status.ok()) {
    absl::StatusOr<JobOutcome> whole = assembler.Finish();
    result.status = whole.ok() ? CheckAnswer(header, *whole) : whole.status();
    if (result.status.ok()) *outcome = *std::move(whole);
  }
  Attempt attempt = AttemptOf(result, assembler.accepted());
  if (assembler.bundles_arrived()) attempt.then = Attempt::Then::kEnd;
  return attempt;
}

}  // namespace

absl::StatusOr<JobOutcome> RemoteExtractor::Run(const Job& job, JobObserver* observer, std::stop_token stop) {
  return CatchExceptions([&] { return RunAttempts(job, observer, stop); });
}

absl::StatusOr<JobOutcome> RemoteExtractor::RunAttempts(const Job& job, JobObserver* observer,
                                                        const std::stop_token& stop) {
  SPEXD_ASSIGN_OR_RETURN(const v1::JobHeader header, MakeJobHeader(job, options_.upload));
  JobOutcome outcome;
  bool late = false;
  const absl::Status status =
      TryServers(find_, {.retry = options_.retry, .deadline = job.deadline, .balancer = &balancer_}, observer,
                 stop, [&](Connection* server) {
                   const std::unique_ptr<ExtractStream> stream = server->Extract(job.deadline);
                   const std::stop_callback cancel(stop, [&stream] { stream->Cancel(); });
                   Attempt attempt = RunOnce(job, header, stream.get(), observer, &outcome);
                   late = absl::IsDeadlineExceeded(attempt.status);
                   return attempt;
                 });
  if (!status.ok()) {
    if (!late) return status;
    return absl::DeadlineExceededError(
        absl::StrCat("the job was not done by its deadline (", status.message(), ")"));
  }
  // The file names the inputs as given on this side, so that it does not depend on where the job ran.
  FrameOrigin& origin = outcome.frame.origin;
  origin.input_image = job.image;
  if (!header.psf().has_psf_hash()) origin.input_psf = job.psf;
  if (origin.traces.has_value() && !origin.traces->reference.empty() &&
      !header.trace_reference().has_content_hash()) {
    origin.traces->reference = job.trace_reference;
  }
  return outcome;
}

}  // namespace spexd::client
