#include "server/rpc/submit_call.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/digest/sha256.h"
#include "core/base/status_macros.h"
#include "server/base/retry.h"
#include "server/base/trace.h"
#include "server/detached/submit_header.h"
#include "server/inputs/job_claims.h"

namespace spexd {

SubmitCall::Reactor* SubmitCall::Begin(const ServerParts& parts, CallStart start, DetachedJobs* jobs,
                                       v1::SubmitReply* reply) {
  const std::shared_ptr<SubmitCall> call(new SubmitCall(parts, std::move(start), jobs, reply));
  return call->ReceivingCall::Begin();
}

SubmitCall::SubmitCall(const ServerParts& parts, CallStart start, DetachedJobs* jobs, v1::SubmitReply* reply)
    : ReceivingCall(parts, kSubmitRpc, std::move(start), parts.options->max_job_seconds),
      jobs_(jobs),
      reply_(reply) {}

absl::Status SubmitCall::HeaderCame() {
  const v1::SubmitHeader header = request_.message().header();
  request_.Clear();
  SPEXD_RETURN_IF_ERROR(CheckSubmitHeader(header, parts_.options->jobs_max_keep_seconds));
  SPEXD_ASSIGN_OR_RETURN(receiver_, InputReceiver::Make(header.job(), parts_.options->max_upload_bytes));
  StoredJob& job = submission_.job;
  job = JobOf(header, static_cast<int64_t>(parts_.options->jobs_keep_seconds));
  job.owner = caller_.name;
  job.trace_id = TraceOf(*context_).trace_id;
  asked_keep_seconds_ = header.keep_seconds();
  submission_.deadline_seconds = header.deadline_seconds();
  claim_ = ClaimOf(header.job(), caller_, context_->peer());
  const v1::ProductRequest& products = header.job().products();
  for (const auto& [hash, kind] :
       {std::pair(header.job().psf().psf_hash(), WarmKind::kPsf),
        std::pair(products.fiberflat().content_hash(), WarmKind::kFiberflat),
        std::pair(products.templates().content_hash(), WarmKind::kTemplates),
        std::pair(header.job().trace_reference().content_hash(), WarmKind::kTraceReference)}) {
    if (!hash.empty()) hashes_.emplace_back(hash, kind);
  }
  return Start([this] { return Admit(); }, [this] { return Admitted(); });
}

absl::Status SubmitCall::Admit() {
  if (jobs_->draining()) return RefuseWhileDraining();
  const StoredJob& job = submission_.job;
  std::optional<StoredJob> known = jobs_->store().FindRequest(job.owner, job.request_id);
  if (known.has_value()) {
    const absl::StatusOr<StoredJob> whole = jobs_->store().WithHeader(known->id);
    if (absl::IsNotFound(whole.status())) {
      known.reset();  // the known job has just expired, so this is a new one
    } else if (!whole.ok()) {
      return whole.status();
    } else if (whole->header != job.header) {
      return absl::AlreadyExistsError(absl::StrFormat(
          "request_id \"%s\" names job %s, which has another header", job.request_id, known->id));
    }
  }
  const int64_t bytes = receiver_->declared_bytes();
  if (!known.has_value()) {
    for (const std::string& path : receiver_->paths()) SPEXD_RETURN_IF_ERROR(parts_.paths->Check(path));
    for (const auto& [hash, kind] : hashes_) SPEXD_RETURN_IF_ERROR(parts_.cache->Get(hash, kind).status());
    SPEXD_RETURN_IF_ERROR(CheckDeadline());
    SPEXD_ASSIGN_OR_RETURN(
        disk_, DiskHold::Take(&jobs_->store().space(), job.owner, JobStore::BytesOf(job.header, bytes)));
  }
  SPEXD_ASSIGN_OR_RETURN(memory_, parts_.uploads->Reserve(bytes, Uploader()));
  return absl::OkStatus();
}

absl::Status SubmitCall::CheckDeadline() {
  if (submission_.deadline_seconds == 0) return absl::OkStatus();
  claim_.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(submission_.deadline_seconds);
  return parts_.queue->CheckDeadline(claim_);
}

absl::Status SubmitCall::Admitted() {
  if (receiver_->complete()) return Start([this] { return Keep(); }, [this] { return Answer(); });
  return ReadOn();
}

// The end of an input is checked in a task, because a SHA-256 takes seconds.
absl::Status SubmitCall::MessageCame() {
  const v1::SubmitRequest& message = request_.message();
  if (message.has_end()) return Start([this] { return AddEnd(); }, [this] { return Admitted(); });
  SPEXD_RETURN_IF_ERROR(receiver_->Add(message));
  return ReadOn(static_cast<int64_t>(message.chunk().payload().size()));
}

absl::Status SubmitCall::Keep() {
  SPEXD_ASSIGN_OR_RETURN(JobInputs inputs, receiver_->Finish());
  FinishSubmission(std::move(inputs));
  SPEXD_ASSIGN_OR_RETURN(submitted_, jobs_->store().FindSame(submission_.job));
  if (!submitted_.has_value()) {
    // The job that was known when this call began may have been removed meanwhile. Then this is a new one.
    if (!disk_.has_value()) {
      const StoredJob& job = submission_.job;
      SPEXD_ASSIGN_OR_RETURN(disk_,
                             DiskHold::Take(&jobs_->store().space(), job.owner,
                                            JobStore::BytesOf(job.header, receiver_->declared_bytes())));
    }
    SPEXD_ASSIGN_OR_RETURN(submitted_, jobs_->Submit(std::move(submission_), &*disk_));
  }
  JsonFields fields = JobFields(submitted_->job.id, TraceOf(*context_));
  fields["identity"] = caller_.name;
  fields["peer"] = context_->peer();
  fields["input_bytes"] = submitted_->job.header_bytes + submitted_->job.input_bytes();
  fields["existed"] = submitted_->existed;
  parts_.log->Info("job_submitted", fields);
  return absl::OkStatus();
}

// Fills in the submission. The digest covers everything that the client chose, each piece with its length.
void SubmitCall::FinishSubmission(JobInputs inputs) {
  StoredJob& job = submission_.job;
  const auto take = [&](v1::Input input, std::string* bytes) {
    job.inputs.push_back({InputName(input), static_cast<int64_t>(bytes->size()), Sha256Hex(*bytes)});
    submission_.inputs.emplace_back(InputName(input), std::move(*bytes));
  };
  if (inputs.raw_image.has_value()) take(v1::INPUT_IMAGE, &inputs.raw_image->bytes);
  const auto take_file = [&take](v1::Input input, std::optional<FileInput>* file) {
    if (file->has_value() && (*file)->bytes.has_value()) take(input, &*(*file)->bytes);
  };
  take_file(v1::INPUT_IMAGE, &inputs.image);
  take_file(v1::INPUT_PSF, &inputs.psf);
  take_file(v1::INPUT_FIBERMAP, &inputs.fibermap);
  take_file(v1::INPUT_FIBERFLAT, &inputs.products.fiberflat);
  take_file(v1::INPUT_TEMPLATES, &inputs.products.templates);
  take_file(v1::INPUT_TRACE_REFERENCE, &inputs.trace_reference);
  Sha256 digest;
  digest.Update(
      absl::StrCat(job.header.size(), " ", asked_keep_seconds_, " ", submission_.deadline_seconds, "\n"));
  digest.Update(job.header);
  for (const StoredInput& input : job.inputs)
    digest.Update(absl::StrCat(input.name, " ", input.bytes, " ", input.sha256, "\n"));
  job.digest = digest.Hex();
}

absl::Status SubmitCall::Answer() {
  reply_->set_job_id(submitted_->job.id);
  reply_->set_existed(submitted_->existed);
  End(absl::OkStatus());
  return absl::OkStatus();
}

void SubmitCall::Release(const absl::Status& status) {
  receiver_.reset();
  submission_ = JobStore::Submission();
  disk_.reset();
  memory_.Release();
  parts_.metrics->CountSubmit(!status.ok() ? "refused" : submitted_->existed ? "existed" : "new");
}

}  // namespace spexd
