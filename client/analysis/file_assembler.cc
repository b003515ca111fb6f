#include "client/analysis/file_assembler.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/job_call.h"
#include "core/base/digest/crc32c.h"
#include "core/base/status_macros.h"

namespace spexd::client {
namespace {

// The most memory that is reserved for a size that a server announces. More is allocated when bytes arrive.
constexpr uint64_t kMaxReservedBytes = uint64_t{64} << 20;

// Returns the file's name in messages.
std::string FileName(int file) {
  const std::string name = NameOf(static_cast<JointProduct>(file));
  return name.empty() ? absl::StrCat("file ", file) : name;
}

}  // namespace

FileAssembler::FileAssembler(const v1::AnalysisHeader& asked, JobObserver* observer) : observer_(observer) {
  if (asked.has_templates()) missing_.insert(v1::ANALYSIS_FILE_VELOCITIES);
  if (asked.models()) missing_.insert(v1::ANALYSIS_FILE_MODELS);
  if (asked.lines()) missing_.insert(v1::ANALYSIS_FILE_REDSHIFTS);
}

absl::Status FileAssembler::Add(const v1::ExtractEvent& event) {
  if (summary_complete_) return Damaged("an event after the summary");
  switch (event.event_case()) {
    case v1::ExtractEvent::kAccepted:
      accepted_ = true;
      outcome_.job_id = event.accepted().job_id();
      if (observer_ != nullptr) {
        observer_->OnAccepted(outcome_.job_id, static_cast<int>(event.accepted().queue_position()));
      }
      return absl::OkStatus();
    case v1::ExtractEvent::kProgress:
      if (observer_ != nullptr) observer_->OnState(event.progress().state());
      return absl::OkStatus();
    case v1::ExtractEvent::kFile:
      return AddFile(event.file());
    case v1::ExtractEvent::kSummary:
      return AddSummary(event.summary());
    case v1::ExtractEvent::kFrameInfo:
    case v1::ExtractEvent::kBundle:
    case v1::ExtractEvent::kModel:
    case v1::ExtractEvent::kProduct:
      return Damaged("an event of an extraction");
    case v1::ExtractEvent::EVENT_NOT_SET:
      break;  // an event of a newer server, which this client does not need
  }
  return absl::OkStatus();
}

absl::Status FileAssembler::AddFile(const v1::FilePart& part) {
  const int file = part.file();
  if (!accepted_) return Damaged(FileName(file) + " before the job was accepted");
  if (open_.has_value() && *open_ != file)
    return Damaged(FileName(file) + " before the end of " + FileName(*open_));
  if (missing_.count(file) == 0) return Damaged(FileName(file) + " that were not asked for, or came twice");
  if (part.code() != 0) return Fail(part);
  if (!open_.has_value()) {
    SPEXD_RETURN_IF_ERROR(Begin(part));
  } else if (part.bytes() != file_bytes_ || part.targets() != static_cast<uint64_t>(file_.targets) ||
             part.good() != static_cast<uint64_t>(file_.good)) {
    return Damaged(FileName(file) + ": parts of different files");
  }
  return Append(part);
}

absl::Status FileAssembler::Begin(const v1::FilePart& part) {
  if (part.bytes() < 1 || part.bytes() > kMaxAnalysisFileBytes) {
    return Damaged(absl::StrFormat("%s: a file of %d bytes, must be 1 to %d", FileName(part.file()),
                                   part.bytes(), kMaxAnalysisFileBytes));
  }
  if (part.good() > part.targets()) {
    return Damaged(
        absl::StrFormat("%s: %d of %d targets are good", FileName(part.file()), part.good(), part.targets()));
  }
  open_ = part.file();
  file_bytes_ = part.bytes();
  file_ = {.bytes = {}, .targets = part.targets(), .good = part.good()};
  file_.bytes.reserve(std::min(file_bytes_, kMaxReservedBytes));
  return absl::OkStatus();
}

absl::Status FileAssembler::Append(const v1::FilePart& part) {
  const std::string name = FileName(part.file());
  const uint64_t have = file_.bytes.size(), more = part.payload().size();
  if (part.offset() != have)
    return Damaged(absl::StrFormat("%s: bytes from %d on, expected from %d on", name, part.offset(), have));
  if (more < 1 || more > file_bytes_ - have)
    return Damaged(absl::StrFormat("%s: %d bytes after %d of %d", name, more, have, file_bytes_));
  if (const uint32_t crc = Crc32c(part.payload()); crc != part.crc32c())
    return Damaged(absl::StrFormat("%s: checksum %08x, expected %08x", name, crc, part.crc32c()));
  if (have + more > file_.bytes.capacity())
    file_.bytes.reserve(std::min(file_bytes_, std::max(have + more, 2 * have)));
  file_.bytes += part.payload();
  if (part.last() != (have + more == file_bytes_)) {
    return Damaged(absl::StrFormat("%s: %s after %d of %d bytes", name, part.last() ? "ended" : "no end",
                                   have + more, file_bytes_));
  }
  if (part.last()) End(std::move(file_));
  return absl::OkStatus();
}

absl::Status FileAssembler::Fail(const v1::FilePart& part) {
  if (open_.has_value() || part.code() < 0 ||
      part.code() > static_cast<int>(absl::StatusCode::kUnauthenticated)) {
    return Damaged(absl::StrFormat("%s: status %d", FileName(part.file()), part.code()));
  }
  open_ = part.file();
  End(absl::Status(static_cast<absl::StatusCode>(part.code()), part.error()));
  return absl::OkStatus();
}

void FileAssembler::End(absl::StatusOr<JointFile> file) {
  outcome_.FileOf(static_cast<JointProduct>(*open_)) = std::move(file);
  missing_.erase(*open_);
  open_.reset();
}

absl::Status FileAssembler::AddSummary(const v1::JobSummary& summary) {
  if (!summary.last()) return absl::OkStatus();
  summary_complete_ = true;
  for (const v1::StageSeconds& stage : summary.stages())
    outcome_.stages.push_back({stage.stage(), stage.seconds(), stage.by()});
  outcome_.queue_seconds = summary.queue_seconds();
  outcome_.run_seconds = summary.run_seconds();
  return absl::OkStatus();
}

absl::StatusOr<AnalysisOutcome> FileAssembler::Finish() {
  if (open_.has_value()) {
    return Damaged(absl::StrFormat("it ended after %d of %d bytes of %s", file_.bytes.size(), file_bytes_,
                                   FileName(*open_)));
  }
  if (!missing_.empty()) return Damaged("it ended without " + FileName(*missing_.begin()));
  if (!summary_complete_) return Damaged("it ended before the summary");
  return std::move(outcome_);
}

}  // namespace spexd::client
