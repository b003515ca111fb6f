#include "client/extract_client.h"

#include <algorithm>
#include <memory>
#include <random>
#include <stop_token>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/event_assembler.h"
#include "client/input_file.h"
#include "core/base/deadline.h"
#include "core/base/status_macros.h"

namespace spexd::client {
namespace {

using std::chrono::milliseconds;

// Result of one attempt, and whether another may follow.
struct Attempt {
  absl::StatusOr<JobOutcome> outcome;
  std::optional<milliseconds> retry_delay;
  bool accepted = false;
  bool bundles_arrived = false;
};

absl::Status SetSource(const std::string& path, bool upload, v1::InputSource* source) {
  if (!upload) {
    source->set_path(AbsolutePath(path));
    return absl::OkStatus();
  }
  SPEXD_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  source->mutable_upload()->set_name(path);
  source->mutable_upload()->set_bytes(static_cast<uint64_t>(file.bytes()));
  return absl::OkStatus();
}

// Sends one file's bytes. Returns false if the call has ended (the stream tells why), and an error if the
// file is at fault.
absl::StatusOr<bool> SendFile(const std::string& path, v1::Input input, ExtractStream* stream) {
  SPEXD_ASSIGN_OR_RETURN(InputFile file, InputFile::Open(path));
  v1::ExtractRequest request;
  v1::InputChunk* const chunk = request.mutable_chunk();
  chunk->set_input(input);
  for (uint64_t offset = 0;; offset += chunk->payload().size()) {
    SPEXD_RETURN_IF_ERROR(file.Read(chunk->mutable_payload()));
    if (chunk->payload().empty()) break;
    chunk->set_offset(offset);
    if (!stream->Write(request)) return false;
  }
  request.mutable_end()->set_input(input);
  request.mutable_end()->set_crc32c(file.crc32c());
  return stream->Write(request);
}

absl::Status Send(const Job& job, const v1::JobHeader& header, ExtractStream* stream) {
  v1::ExtractRequest request;
  *request.mutable_header() = header;
  if (!stream->Write(request)) return absl::OkStatus();
  const struct {
    const v1::InputSource& source;
    const std::string& path;
    v1::Input input;
  } inputs[] = {{header.image(), job.image, v1::INPUT_IMAGE},
                {header.psf(), job.psf, v1::INPUT_PSF},
                {header.fibermap(), job.fibermap, v1::INPUT_FIBERMAP}};
  for (const auto& input : inputs) {
    if (!input.source.has_upload()) continue;
    SPEXD_ASSIGN_OR_RETURN(const bool open, SendFile(input.path, input.input, stream));
    if (!open) return absl::OkStatus();
  }
  stream->WritesDone();
  return absl::OkStatus();
}

Attempt RunOnce(const Job& job, const v1::JobHeader& header, Connection* connection, JobObserver* observer,
                const std::stop_token& stop) {
  const std::unique_ptr<ExtractStream> stream = connection->Extract(job.deadline);
  const std::stop_callback cancel(stop, [&stream] { stream->Cancel(); });
  EventAssembler assembler(observer);
  absl::Status local = Send(job, header, stream.get());
  v1::ExtractEvent event;
  while (local.ok() && stream->Read(&event)) local = assembler.Add(event);
  if (!local.ok()) stream->Cancel();
  CallResult result = stream->Finish();
  Attempt attempt;
  attempt.outcome = !local.ok() ? local : result.status.ok() ? assembler.Finish() : result.status;
  attempt.retry_delay = result.retry_delay;
  attempt.accepted = assembler.accepted();
  attempt.bundles_arrived = assembler.bundles_arrived();
  return attempt;
}

// Decides on further attempts: counts the attempts, and knows how long to wait.
class Retries {
 public:
  explicit Retries(const RetryPolicy& policy) : policy_(policy), patience_(policy.queue_patience) {}

  // The wait before the next attempt; nullopt if there is to be none.
  std::optional<milliseconds> Next(const Attempt& attempt) {
    if (attempt.bundles_arrived) return std::nullopt;
    const absl::Status& status = attempt.outcome.status();
    if (absl::IsResourceExhausted(status) && attempt.retry_delay.has_value()) {
      // Waits are spread out; otherwise all clients that were refused together would come back together.
      const auto delay = std::max<int64_t>(1, attempt.retry_delay->count());
      const milliseconds wait(delay + std::uniform_int_distribution<int64_t>(0, delay / 4)(random_));
      if (wait > patience_) return std::nullopt;
      patience_ -= wait;
      return wait;
    }
    // A job that was accepted is tried again only if the server asks for it: its device failed, others may
    // work.
    const bool may_return = !attempt.accepted || attempt.retry_delay.has_value();
    if (absl::IsUnavailable(status) && may_return && ++unavailable_ < policy_.unavailable_attempts) {
      const milliseconds wait = policy_.first_wait * (1 << std::min(unavailable_ - 1, 10));
      return std::max(wait, attempt.retry_delay.value_or(milliseconds(0)));
    }
    if (absl::IsDataLoss(status) && ++damaged_ < policy_.data_loss_attempts) return milliseconds(0);
    return std::nullopt;
  }

 private:
  const RetryPolicy policy_;
  milliseconds patience_;
  int unavailable_ = 0, damaged_ = 0;
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace

absl::StatusOr<v1::JobHeader> MakeJobHeader(const Job& job, bool upload) {
  const JobSpec& spec = job.spec;
  if (spec.first_fibre < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("first fibre ", spec.first_fibre, " must not be negative"));
  }
  if (spec.fibre_count.has_value() && *spec.fibre_count < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("number of fibres ", *spec.fibre_count, " must be at least 1"));
  }
  if (spec.bundle_size < 1) {
    return absl::InvalidArgumentError(absl::StrCat("bundle size ", spec.bundle_size, " must be at least 1"));
  }
  v1::JobHeader header;
  SPEXD_RETURN_IF_ERROR(SetSource(job.image, upload, header.mutable_image()));
  if (absl::StartsWith(job.psf, kPsfHashPrefix)) {
    header.mutable_psf()->set_psf_hash(job.psf.substr(sizeof(kPsfHashPrefix) - 1));
  } else {
    SPEXD_RETURN_IF_ERROR(SetSource(job.psf, upload, header.mutable_psf()));
  }
  if (!job.fibermap.empty())
    SPEXD_RETURN_IF_ERROR(SetSource(job.fibermap, upload, header.mutable_fibermap()));
  if (spec.grid.has_value()) {
    header.mutable_grid()->set_first(spec.grid->first);
    header.mutable_grid()->set_step(spec.grid->step);
    header.mutable_grid()->set_count(static_cast<uint32_t>(spec.grid->count));
  }
  header.set_first_fibre(static_cast<uint32_t>(spec.first_fibre));
  if (spec.fibre_count.has_value()) header.set_fibre_count(static_cast<uint32_t>(*spec.fibre_count));
  header.set_bundle_size(static_cast<uint32_t>(spec.bundle_size));
  if (spec.psferr.has_value()) header.set_psferr(*spec.psferr);
  header.set_regularize(spec.regularize);
  header.set_barycentric_correction(spec.barycentric_correction);
  header.set_no_scores(!spec.scores);
  header.set_want_model(spec.model);
  return header;
}

absl::StatusOr<JobOutcome> RemoteRunner::Run(const Job& job, JobObserver* observer, std::stop_token stop) {
  SPEXD_ASSIGN_OR_RETURN(const v1::JobHeader header, MakeJobHeader(job, options_.upload));
  Retries retries(options_.retry);
  for (int number = 1;; ++number) {
    Attempt attempt = RunOnce(job, header, connection_, observer, stop);
    if (stop.stop_requested()) return absl::CancelledError("cancelled");
    if (attempt.outcome.ok()) {
      // The file names the inputs as given on this side, so that it does not depend on where the job ran.
      FrameOrigin& origin = attempt.outcome->frame.origin;
      origin.input_image = job.image;
      if (!header.psf().has_psf_hash()) origin.input_psf = job.psf;
      return std::move(attempt.outcome);
    }
    const absl::Status& status = attempt.outcome.status();
    if (absl::IsDeadlineExceeded(status)) {
      return absl::DeadlineExceededError(
          absl::StrCat("the job was not done by its deadline (", status.message(), ")"));
    }
    const std::optional<milliseconds> wait = retries.Next(attempt);
    if (!wait.has_value()) return status;
    if (job.deadline.has_value() && Clock::now() + *wait >= *job.deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("no time for another attempt before the deadline; the last one: ", status.message()));
    }
    if (observer != nullptr) observer->OnRetry(number, status, *wait);
    if (SleepUnlessStopped(*wait, stop)) return absl::CancelledError("cancelled");
  }
}

}  // namespace spexd::client
