// The status file of a joint analysis, as rvs_desi_fit --process_status_file writes it: a line "FILE STATUS
// FITS SECONDS" for each file.
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
  // `path`: "": there is no file, and every call succeeds.
  explicit StatusFile(std::string path) : path_(std::move(path)) {}

  // Empties the file. Errors of Begin and Add name the file.
  absl::Status Begin() const;
  // Adds and flushes a line for each of `files`. FITS is 0 after a failure and -1 if all outputs existed.
  absl::Status Add(const std::vector<std::string>& files, FileStatus status, int64_t fits,
                   double seconds) const;

 private:
  std::string path_;
};

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_JOINT_STATUS_FILE_H_
