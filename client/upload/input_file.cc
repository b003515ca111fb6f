#include "client/upload/input_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/digest/crc32c.h"
#include "core/base/status_macros.h"

namespace spexd::client {
namespace {

absl::Status OpenError(const std::string& path, int error) {
  const std::string message = absl::StrCat(path, ": ", std::strerror(error));
  if (error == ENOENT || error == ENOTDIR) {
    const bool extended = absl::EndsWith(path, "]") || absl::EndsWith(path, ")");
    return absl::NotFoundError(
        extended ? absl::StrCat(message, " (extended file names as CFITSIO has them are not understood)")
                 : message);
  }
  if (error == EACCES || error == EPERM) return absl::PermissionDeniedError(message);
  return absl::InvalidArgumentError(message);
}

}  // namespace

absl::StatusOr<InputFile> InputFile::Open(const std::string& path) {
  if (absl::StrContains(path, "://")) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": a URL where the path of a file belongs"));
  }
  InputFile input;
  input.path_ = path;
  input.file_.reset(std::fopen(path.c_str(), "rbe"));
  if (input.file_ == nullptr) return OpenError(path, errno);
  struct stat info;
  if (fstat(fileno(input.file_.get()), &info) != 0) return OpenError(path, errno);
  if (!S_ISREG(info.st_mode)) return absl::InvalidArgumentError(absl::StrCat(path, ": not a regular file"));
  if (info.st_size == 0) return absl::InvalidArgumentError(absl::StrCat(path, ": the file is empty"));
  input.bytes_ = info.st_size;
  return input;
}

absl::Status InputFile::Read(std::string* piece) {
  piece->resize(static_cast<size_t>(std::min(kChunkBytes, bytes_ - read_)));
  const size_t got = std::fread(piece->data(), 1, piece->size(), file_.get());
  if (got != piece->size()) {
    return absl::DataLossError(absl::StrCat(path_, ": ended after ", read_ + static_cast<int64_t>(got),
                                            " of ", bytes_, " bytes while it was read"));
  }
  read_ += static_cast<int64_t>(got);
  crc32c_ = ExtendCrc32c(crc32c_, *piece);
  return absl::OkStatus();
}

absl::StatusOr<std::string> InputFile::Read() {
  std::string piece;
  SPEXD_RETURN_IF_ERROR(Read(&piece));
  return piece;
}

std::string AbsolutePath(const std::string& path) {
  if (absl::StrContains(path, "://")) return path;
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.string();
}

}  // namespace spexd::client
