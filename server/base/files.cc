#include "server/base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace spexd {
namespace {

// Returns the folder of a path; "." if the path has none. A slash at the path's end does not count.
std::string FolderOf(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  const size_t slash = end == std::string::npos ? 0 : path.rfind('/', end);
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

absl::Status InFile(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

absl::Status DiskError(const std::string& path, absl::string_view what) {
  const int reason = errno;
  return absl::UnavailableError(absl::StrCat(path, ": ", what, ": ", std::strerror(reason)));
}

absl::Status WriteAt(const FileDescriptor& file, const std::string& path, absl::string_view bytes,
                     int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t wrote = pwrite(file.get(), bytes.data(), bytes.size(), offset);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return DiskError(path, "cannot be written");
    bytes.remove_prefix(static_cast<size_t>(wrote));
    offset += wrote;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadAt(const FileDescriptor& file, const std::string& path, size_t size,
                                   int64_t offset) {
  std::string bytes(size, '\0');
  size_t filled = 0;
  while (filled < size) {
    const ssize_t got =
        pread(file.get(), bytes.data() + filled, size - filled, offset + static_cast<int64_t>(filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return DiskError(path, "cannot be read");
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  bytes.resize(filled);
  return bytes;
}

absl::Status WriteNewFile(const std::string& path, absl::string_view bytes) {
  const FileDescriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return DiskError(path, "cannot be made");
  SPEXD_RETURN_IF_ERROR(WriteAt(file, path, bytes, 0));
  return fsync(file.get()) == 0 ? absl::OkStatus() : DiskError(path, "cannot be written");
}

absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path) {
  struct Close {
    void operator()(DIR* folder) const { closedir(folder); }
  };
  const std::unique_ptr<DIR, Close> folder(opendir(path.c_str()));
  if (folder == nullptr) return DiskError(path, "cannot be listed");
  std::vector<std::string> names;
  for (errno = 0;; errno = 0) {
    const dirent* const entry = readdir(folder.get());
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  if (errno != 0) return DiskError(path, "cannot be listed");
  return names;
}

absl::Status SyncFolder(const std::string& path) {
  const FileDescriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0 || fsync(folder.get()) != 0) return DiskError(path, "cannot be written");
  return absl::OkStatus();
}

absl::Status MakeFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0) return SyncFolder(FolderOf(path));
  return errno == EEXIST ? absl::OkStatus() : DiskError(path, "cannot be made");
}

void RemoveFile(const std::string& path) { std::remove(path.c_str()); }

}  // namespace spexd
