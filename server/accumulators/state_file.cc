#include "server/accumulators/state_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/digest/crc32c.h"
#include "server/base/files.h"

namespace spexd {
namespace {

constexpr size_t kWriteBytes = size_t{1} << 20;  // written at once
constexpr size_t kReadBytes = size_t{8} << 20;   // read at once

}  // namespace

void StateWriter::Bytes(absl::string_view bytes) {
  if (!status_.ok()) return;
  crc_ = ExtendCrc32c(crc_, bytes);
  waiting_.append(bytes.data(), bytes.size());
  if (waiting_.size() >= kWriteBytes) Flush();
}

void StateWriter::Flush() {
  if (!status_.ok()) return;
  status_ = WriteAt(file_, path_, waiting_, written_);
  written_ += static_cast<int64_t>(waiting_.size());
  waiting_.clear();
}

void StateWriter::Text(absl::string_view text) {
  Value<int64_t>(static_cast<int64_t>(text.size()));
  Bytes(text);
}

absl::StatusOr<int64_t> StateWriter::Finish() {
  const uint32_t crc = crc_;
  Value(crc);
  Flush();
  if (status_.ok() && fsync(file_.get()) != 0) status_ = DiskError(path_, "cannot be written");
  if (!status_.ok()) return status_;
  return written_;
}

StateReader::StateReader(const FileDescriptor* file, std::string path)
    : file_(*file), path_(std::move(path)) {
  struct stat about;
  if (fstat(file_.get(), &about) != 0) {
    Fail(DiskError(path_, "cannot be read"));
    return;
  }
  end_ = static_cast<int64_t>(about.st_size) - static_cast<int64_t>(sizeof(crc_));
  if (end_ < 0) Fail(absl::DataLossError(absl::StrCat(path_, ": is cut short")));
}

void StateReader::Fail(absl::Status status) { status_.Update(std::move(status)); }

void StateReader::Bytes(char* to, size_t size) {
  if (!status_.ok()) return;
  if (static_cast<uint64_t>(end_ - at_) < size)
    return Fail(absl::DataLossError(absl::StrCat(path_, ": is damaged: ends before its values")));
  while (size > 0) {
    const absl::StatusOr<std::string> piece = ReadAt(file_, path_, std::min(size, kReadBytes), at_);
    if (!piece.ok()) return Fail(piece.status());
    if (piece->empty()) return Fail(absl::DataLossError(absl::StrCat(path_, ": is cut short")));
    crc_ = ExtendCrc32c(crc_, *piece);
    std::memcpy(to, piece->data(), piece->size());
    to += piece->size();
    size -= piece->size();
    at_ += static_cast<int64_t>(piece->size());
  }
}

int64_t StateReader::Count(int64_t bytes_each) {
  const auto count = Value<int64_t>();
  if (ok() && (count < 0 || count > (end_ - at_) / bytes_each))
    Fail(absl::DataLossError(absl::StrCat(path_, ": is damaged: has no room for ", count, " values")));
  return ok() ? count : 0;
}

bool StateReader::CheckRoom(int64_t bytes) {
  if (ok() && bytes > end_ - at_)
    Fail(absl::DataLossError(absl::StrCat(path_, ": is damaged: ends before its values")));
  return ok();
}

void StateReader::FailAsForeign() {
  Fail(absl::DataLossError(absl::StrCat(path_, ": is no accumulator of this version")));
}

std::string StateReader::Text() {
  std::string text(static_cast<size_t>(Count(1)), '\0');
  Bytes(text.data(), text.size());
  return text;
}

absl::Status StateReader::Finish() {
  if (status_.ok() && at_ != end_)
    Fail(absl::DataLossError(absl::StrCat(path_, ": is damaged: has more than its values")));
  if (!status_.ok()) return status_;
  const absl::StatusOr<std::string> kept = ReadAt(file_, path_, sizeof(crc_), end_);
  if (!kept.ok()) return kept.status();
  if (*kept != absl::string_view(reinterpret_cast<const char*>(&crc_), sizeof(crc_)))
    Fail(absl::DataLossError(absl::StrCat(path_, ": is damaged: its checksum is wrong")));
  return status_;
}

}  // namespace spexd
