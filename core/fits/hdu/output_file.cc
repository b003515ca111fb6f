#include "core/fits/hdu/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <new>
#include <random>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/source.h"

namespace spexd {
namespace {

absl::Status ErrnoStatus(int error, const std::string& path, absl::string_view doing) {
  const std::string text = absl::StrCat("cannot ", doing, " ", path, ": ", strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(text);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(text);
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
      return absl::ResourceExhaustedError(text);
    case ENAMETOOLONG:
    case ELOOP:
    case EISDIR:
      return absl::InvalidArgumentError(text);
    default:
      return absl::InternalError(text);
  }
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

absl::Status CheckTarget(const std::string& path) {
  if (path.empty()) return absl::InvalidArgumentError("the path of an output file is empty");
  if (IsExtendedName(path)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot write ", path, ": a URL or an extended file name; the path of a file is needed"));
  }
  const std::string folder = FolderOf(path);
  struct stat info;
  if (stat(folder.c_str(), &info) != 0) {
    return ErrnoStatus(errno, path, absl::StrCat("use the folder ", folder, " to write"));
  }
  if (!S_ISDIR(info.st_mode)) {
    return absl::NotFoundError(absl::StrCat("cannot write ", path, ": ", folder, " is not a folder"));
  }
  if (stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) {
      return absl::InvalidArgumentError(absl::StrCat("cannot write ", path, ": it is a folder"));
    }
    if (!S_ISREG(info.st_mode)) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot write ", path, ": it exists and is not a regular file"));
    }
  } else if (errno != ENOENT) {
    return ErrnoStatus(errno, path, "write");
  }
  return absl::OkStatus();
}

// The mark in the name of a temporary file, ".NAME.spexd-0123abcd". Users do not choose it for names of their
// own, so leftovers can be removed safely.
constexpr absl::string_view kMark = ".spexd-";
constexpr size_t kDigits = 8;

// The name that the temporary file `name` was to get; "" if it is no temporary file.
std::string TargetOf(absl::string_view name) {
  if (name.size() <= kDigits || !absl::ConsumePrefix(&name, ".")) return "";
  const absl::string_view digits = name.substr(name.size() - kDigits);
  if (!std::all_of(digits.begin(), digits.end(), absl::ascii_isxdigit)) return "";
  name.remove_suffix(kDigits);
  return absl::ConsumeSuffix(&name, kMark) ? std::string(name) : "";
}

// A new file beside the target. It is closed and, unless it was renamed, removed on destruction.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& target) : target_(target) {}
  ~TemporaryFile() {
    if (fd_ >= 0) close(fd_);
    if (!path_.empty()) unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  absl::Status Create() {
    constexpr size_t kLongestStem = 200;  // leaves room for the suffix in a name of 255 bytes
    const std::string stem = target_.substr(target_.rfind('/') + 1).substr(0, kLongestStem);
    std::random_device random;
    for (int tries = 0; tries < 100; ++tries) {
      const std::string path =
          absl::StrFormat("%s/.%s%s%0*x", FolderOf(target_), stem, kMark, int{kDigits}, random());
      // Not mkstemp: the file must have the permissions that the user's umask gives.
      fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (fd_ >= 0) {
        path_ = path;
        return absl::OkStatus();
      }
      if (errno != EEXIST) break;
    }
    return ErrnoStatus(errno, target_, "write");
  }

  // Writes bytes at an offset. Thread-safe.
  absl::Status Write(int64_t offset, absl::string_view bytes) {
    constexpr size_t kMax = size_t{64} << 20;
    while (!bytes.empty()) {
      const ssize_t done = pwrite(fd_, bytes.data(), std::min(bytes.size(), kMax), offset);
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) return ErrnoStatus(errno, target_, "write");
      bytes.remove_prefix(static_cast<size_t>(done));
      offset += done;
    }
    return absl::OkStatus();
  }

  absl::Status Publish() {
    if (fsync(fd_) != 0) return ErrnoStatus(errno, target_, "write");
    const int fd = fd_;
    fd_ = -1;
    if (close(fd) != 0) return ErrnoStatus(errno, target_, "write");
    if (rename(path_.c_str(), target_.c_str()) != 0) return ErrnoStatus(errno, target_, "write");
    path_.clear();
    // Flushes the folder, so that the name survives a power cut, too, if the file system can promise that.
    const int folder = open(FolderOf(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) {
      fsync(folder);
      close(folder);
    }
    return absl::OkStatus();
  }

 private:
  std::string target_;
  std::string path_;
  int fd_ = -1;
};

struct FreeCompressor {
  void operator()(libdeflate_compressor* c) const { libdeflate_free_compressor(c); }
};

// Writes one gzip member without name and time, so that equal bytes give equal files.
absl::Status WriteGzipped(const std::string& path, absl::string_view bytes, TemporaryFile& file) {
  constexpr int kFastest = 1;
  const std::unique_ptr<libdeflate_compressor, FreeCompressor> compressor(
      libdeflate_alloc_compressor(kFastest));
  std::unique_ptr<char[]> packed;
  size_t size = 0;
  if (compressor != nullptr) {
    size = libdeflate_gzip_compress_bound(compressor.get(), bytes.size());
    packed.reset(new (std::nothrow) char[size]);
  }
  if (packed == nullptr) return ErrnoStatus(ENOMEM, path, "gzip");
  size = libdeflate_gzip_compress(compressor.get(), bytes.data(), bytes.size(), packed.get(), size);
  if (size == 0) return absl::InternalError(absl::StrCat("cannot gzip ", path));
  return file.Write(0, absl::string_view(packed.get(), size));
}

}  // namespace

absl::Status CheckWritable(const std::string& path) {
  SPEXD_RETURN_IF_ERROR(CheckTarget(path));
  return TemporaryFile(path).Create();
}

std::multimap<std::string, std::string> TemporaryFilesByTarget(const std::string& folder) {
  std::multimap<std::string, std::string> found;
  const std::filesystem::path here(folder);
  std::error_code error;
  std::filesystem::directory_iterator entry(folder.empty() ? "." : here, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string target = TargetOf(entry->path().filename().string());
    if (!target.empty()) found.emplace((here / target).string(), entry->path().string());
  }
  return found;
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view bytes) {
  SPEXD_RETURN_IF_ERROR(CheckTarget(path));
  TemporaryFile file(path);
  SPEXD_RETURN_IF_ERROR(file.Create());
  if (absl::EndsWith(path, ".gz")) {
    SPEXD_RETURN_IF_ERROR(WriteGzipped(path, bytes, file));
  } else {
    SPEXD_RETURN_IF_ERROR(file.Write(0, bytes));
  }
  return file.Publish();
}

absl::Status WriteFileAtomically(const std::string& path, int64_t bytes,
                                 const std::function<absl::Status(const PieceWriter& write)>& fill) {
  if (absl::EndsWith(path, ".gz")) {
    std::string whole(static_cast<size_t>(bytes), '\0');
    SPEXD_RETURN_IF_ERROR(fill([&whole](int64_t offset, absl::string_view piece) {
      piece.copy(&whole[static_cast<size_t>(offset)], piece.size());
      return absl::OkStatus();
    }));
    return WriteFileAtomically(path, whole);
  }
  SPEXD_RETURN_IF_ERROR(CheckTarget(path));
  TemporaryFile file(path);
  SPEXD_RETURN_IF_ERROR(file.Create());
  SPEXD_RETURN_IF_ERROR(
      fill([&file](int64_t offset, absl::string_view piece) { return file.Write(offset, piece); }));
  return file.Publish();
}

}  // namespace spexd
