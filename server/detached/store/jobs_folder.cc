#include "server/detached/store/jobs_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "core/base/digest/sha256.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "server/base/files.h"
#include "server/detached/store/job_record.h"

namespace spexd {
namespace {

constexpr int64_t kMaxHeaderFileBytes = 16 << 20;

absl::StatusOr<FileDescriptor> OpenToRead(const std::string& path) {
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() >= 0) return file;
  if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)
    return absl::DataLossError(absl::StrCat(path, ": is missing"));
  return DiskError(path, "cannot be opened");
}

// Reads a file. A read error is DataLoss, because a bad sector damages one file and not the whole disk.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t max_bytes) {
  SPEXD_ASSIGN_OR_RETURN(const FileDescriptor file, OpenToRead(path));
  struct stat status;
  if (fstat(file.get(), &status) != 0) return DiskError(path, "cannot be read");
  if (!S_ISREG(status.st_mode) || static_cast<uint64_t>(status.st_size) > max_bytes)
    return absl::DataLossError(absl::StrCat(path, ": is no file of spexd's"));
  absl::StatusOr<std::string> bytes = ReadAt(file, path, static_cast<size_t>(status.st_size), 0);
  return bytes.ok() ? std::move(bytes) : absl::DataLossError(bytes.status().message());
}

absl::Status CheckInput(const std::string& path, const StoredInput& input, std::stop_token stop) {
  constexpr size_t kPieceBytes = 1 << 20;
  SPEXD_ASSIGN_OR_RETURN(const FileDescriptor file, OpenToRead(path));
  Sha256 digest;
  for (int64_t offset = 0; offset < input.bytes;) {
    if (stop.stop_requested()) return absl::CancelledError("the job was stopped");
    const absl::StatusOr<std::string> piece = ReadAt(file, path, kPieceBytes, offset);
    if (!piece.ok()) return absl::DataLossError(piece.status().message());
    if (piece->empty()) break;
    digest.Update(*piece);
    offset += static_cast<int64_t>(piece->size());
  }
  if (digest.Hex() == input.sha256) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(path, ": its SHA-256 is not that of the upload; submit the job again"));
}

absl::Status Rename(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  return DiskError(from, absl::StrCat("cannot be moved to ", to));
}

void RemoveAll(const std::string& path) {
  std::error_code ignored;  // the next start tries again
  std::filesystem::remove_all(path, ignored);
}

absl::Status EmptyFolder(const std::string& path) {
  SPEXD_RETURN_IF_ERROR(MakeFolder(path));
  SPEXD_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(path));
  for (const std::string& name : names) RemoveAll(absl::StrCat(path, "/", name));
  return absl::OkStatus();
}

}  // namespace

std::string JobsFolder::PathOf(const std::string& id, const std::string& file) const {
  return absl::StrCat(path_, "/jobs/", id, "/", file);
}

std::string JobsFolder::NewPath(const std::string& id) const { return absl::StrCat(path_, "/new/", id); }

absl::Status JobsFolder::Lock(int flags) {
  const std::string path = path_ + "/lock";
  lock_ = FileDescriptor(open(path.c_str(), O_RDWR | flags | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (lock_.get() < 0 && errno == ENOENT)
    return absl::NotFoundError(absl::StrCat(path_, ": is no folder of detached jobs: it has no lock"));
  if (lock_.get() < 0) return DiskError(path, "cannot be opened");
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
  if (errno == EWOULDBLOCK)
    return absl::UnavailableError(absl::StrCat(path_, ": another spexd keeps its jobs here"));
  return DiskError(path, "cannot be locked");
}

absl::StatusOr<JobsFolder> JobsFolder::Open(const std::string& path) {
  JobsFolder folder(path);
  SPEXD_RETURN_IF_ERROR(MakeFolder(path));
  struct stat status;
  if (lstat((path + "/lock").c_str(), &status) != 0) {
    for (const char* name : {"/jobs", "/new", "/removed"}) {
      if (lstat((path + name).c_str(), &status) != 0) continue;
      return absl::FailedPreconditionError(
          absl::StrCat(path, ": has ", name + 1,
                       "/ but no file lock, so it may be somebody else's; name "
                       "another folder, or make that file if these are jobs of spexd"));
    }
  }
  SPEXD_RETURN_IF_ERROR(folder.Lock(O_CREAT));
  SPEXD_RETURN_IF_ERROR(MakeFolder(path + "/jobs"));
  SPEXD_RETURN_IF_ERROR(EmptyFolder(path + "/new"));
  SPEXD_RETURN_IF_ERROR(EmptyFolder(path + "/removed"));
  return folder;
}

absl::StatusOr<JobsFolder> JobsFolder::OpenToCheck(const std::string& path) {
  JobsFolder folder(path);
  SPEXD_RETURN_IF_ERROR(folder.Lock(0));
  return folder;
}

absl::StatusOr<std::vector<std::string>> JobsFolder::List() const { return ListFolder(path_ + "/jobs"); }

absl::StatusOr<StoredJob> JobsFolder::Read(const std::string& id) const {
  const std::string folder = absl::StrCat(path_, "/jobs/", id);
  struct stat status;
  if (!IsJobId(id) || lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
    return absl::DataLossError(folder + ": is no folder of a job");
  StoredJob job;
  const std::string header = PathOf(id, "header"), state = PathOf(id, "state");
  SPEXD_ASSIGN_OR_RETURN(const std::string header_text, ReadSmallFile(header, kMaxHeaderFileBytes));
  if (const absl::Status good = ParseHeaderRecord(header_text, &job); !good.ok()) return InFile(header, good);
  if (job.id != id) return absl::DataLossError(absl::StrCat(header, ": is that of job ", job.id));
  SPEXD_ASSIGN_OR_RETURN(const std::string state_text, ReadSmallFile(state, 2 * kStateBytes));
  if (const absl::Status good = ParseStateFile(state_text, &job); !good.ok()) return InFile(state, good);
  return job;
}

absl::StatusOr<std::string> JobsFolder::ReadHeader(const std::string& id) const {
  const std::string path = PathOf(id, "header");
  SPEXD_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, kMaxHeaderFileBytes));
  absl::StatusOr<std::string> header = HeaderOf(text);
  return header.ok() ? std::move(header) : InFile(path, header.status());
}

absl::Status JobsFolder::CheckInputs(const StoredJob& job, std::stop_token stop) const {
  for (const StoredInput& input : job.inputs)
    SPEXD_RETURN_IF_ERROR(CheckInput(InputPath(job.id, input.name), input, stop));
  return absl::OkStatus();
}

absl::Status JobsFolder::Write(const StoredJob& job,
                               const std::vector<std::pair<std::string, std::string>>& inputs) const {
  const std::string folder = NewPath(job.id);
  const auto write = [&]() -> absl::Status {
    SPEXD_RETURN_IF_ERROR(MakeFolder(folder));
    for (const auto& [name, bytes] : inputs)
      SPEXD_RETURN_IF_ERROR(WriteNewFile(absl::StrCat(folder, "/", name), bytes));
    SPEXD_RETURN_IF_ERROR(WriteNewFile(folder + "/header", HeaderRecord(job)));
    // Two records, so that the next change needs no further space.
    SPEXD_RETURN_IF_ERROR(WriteNewFile(folder + "/state", StateRecord(job) + StateRecord(job)));
    return SyncFolder(folder);
  };
  const absl::Status written = CatchExceptions(write);
  if (!written.ok()) Discard(job.id);
  return written;
}

absl::Status JobsFolder::Publish(const std::string& id) const {
  const std::string published = absl::StrCat(path_, "/jobs/", id);
  SPEXD_RETURN_IF_ERROR(Rename(NewPath(id), published));
  absl::Status status = SyncFolder(path_ + "/jobs");
  if (!status.ok()) {
    // Renaming removes the folder from jobs/ in one step, so that a crash leaves a whole job or none.
    Rename(published, NewPath(id)).IgnoreError();
    SyncFolder(path_ + "/jobs").IgnoreError();
  }
  return status;
}

void JobsFolder::Discard(const std::string& id) const { RemoveAll(NewPath(id)); }

absl::Status JobsFolder::WriteState(const StoredJob& job) const {
  const std::string path = PathOf(job.id, "state");
  const FileDescriptor file(open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (file.get() < 0) return DiskError(path, "cannot be opened");
  const int64_t offset = job.changes % 2 * static_cast<int64_t>(kStateBytes);
  SPEXD_RETURN_IF_ERROR(WriteAt(file, path, StateRecord(job), offset));
  return fdatasync(file.get()) == 0 ? absl::OkStatus() : DiskError(path, "cannot be written");
}

void JobsFolder::RemoveUnneeded(const StoredJob& job) const {
  for (const StoredInput& input : job.inputs) RemoveFile(InputPath(job.id, input.name));
  if (job.result_bytes == 0) RemoveFile(EventsPath(job.id));
}

absl::Status JobsFolder::MoveToRemoved(const std::string& id) const {
  const std::string removed = absl::StrCat(path_, "/removed/", id);
  const std::string folder = absl::StrCat(path_, "/jobs/", id);
  if (std::rename(folder.c_str(), removed.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return DiskError(folder, absl::StrCat("cannot be moved to ", removed));
}

absl::Status JobsFolder::DeleteRemoved(const std::vector<std::string>& ids) const {
  SPEXD_RETURN_IF_ERROR(SyncFolder(path_ + "/jobs"));  // so that no loss of power brings back half a job
  for (const std::string& id : ids) RemoveAll(absl::StrCat(path_, "/removed/", id));
  return absl::OkStatus();
}

absl::StatusOr<std::string> JobsFolder::Quarantine(const std::string& name) const {
  const std::string quarantine = path_ + "/quarantine";
  SPEXD_RETURN_IF_ERROR(MakeFolder(quarantine));
  std::string moved = absl::StrCat(quarantine, "/", name);
  struct stat status;
  for (int k = 2; lstat(moved.c_str(), &status) == 0; ++k)
    moved = absl::StrCat(quarantine, "/", name, "-", k);
  SPEXD_RETURN_IF_ERROR(Rename(absl::StrCat(path_, "/jobs/", name), moved));
  SPEXD_RETURN_IF_ERROR(SyncFolder(quarantine));
  SPEXD_RETURN_IF_ERROR(SyncFolder(path_ + "/jobs"));
  return moved;
}

}  // namespace spexd
