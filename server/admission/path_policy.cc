#include "server/admission/path_policy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/memory/huge_pages.h"
#include "core/base/status_macros.h"
#include "core/base/threads/deadline.h"

namespace spexd {
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;  // bytes of a file that are read at once

absl::Status Bad(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrFormat("path \"%s\": %s", path, why));
}

// Whether opening the file may succeed later.
bool IsPassing(int reason) {
  return reason == EMFILE || reason == ENFILE || reason == ENOMEM || reason == EIO || reason == EINTR;
}

absl::Status CheckForm(const std::string& path) {
  if (path.empty()) return Bad(path, "is empty");
  if (path.size() >= PATH_MAX)
    return absl::InvalidArgumentError(
        absl::StrFormat("path of %d bytes, the limit is %d", path.size(), PATH_MAX - 1));
  if (path.find('\0') != std::string::npos)
    return Bad(path.substr(0, path.find('\0')), "contains a NUL byte");
  if (absl::StrContains(path, "://")) return Bad(path, "is a URL; only plain file paths are read");
  if (path.front() != '/') return Bad(path, "must be absolute");
  return absl::OkStatus();
}

// Returns realpath, or "" and sets errno.
std::string Canonical(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> resolved(realpath(path.c_str(), nullptr), &std::free);
  return resolved == nullptr ? std::string() : std::string(resolved.get());
}

// Whether the existing part of the path ends in a dangling link.
bool EndsInDeadLink(const std::string& path) {
  std::error_code error;
  std::filesystem::path part = std::filesystem::path(path).lexically_normal();
  for (; part.has_relative_path(); part = part.parent_path()) {
    const std::filesystem::file_status status = std::filesystem::symlink_status(part, error);
    if (std::filesystem::exists(status))
      return std::filesystem::is_symlink(status) && !std::filesystem::exists(part, error);
  }
  return false;
}

absl::Status Missing(const std::string& path) {
  return absl::NotFoundError(absl::StrFormat(
      "path \"%s\" does not exist on the server; upload the file if it is elsewhere (spex --upload)", path));
}

}  // namespace

absl::StatusOr<PathPolicy> PathPolicy::Make(const std::vector<std::string>& roots) {
  PathPolicy policy;
  for (const std::string& root : roots) {
    std::error_code error;
    const std::string canonical = Canonical(root);
    if (canonical.empty() || !std::filesystem::is_directory(canonical, error)) {
      return absl::InvalidArgumentError(absl::StrFormat("--allow-root \"%s\" is not a folder", root));
    }
    policy.roots_.push_back(canonical);
  }
  return policy;
}

bool PathPolicy::Allows(const std::string& canonical) const {
  for (const std::string& root : roots_) {
    if (root == "/" || absl::StartsWith(canonical, root + "/")) return true;
  }
  return false;
}

absl::Status PathPolicy::Denied(const std::string& path) const {
  if (roots_.empty()) {
    return absl::PermissionDeniedError(absl::StrFormat(
        "path \"%s\": this server reads no files of its own (no --allow-root); upload the file instead "
        "(spex --upload)",
        path));
  }
  return absl::PermissionDeniedError(
      absl::StrFormat("path \"%s\" lies outside the allowed roots %s; upload the file instead (spex --upload), "
                      "or copy it there",
                      path, absl::StrJoin(roots_, ", ")));
}

absl::StatusOr<std::string> PathPolicy::Resolve(const std::string& path) const {
  SPEXD_RETURN_IF_ERROR(CheckForm(path));
  if (roots_.empty()) return Denied(path);
  const std::string canonical = Canonical(path);
  const int reason = errno;
  if (!canonical.empty()) {
    if (!Allows(canonical)) return Denied(path);
    return canonical;
  }
  // A path outside the roots is refused in the same words whether it exists or not. A dangling link under a
  // root is refused in these words, too, because its target may lie outside.
  std::error_code error;
  const std::filesystem::path likely = std::filesystem::weakly_canonical(path, error);
  if (error || !Allows(likely.string()) || EndsInDeadLink(path)) return Denied(path);
  if (reason == ENOENT || reason == ENOTDIR) return Missing(path);
  return absl::PermissionDeniedError(absl::StrFormat("path \"%s\": %s", path, std::strerror(reason)));
}

absl::StatusOr<AllowedFile> PathPolicy::Open(const std::string& path, int64_t max_bytes) const {
  SPEXD_ASSIGN_OR_RETURN(const std::string canonical, Resolve(path));
  FileDescriptor file(open(canonical.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() < 0) {
    const int reason = errno;
    if (reason == ENOENT) return Missing(path);
    if (IsPassing(reason))
      return absl::UnavailableError(absl::StrFormat("path \"%s\": %s", path, std::strerror(reason)));
    return absl::PermissionDeniedError(absl::StrFormat("path \"%s\": %s", path, std::strerror(reason)));
  }
  const std::string opened = Canonical(absl::StrCat("/proc/self/fd/", file.get()));
  if (opened.empty() || !Allows(opened)) return Denied(path);
  struct stat info {};
  if (fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return Bad(path, "is not a regular file");
  if (info.st_size > max_bytes) {
    return Bad(path, absl::StrFormat("has %d bytes, the limit is %d", int64_t{info.st_size}, max_bytes));
  }
  return AllowedFile(path, std::move(file), info.st_size);
}

absl::StatusOr<AllowedFile> PathPolicy::OpenOwn(const std::string& path) {
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat info {};
  if (file.get() < 0 || fstat(file.get(), &info) != 0) {
    const int reason = errno;
    const std::string message = absl::StrFormat("%s: cannot be opened: %s", path, std::strerror(reason));
    return IsPassing(reason) ? absl::UnavailableError(message) : absl::DataLossError(message);
  }
  return AllowedFile(path, std::move(file), info.st_size);
}

std::string AllowedFile::Peek(int64_t offset) const {
  std::string bytes(4, '\0');
  const ssize_t got = pread(file_.get(), bytes.data(), bytes.size(), std::max<int64_t>(offset, 0));
  bytes.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  return bytes;
}

absl::StatusOr<std::string> AllowedFile::Read(const std::stop_token& stop) {
  const auto size = static_cast<size_t>(bytes_);
  std::string bytes;
  bytes.reserve(size);
  AdviseHugePages(bytes.data(), bytes.capacity());
  size_t filled = 0;
  while (filled < size) {
    SPEXD_RETURN_IF_ERROR(CheckStop(stop));
    // Reading in pieces replaces the zeros that resize writes while they are in the processor's cache.
    bytes.resize(std::min(size, filled + kReadBytes));
    const ssize_t got = read(file_.get(), bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return absl::InternalError(
          absl::StrFormat("path \"%s\": reading failed: %s", path_, std::strerror(errno)));
    }
    if (got == 0) return Bad(path_, "became shorter while it was read");
    filled += static_cast<size_t>(got);
  }
  return bytes;
}

}  // namespace spexd
