#include "client/extract_client.h"

#include <stop_token>
#include <utility>

#include "client/job_call.h"
#include "client/job_request.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "proto/assembler/event_assembler.h"
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

// Checks that the frame has the trace shifts, and each product or its error, that were asked for. DataLoss:
// it lacks one.
absl::Status CheckAnswer(const v1::JobHeader& asked, const JobOutcome& outcome) {
  if (asked.trace_shifts() != v1::TRACE_AXES_OFF && !outcome.frame.origin.traces.has_value()) {
    return Damaged("it has nothing of the trace shifts that were asked for");
  }
  const FrameProducts none;
  const FrameProducts& products = outcome.products.has_value() ? outcome.products->products : none;
  for (const ProductInfo& info : kProducts) {
    if (!Asks(asked.products(), info) || !absl::IsCancelled(info.StatusIn(products))) continue;
    return Damaged("it ended without a product that was asked for");
  }
  return absl::OkStatus();
}

// Makes one attempt. Sets `outcome` if it ended well.
Attempt ExtractOnce(const Job& job, const v1::JobHeader& header, ExtractStream* stream, JobObserver* observer,
                    JobOutcome* outcome) {
  EventAssembler assembler(observer);
  const auto finish = [&]() -> absl::Status {
    SPEXD_ASSIGN_OR_RETURN(*outcome, assembler.Finish());
    return CheckAnswer(header, *outcome);
  };
  Attempt attempt = ReadCall(Send(job, header, stream), stream, &assembler, finish);
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
  SPEXD_RETURN_IF_ERROR(TryCalls(
      find_, {.retry = options_.retry, .deadline = job.deadline, .balancer = &balancer_}, observer, stop,
      [&](Connection* server) { return server->Extract(job.deadline); },
      [&](Connection*, ExtractStream* stream) {
        return ExtractOnce(job, header, stream, observer, &outcome);
      }));
  // The frame names the inputs as the caller gave them, so that its file does not depend on where the job
  // ran.
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
