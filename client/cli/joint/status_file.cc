#include "client/cli/joint/status_file.h"

#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace spexd::cli {
namespace {

const char* WordOf(FileStatus status) {
  switch (status) {
    case FileStatus::kSuccess:
      return "SUCCESS";
    case FileStatus::kFailure:
      return "FAILURE";
    case FileStatus::kExisting:
      break;
  }
  return "EXISTING";
}

absl::Status CannotWriteStatus(const std::string& path) {
  return absl::PermissionDeniedError(absl::StrCat(path, ": --process-status-file cannot be written"));
}

}  // namespace

absl::Status StatusFile::Begin() const {
  if (path_.empty()) return absl::OkStatus();
  std::ofstream file(path_, std::ios::trunc);
  return file.flush() ? absl::OkStatus() : CannotWriteStatus(path_);
}

absl::Status StatusFile::Add(const std::vector<std::string>& files, FileStatus status, int64_t fits,
                             double seconds) const {
  if (path_.empty()) return absl::OkStatus();
  std::ofstream file(path_, std::ios::app);
  for (const std::string& name : files) {
    file << absl::StrFormat("%s %s %d %.2f\n", name, WordOf(status), fits, seconds);
  }
  return file.flush() ? absl::OkStatus() : CannotWriteStatus(path_);
}

}  // namespace spexd::cli
