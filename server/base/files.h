// Files of the jobs folder: what is written is on disk when a call returns OK. Errors name the file.
#ifndef SPEXD_SERVER_BASE_FILES_H_
#define SPEXD_SERVER_BASE_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/file_descriptor.h"

namespace spexd {

// Unavailable: "PATH: what failed: why", by errno.
absl::Status DiskError(const std::string& path, absl::string_view what);
// The status with "PATH: " before its message.
absl::Status InFile(const std::string& path, const absl::Status& status);

// All bytes at the offset, or an error.
absl::Status WriteAt(const FileDescriptor& file, const std::string& path, absl::string_view bytes,
                     int64_t offset);
// Up to `size` bytes: fewer at the file's end.
absl::StatusOr<std::string> ReadAt(const FileDescriptor& file, const std::string& path, size_t size,
                                   int64_t offset);

// Makes a file of these bytes, for this process's user alone. Its name lasts once its folder is synced.
absl::Status WriteNewFile(const std::string& path, absl::string_view bytes);
// The names in the folder, files' and others', but for "." and "..".
absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path);
// Makes what changed in a folder (names made, moved, removed) last.
absl::Status SyncFolder(const std::string& path);
// Unless it is there; it lasts, and is for this process's user alone.
absl::Status MakeFolder(const std::string& path);
void RemoveFile(const std::string& path);  // if it is there

}  // namespace spexd

#endif  // SPEXD_SERVER_BASE_FILES_H_
