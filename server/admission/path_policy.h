// The policy that says which of the server's files a job may name.
#ifndef SPEXD_SERVER_ADMISSION_PATH_POLICY_H_
#define SPEXD_SERVER_ADMISSION_PATH_POLICY_H_

#include <cstdint>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/file_descriptor.h"

namespace spexd {

// An open file that jobs may read.
class AllowedFile {
 public:
  int64_t bytes() const { return bytes_; }  // its size when it was opened
  int descriptor() const { return file_.get(); }
  // Returns 4 bytes at an offset; fewer at the end of the file or if they cannot be read.
  std::string Peek(int64_t offset) const;
  // Reads all bytes. Call it once. InvalidArgument: the file has become shorter. Cancelled: a stop was
  // requested.
  absl::StatusOr<std::string> Read(const std::stop_token& stop = {});

 private:
  friend class PathPolicy;
  AllowedFile(std::string path, FileDescriptor file, int64_t bytes)
      : path_(std::move(path)), file_(std::move(file)), bytes_(bytes) {}
  std::string path_;
  FileDescriptor file_;
  int64_t bytes_;
};

class PathPolicy {
 public:
  // Canonicalises the roots, once. Without roots, every path is refused. InvalidArgument: a root is no
  // folder.
  static absl::StatusOr<PathPolicy> Make(const std::vector<std::string>& roots);

  // Opens a regular file whose canonical path (with symbolic links and ".." resolved) lies under a root. The
  // check is repeated on the open file, so that replacing a folder by a link in between has no effect.
  //
  //   InvalidArgument: the path is not absolute or is a URL, or the file is not regular or exceeds
  //   `max_bytes`. PermissionDenied: it is outside the roots (whether it exists or not), or unreadable.
  //   NotFound: it would be under a root, but does not exist.
  //   Unavailable: the system has no descriptor or memory for it at present, or the disk fails.
  absl::StatusOr<AllowedFile> Open(const std::string& path, int64_t max_bytes) const;

  // Opens a file of the server's own, in any folder. DataLoss: it does not exist. Unavailable as in Open.
  static absl::StatusOr<AllowedFile> OpenOwn(const std::string& path);

  // Returns the error of Open as far as it is known without opening the file.
  absl::Status Check(const std::string& path) const { return Resolve(path).status(); }

  const std::vector<std::string>& roots() const { return roots_; }

 private:
  absl::StatusOr<std::string> Resolve(const std::string& path) const;
  bool Allows(const std::string& canonical) const;
  absl::Status Denied(const std::string& path) const;

  std::vector<std::string> roots_;  // canonical
};

}  // namespace spexd

#endif  // SPEXD_SERVER_ADMISSION_PATH_POLICY_H_
