// Files that appear whole or not at all.
#ifndef SPEXD_CORE_FITS_HDU_OUTPUT_FILE_H_
#define SPEXD_CORE_FITS_HDU_OUTPUT_FILE_H_

#include <cstdint>
#include <functional>
#include <map>
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

// The temporary files in a folder, by the path that each was to get. A writer that is killed leaves its file;
// those of writers at work are here, too. Files of names longer than 200 bytes are not found under them.
std::multimap<std::string, std::string> TemporaryFilesByTarget(const std::string& folder);

// Puts bytes at an offset of a file. May be called by several threads at once.
using PieceWriter = std::function<absl::Status(int64_t offset, absl::string_view bytes)>;

// The same for a file of `bytes` bytes, all of which `fill` writes with what it is given. Its errors are
// returned.
absl::Status WriteFileAtomically(const std::string& path, int64_t bytes,
                                 const std::function<absl::Status(const PieceWriter& write)>& fill);

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_HDU_OUTPUT_FILE_H_
