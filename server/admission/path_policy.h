// The files of the server that a job may name.
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

// A file that jobs may read, open.
class AllowedFile {
 public:
  int64_t bytes() const { return bytes_; }  // its size when it was opened
  int descriptor() const { return file_.get(); }
  // Up to 4 bytes at an offset; fewer at the end, or where they cannot be read.
  std::string Peek(int64_t offset) const;
  // All its bytes; InvalidArgument if it has become shorter. Cancelled if a stop is requested. Call it once.
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
  // InvalidArgument if a root is no folder. Roots are canonicalised here, once. Without roots every path is
  // refused.
  static absl::StatusOr<PathPolicy> Make(const std::vector<std::string>& roots);

  // A regular file whose canonical path, symbolic links and ".." followed, lies under a root.
  // The check is repeated on the open file, so that swapping a folder for a link meanwhile gains nothing.
  //   InvalidArgument: not absolute; a URL; not a regular file; more than
  //     max_bytes.
  //   PermissionDenied: outside the roots, whether it exists or not; unreadable.
  //   NotFound: does not exist, under a root.
  //   Unavailable: no descriptor or memory is free for it now, or the disk fails.
  absl::StatusOr<AllowedFile> Open(const std::string& path, int64_t max_bytes) const;

  // A file of the server's own, wherever it lies. DataLoss names it: it is not there; Unavailable as above.
  static absl::StatusOr<AllowedFile> OpenOwn(const std::string& path);

  // Whether Open would find a file that it may read, as far as can be told beforehand.
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
