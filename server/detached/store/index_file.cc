#include "server/detached/store/index_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <unordered_set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "core/base/status_macros.h"
#include "core/base/threads/parallel.h"
#include "server/base/files.h"
#include "server/detached/store/job_record.h"

namespace spexd {
namespace {

std::string PathIn(const std::string& folder) { return folder + "/index"; }
std::string NewPathIn(const std::string& folder) { return PathIn(folder) + ".new"; }

constexpr int64_t kLengthLineBytes = 21;
std::string LengthLine(int64_t bytes) { return absl::StrFormat("%020d\n", bytes); }

FileDescriptor OpenIn(const std::string& folder) {
  return FileDescriptor(open(PathIn(folder).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
}

}  // namespace

absl::StatusOr<IndexFile> IndexFile::Open(const std::string& folder, std::vector<StoredJob>* jobs,
                                          absl::Status* why) {
  *why = absl::OkStatus();
  Discard(folder);
  const std::string path = PathIn(folder);
  FileDescriptor file = OpenIn(folder);
  if (file.get() < 0 && errno == ENOENT) return IndexFile();
  if (file.get() < 0) *why = DiskError(path, "cannot be opened");
  IndexFile index(folder, path, std::move(file));
  if (why->ok()) *why = index.Read(jobs);
  if (why->ok()) return index;
  // The index is removed, because it would be out of date after the first change of a job.
  jobs->clear();
  SPEXD_RETURN_IF_ERROR(index.Remove());
  return IndexFile();
}

absl::StatusOr<std::vector<StoredJob>> IndexFile::Listed(const std::string& folder) {
  const std::string path = PathIn(folder);
  std::vector<StoredJob> jobs;
  FileDescriptor file = OpenIn(folder);
  if (file.get() < 0 && errno == ENOENT) return jobs;
  if (file.get() < 0) return DiskError(path, "cannot be opened");
  SPEXD_RETURN_IF_ERROR(IndexFile(folder, path, std::move(file)).Read(&jobs));
  return jobs;
}

absl::Status IndexFile::Read(std::vector<StoredJob>* jobs) {
  constexpr int64_t kMaxIndexBytes = int64_t{1} << 32;
  constexpr int kThreads = 4;
  struct stat status;
  if (fstat(file_.get(), &status) != 0) return DiskError(path_, "cannot be read");
  if (!S_ISREG(status.st_mode) || status.st_size > kMaxIndexBytes)
    return absl::DataLossError(absl::StrCat(path_, ": is no file of spexd's"));
  bytes_ = status.st_size;
  SPEXD_ASSIGN_OR_RETURN(const std::string text, ReadAt(file_, path_, static_cast<size_t>(bytes_), 0));
  if (!absl::StartsWith(text, LengthLine(bytes_)) || static_cast<int64_t>(text.size()) != bytes_)
    return absl::DataLossError(path_ + ": its length is not the one in its first line");
  if (text.back() != '\n') return absl::DataLossError(path_ + ": its last line is cut short");
  if (bytes_ == kLengthLineBytes) return absl::OkStatus();
  const std::vector<absl::string_view> lines = absl::StrSplit(
      absl::string_view(text).substr(kLengthLineBytes, text.size() - kLengthLineBytes - 1), '\n');
  jobs->resize(lines.size());
  SPEXD_RETURN_IF_ERROR(ParallelFor(static_cast<int64_t>(lines.size()), kThreads, [&](int64_t k) {
    const auto line = static_cast<size_t>(k);
    const absl::Status good = ParseIndexRecord(lines[line], &(*jobs)[line]);
    return good.ok() ? good : InFile(absl::StrCat(path_, ": line ", k + 2), good);
  }));
  // The last line of a job counts.
  std::reverse(jobs->begin(), jobs->end());
  std::unordered_set<std::string> known;
  std::erase_if(*jobs,
                [&](const StoredJob& job) { return !known.insert(job.id).second || !job.has_ended(); });
  return absl::OkStatus();
}

absl::StatusOr<IndexFile> IndexFile::Create(const std::string& folder) {
  const std::string path = NewPathIn(folder);
  FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return DiskError(path, "cannot be made");
  IndexFile index(folder, path, std::move(file));
  index.bytes_ = kLengthLineBytes;
  return index;
}

void IndexFile::Discard(const std::string& folder) { RemoveFile(NewPathIn(folder)); }

absl::Status IndexFile::Add(const std::vector<StoredJob>& jobs) {
  std::string lines;
  for (const StoredJob& job : jobs) lines += IndexRecord(job);
  SPEXD_RETURN_IF_ERROR(WriteAt(file_, path_, lines, bytes_));
  bytes_ += static_cast<int64_t>(lines.size());
  return absl::OkStatus();
}

absl::Status IndexFile::Sync() {
  SPEXD_RETURN_IF_ERROR(WriteAt(file_, path_, LengthLine(bytes_), 0));
  return fdatasync(file_.get()) == 0 ? absl::OkStatus() : DiskError(path_, "cannot be written");
}

absl::Status IndexFile::Publish(IndexFile* before) {
  if (!exists()) return absl::UnavailableError(PathIn(folder_) + ": cannot be written");
  SPEXD_RETURN_IF_ERROR(Sync());
  const std::string path = PathIn(folder_);
  if (std::rename(path_.c_str(), path.c_str()) != 0)
    return DiskError(path_, absl::StrCat("cannot be moved to ", path));
  path_ = path;
  *before = std::move(*this);
  const absl::Status published = SyncFolder(before->folder_);
  if (!published.ok()) before->Remove().IgnoreError();
  return published;
}

absl::Status IndexFile::Forget(const std::vector<std::string>& ids) {
  if (!exists()) return absl::OkStatus();
  std::vector<StoredJob> unknown(ids.size());
  for (size_t k = 0; k < ids.size(); ++k) unknown[k].id = ids[k];
  if (file_.get() >= 0 && Add(unknown).ok() && Sync().ok()) return absl::OkStatus();
  return Remove();
}

absl::Status IndexFile::Remove() {
  file_ = FileDescriptor(-1);
  std::error_code failed;
  std::filesystem::remove_all(path_, failed);
  if (failed) return absl::UnavailableError(absl::StrCat(path_, ": cannot be removed: ", failed.message()));
  SPEXD_RETURN_IF_ERROR(SyncFolder(folder_));
  path_.clear();
  return absl::OkStatus();
}

}  // namespace spexd
