// Output files that appear whole or not at all.
#ifndef SPEXD_CORE_FITS_HDU_OUTPUT_FILE_H_
#define SPEXD_CORE_FITS_HDU_OUTPUT_FILE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace spexd {

// Checks, before the work, whether a file could be created at `path`, so that a job does not fail at its end.
absl::Status CheckWritable(const std::string& path);

// Writes `bytes` (gzipped if the name ends in ".gz") to a temporary file beside `path`, flushes it to disk
// and renames it. Errors name the path: PermissionDenied, NotFound, ResourceExhausted for a full disk, else
// Internal. The temporary file is removed after an error.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view bytes);

// The temporary files in a folder, keyed by the path that each was to get. They are those that killed writers
// left, and those of writers at work. Files whose names exceed 200 bytes are not found.
std::multimap<std::string, std::string> TemporaryFilesByTarget(const std::string& folder);

// Writes bytes at an offset of a file. Thread-safe.
using PieceWriter = std::function<absl::Status(int64_t offset, absl::string_view bytes)>;

// Writes a file of `bytes` bytes in the same way. `fill` must write all of them with the function that it
// gets; its errors are returned.
absl::Status WriteFileAtomically(const std::string& path, int64_t bytes,
                                 const std::function<absl::Status(const PieceWriter& write)>& fill);

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_HDU_OUTPUT_FILE_H_
