#include "server/jobs/job_additions.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "server/base/retry.h"

namespace spexd {

int64_t JobAdditions::Plan(int64_t fibres, int64_t bins, int64_t most) {
  if (!any()) return 0;
  planned_bytes_ = parts_.accumulators->MemoryToAdd(asked_.owner, asked_.accumulators, fibres, bins);
  if (planned_bytes_ <= most) return planned_bytes_;
  too_large_ = absl::ResourceExhaustedError(absl::StrFormat(
      "adding the frame needs %d bytes, %d are left of the server's limit (--max-product-bytes)",
      std::exchange(planned_bytes_, 0), most));
  return 0;
}

absl::StatusOr<bool> JobAdditions::AddTo(const std::string& accumulator, const FrameToAdd& frame,
                                         const std::stop_token& stop) {
  SPEXD_RETURN_IF_ERROR(too_large_);
  const Array<float, 2>& flux = frame.frame.spectra.flux;
  // One that was made since has no memory reserved for it.
  if (parts_.accumulators->MemoryToAdd(asked_.owner, {accumulator}, flux.shape(0), flux.shape(1)) >
      planned_bytes_) {
    return absl::FailedPreconditionError(
        absl::StrCat("accumulator \"", accumulator, "\" was created after the job had begun"));
  }
  return parts_.accumulators->Add(asked_.owner, accumulator, frame, stop);
}

void JobAdditions::Add(const Made& made, const std::stop_token& stop) {
  if (!any()) return;
  const FrameToAdd frame = {
      made.frame,           std::filesystem::path(made.frame.origin.input_image).filename(),
      DigestOf(made.frame), asked_.job_id,
      made.fiberflat,       made.sky,
      made.threads};
  for (const std::string& accumulator : asked_.accumulators) {
    if (stop.stop_requested()) return;
    const absl::StatusOr<bool> existed = CatchExceptions([&] { return AddTo(accumulator, frame, stop); });
    Note({accumulator, existed.status(), existed.ok() && *existed});
  }
}

void JobAdditions::FailRest(const absl::Status& error) {
  while (results_.size() < asked_.accumulators.size())
    Note({asked_.accumulators[results_.size()], error, false});
}

void JobAdditions::Note(Addition addition) {
  JsonFields fields = log_fields_;
  fields["accumulator"] = addition.accumulator;
  fields["code"] = CodeLabel(addition.status.code());
  if (addition.existed) fields["existed"] = true;
  if (!addition.status.ok()) fields["message"] = std::string(addition.status.message());
  parts_.log->Info("frame_added", fields);
  results_.push_back(std::move(addition));
}

}  // namespace spexd
