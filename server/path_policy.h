// The files of the server that a job may name.
#ifndef SPEXD_SERVER_PATH_POLICY_H_
#define SPEXD_SERVER_PATH_POLICY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace spexd {

class PathPolicy {
 public:
  // InvalidArgument if a root is no folder. Roots are canonicalised here, once. Without roots every path is
  // refused.
  static absl::StatusOr<PathPolicy> Make(const std::vector<std::string>& roots);

  // The bytes of a regular file whose canonical path, symbolic links and ".." followed, lies under a root.
  // The check is repeated on the open file, so that swapping a folder for a link meanwhile gains nothing.
  //   InvalidArgument   not absolute; a URL or a CFITSIO extended name; not a regular file; more than
  //   max_bytes PermissionDenied  outside the roots, whether it exists or not; unreadable NotFound does not
  //   exist, under a root
  absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t max_bytes) const;

  // Whether ReadFile would find a file that it may read, as far as can be told beforehand.
  absl::Status Check(const std::string& path) const { return Resolve(path).status(); }

  const std::vector<std::string>& roots() const { return roots_; }

 private:
  absl::StatusOr<std::string> Resolve(const std::string& path) const;
  bool Allows(const std::string& canonical) const;
  absl::Status Denied(const std::string& path) const;

  std::vector<std::string> roots_;  // canonical
};

}  // namespace spexd

#endif  // SPEXD_SERVER_PATH_POLICY_H_
