// The record of a joint analysis that rvs_desi_fit --process_status_file keeps: "FILE STATUS FITS SECONDS", a
// line for each file.
#ifndef SPEXD_CLIENT_CLI_JOINT_STATUS_FILE_H_
#define SPEXD_CLIENT_CLI_JOINT_STATUS_FILE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace spexd::cli {

enum class FileStatus { kSuccess, kFailure, kExisting };

class StatusFile {
 public:
  // "": there is no file, and every call succeeds.
  explicit StatusFile(std::string path) : path_(std::move(path)) {}

  // Empties the file. An error that names it if it cannot be written, here and below.
  absl::Status Begin() const;
  // Adds a line for each of `files`, and flushes them. FITS is 0 after a failure and -1 where all was there.
  absl::Status Add(const std::vector<std::string>& files, FileStatus status, int64_t fits,
                   double seconds) const;

 private:
  std::string path_;
};

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_JOINT_STATUS_FILE_H_
