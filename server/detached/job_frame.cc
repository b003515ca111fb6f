#include "server/detached/job_frame.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/products/product_files.h"
#include "proto/assembler/event_assembler.h"
#include "server/detached/store/event_log_format.h"

namespace spexd {

absl::StatusOr<JobFrame> JobFrame::Open(JobStore* store, const Identity& caller, const std::string& id) {
  SPEXD_ASSIGN_OR_RETURN(const StoredJob job, store->Get(caller, id));
  if (!job.has_ended()) {
    return absl::FailedPreconditionError(absl::StrCat("job ", id, " has not ended; analyse it once it has"));
  }
  if (job.state != v1::DETACHED_STATE_DONE) {
    return absl::FailedPreconditionError(absl::StrCat("job ", id, " failed: ", job.message));
  }
  if (job.acknowledged > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("the results of job ", id, " are released (acknowledged)"));
  }
  JobFrame frame(store, id, job.last_sequence);
  SPEXD_RETURN_IF_ERROR(frame.ReadInfo());
  return frame;
}

std::string JobFrame::Damaged() const { return absl::StrCat("the results of job ", id_, " are damaged"); }

absl::StatusOr<v1::ExtractEvent> JobFrame::ReadEvent(EventLogReader* reader) const {
  absl::StatusOr<v1::ExtractEvent> event = reader->Read();
  if (event.ok()) return event;
  const absl::Status failed = store_->ReadingFailed(id_, event.status());
  if (!absl::IsNotFound(failed)) return failed;
  return absl::FailedPreconditionError(
      absl::StrCat("the results of job ", id_, " were removed meanwhile (acknowledged, or expired)"));
}

absl::Status JobFrame::ReadInfo() {
  EventLogReader reader = Reader();
  for (bool last = false; !last;) {
    if (reader.next() > last_sequence_) {
      return absl::DataLossError(absl::StrCat(Damaged(), ": they end before the first bundle"));
    }
    SPEXD_ASSIGN_OR_RETURN(const v1::ExtractEvent event, ReadEvent(&reader));
    const v1::FrameInfo& info = event.frame_info();
    if (!event.has_frame_info()) {
      return absl::DataLossError(absl::StrCat(Damaged(), ": they do not begin with a FrameInfo"));
    }
    if (fibres_ == 0) {
      if (const absl::Status size = CheckFrameSize(info); !size.ok()) {
        return absl::DataLossError(absl::StrCat(Damaged(), ": ", size.message()));
      }
      image_ = info.input_image();
      fibres_ = static_cast<int>(info.fibre_count());
      bins_ = static_cast<int>(info.grid().count());
    }
    info_bytes_ += static_cast<int64_t>(event.ByteSizeLong());
    last = info.last();
  }
  return absl::OkStatus();
}

int64_t JobFrame::bytes() const {
  // The bytes of a bin are its spectrum, the sky, and the list of BAD2DFIT bins while it grows. Subtracting
  // the sky later takes less than that list.
  constexpr int64_t kBinBytes = 4 * (4 + kResolutionDiagonals) + (5 * 8 + 4) + 3 * 8;
  constexpr int64_t kPerInfoByte = 4;                            // a string per card, and a growing table
  constexpr int64_t kEventBytes = 4 * int64_t{kMaxRecordBytes};  // a record's bytes, and its message
  return kBinBytes * fibres_ * bins_ + kPerInfoByte * info_bytes_ + kEventBytes;
}

absl::StatusOr<Frame> JobFrame::Read(const std::stop_token& stop) const {
  EventLogReader reader = Reader();
  EventAssembler assembler(nullptr, Damaged());
  while (reader.next() <= last_sequence_) {
    if (stop.stop_requested()) return absl::CancelledError("the job was stopped");
    SPEXD_ASSIGN_OR_RETURN(v1::ExtractEvent event, ReadEvent(&reader));
    // The model and the other products are not needed and would take memory.
    if (event.has_model() || (event.has_product() && event.product().product() != v1::PRODUCT_SKY)) continue;
    if (event.has_frame_info()) event.mutable_frame_info()->clear_model_rows();
    SPEXD_RETURN_IF_ERROR(assembler.Add(event));
  }
  SPEXD_ASSIGN_OR_RETURN(JobOutcome outcome, assembler.Finish());
  if (!outcome.products.has_value() || !outcome.products->products.sky.ok()) return std::move(outcome.frame);
  return SkySubtracted(std::move(outcome.frame), *outcome.products->products.sky);
}

}  // namespace spexd
