#include "server/detached/store/event_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "core/base/digest/sha256.h"
#include "core/base/status_macros.h"
#include "server/base/files.h"

namespace spexd {
namespace {

// Adds a group to the content of an event log.
void AddGroup(const std::vector<v1::ExtractEvent>& group, EventLogContent* content) {
  const v1::ExtractEvent& last = group.back();
  if (last.has_frame_info()) content->frame_info = FrameInfoDigest(group);
  if (last.has_bundle()) content->bundles.insert(last.bundle().bundle());
  if (last.has_product()) content->products.insert(last.product().product());
  if (last.has_summary()) content->has_summary = true;
}

// Appends an event to a group. Only events that AddGroup needs are kept, because bundles are large.
void Keep(v1::ExtractEvent event, std::vector<v1::ExtractEvent>* group) {
  if (!event.has_frame_info()) group->clear();
  group->push_back(std::move(event));
}

}  // namespace

bool EndsGroup(const v1::ExtractEvent& event) {
  return (event.has_frame_info() && event.frame_info().last()) ||
         (event.has_bundle() && event.bundle().last()) || (event.has_product() && event.product().last()) ||
         (event.has_summary() && event.summary().last());
}

std::string FrameInfoDigest(const std::vector<v1::ExtractEvent>& group) {
  Sha256 digest;
  for (v1::ExtractEvent event : group) {
    event.mutable_frame_info()->clear_version();
    digest.Update(event.SerializeAsString());
  }
  return digest.Hex();
}

absl::StatusOr<EventLogWriter> EventLogWriter::Open(std::string path, std::string job_id, uint64_t shown) {
  FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return DiskError(path, "cannot be opened");
  EventLogWriter writer(std::move(path), std::move(file));
  const absl::Status scanned = writer.Scan(job_id);
  if (!scanned.ok() && !absl::IsDataLoss(scanned)) return InFile(writer.path_, scanned);
  if (writer.content_.last_sequence < shown) {
    return absl::DataLossError(absl::StrCat(writer.path_, ": ", scanned.ok() ? "it ends" : scanned.message(),
                                            ", after event ", writer.content_.last_sequence, " of the ",
                                            shown, " that were shown"));
  }
  if (writer.content_.bytes == 0) {
    SPEXD_RETURN_IF_ERROR(WriteAt(writer.file_, writer.path_, EventLogHeader(job_id), 0));
    writer.content_.bytes = kEventLogHeaderBytes;
  }
  SPEXD_RETURN_IF_ERROR(writer.Cut());
  writer.appended_ = writer.content_;
  return writer;
}

absl::Status EventLogWriter::Scan(const std::string& job_id) {
  SPEXD_ASSIGN_OR_RETURN(const std::string header, ReadAt(file_, path_, kEventLogHeaderBytes, 0));
  if (header.empty()) return absl::OkStatus();
  SPEXD_RETURN_IF_ERROR(CheckEventLogHeader(header, job_id));
  content_.bytes = kEventLogHeaderBytes;
  int64_t offset = content_.bytes;
  std::vector<v1::ExtractEvent> group;
  for (uint64_t sequence = 1;; ++sequence) {
    SPEXD_ASSIGN_OR_RETURN(const std::string bytes, ReadAt(file_, path_, kRecordHeadBytes, offset));
    if (bytes.empty()) return absl::OkStatus();
    SPEXD_ASSIGN_OR_RETURN(const RecordHead head, ParseRecordHead(bytes, sequence));
    SPEXD_ASSIGN_OR_RETURN(const std::string payload,
                           ReadAt(file_, path_, head.length, offset + kRecordHeadBytes));
    SPEXD_ASSIGN_OR_RETURN(v1::ExtractEvent event, ParsePayload(head, payload));
    offset += static_cast<int64_t>(kRecordHeadBytes + head.length);
    const bool ends = EndsGroup(event);
    Keep(std::move(event), &group);
    if (!ends) continue;
    AddGroup(group, &content_);
    group.clear();
    content_.last_sequence = sequence;
    content_.bytes = offset;
  }
}

absl::Status EventLogWriter::Cut() {
  if (ftruncate(file_.get(), content_.bytes) != 0) return DiskError(path_, "cannot be cut");
  if (fsync(file_.get()) != 0) return DiskError(path_, "cannot be written");
  return SyncFolder(path_.substr(0, path_.rfind('/')));
}

absl::Status EventLogWriter::Append(const std::vector<v1::ExtractEvent>& group) {
  for (const v1::ExtractEvent& event : group) {
    std::string record;
    AppendRecord(appended_.last_sequence + 1, event.SerializeAsString(), &record);
    if (const absl::Status written = WriteAt(file_, path_, record, appended_.bytes); !written.ok()) {
      DropUncommitted();  // frees the space on a full disk
      return written;
    }
    appended_.bytes += static_cast<int64_t>(record.size());
    ++appended_.last_sequence;
  }
  AddGroup(group, &appended_);
  return absl::OkStatus();
}

void EventLogWriter::DropUncommitted() {
  std::ignore = ftruncate(file_.get(), content_.bytes);  // if this fails, the next run cuts the file
}

absl::Status EventLogWriter::Commit() {
  if (fdatasync(file_.get()) != 0) return DiskError(path_, "cannot be written");
  content_ = appended_;
  return absl::OkStatus();
}

absl::StatusOr<FileDescriptor> EventLogReader::Open() const {
  FileDescriptor file(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (file.get() >= 0) return file;
  if (errno == ENOENT) return absl::DataLossError(absl::StrCat(path_, ": is missing"));
  return DiskError(path_, "cannot be opened");
}

absl::StatusOr<RecordHead> EventLogReader::FindNext(const FileDescriptor& file) {
  if (!checked_) {
    SPEXD_ASSIGN_OR_RETURN(const std::string header, ReadAt(file, path_, kEventLogHeaderBytes, 0));
    if (const absl::Status good = CheckEventLogHeader(header, job_id_); !good.ok())
      return InFile(path_, good);
    checked_ = true;
  }
  for (;;) {
    SPEXD_ASSIGN_OR_RETURN(const std::string bytes, ReadAt(file, path_, kRecordHeadBytes, offset_));
    const absl::StatusOr<RecordHead> head = ParseRecordHead(bytes, sequence_ + 1);
    if (!head.ok()) return InFile(path_, head.status());
    if (head->sequence > skip_until_) return head;
    offset_ += static_cast<int64_t>(kRecordHeadBytes + head->length);
    ++sequence_;
  }
}

absl::StatusOr<int64_t> EventLogReader::NextBytes() {
  SPEXD_ASSIGN_OR_RETURN(const FileDescriptor file, Open());
  SPEXD_ASSIGN_OR_RETURN(const RecordHead head, FindNext(file));
  return int64_t{head.length};
}

absl::StatusOr<v1::ExtractEvent> EventLogReader::Read() {
  SPEXD_ASSIGN_OR_RETURN(const FileDescriptor file, Open());
  SPEXD_ASSIGN_OR_RETURN(const RecordHead head, FindNext(file));
  SPEXD_ASSIGN_OR_RETURN(const std::string payload,
                         ReadAt(file, path_, head.length, offset_ + kRecordHeadBytes));
  absl::StatusOr<v1::ExtractEvent> event = ParsePayload(head, payload);
  if (!event.ok()) return InFile(path_, event.status());
  offset_ += static_cast<int64_t>(kRecordHeadBytes + head.length);
  ++sequence_;
  return event;
}

}  // namespace spexd
