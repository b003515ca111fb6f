// Reads small files of the operator: configuration, identities.
#ifndef SPEXD_SERVER_CONFIG_SMALL_FILE_H_
#define SPEXD_SERVER_CONFIG_SMALL_FILE_H_

#include <string>

#include "absl/status/statusor.h"

namespace spexd {

// Returns the content of a file of at most 1 MiB. InvalidArgument, beginning with `name` (of the option), if
// the file cannot be read or is larger.
absl::StatusOr<std::string> ReadSmallFile(const std::string& name, const std::string& path);

}  // namespace spexd

#endif  // SPEXD_SERVER_CONFIG_SMALL_FILE_H_
