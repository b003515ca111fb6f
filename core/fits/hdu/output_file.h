// Files that appear whole or not at all.
#ifndef SPEXD_CORE_FITS_HDU_OUTPUT_FILE_H_
#define SPEXD_CORE_FITS_HDU_OUTPUT_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace spexd {

// Checks whether a file could be created at `path`, before the work, so that a job does not fail at its end.
absl::Status CheckWritable(const std::string& path);

// Writes `bytes` (gzipped if the name ends in ".gz") to a temporary file beside `path`, flushes it to the
// disk and renames it. Errors: PermissionDenied, NotFound, ResourceExhausted for a full disk, Internal else,
// with the path. The temporary file is removed after each of them.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view bytes);

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_HDU_OUTPUT_FILE_H_
