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

// All bytes at the offset, or an error.
absl::Status WriteAt(const FileDescriptor& file, const std::string& path, absl::string_view bytes,
                     int64_t offset);
// Up to `size` bytes: fewer at the file's end.
absl::StatusOr<std::string> ReadAt(const FileDescriptor& file, const std::string& path, size_t size,
                                   int64_t offset);

// The file is there with these bytes, or not at all.
absl::Status WriteWholeFile(const std::string& path, absl::string_view bytes);
// The names in the folder, files' and others', but for "." and "..".
absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path);
// Makes what changed in a folder (names made, moved, removed) last.
absl::Status SyncFolder(const std::string& path);
// Unless it is there; it lasts, and is for this process's user alone.
absl::Status MakeFolder(const std::string& path);
// The same for an empty file; one that is there keeps its bytes and is closed to others.
absl::Status MakePrivateFile(const std::string& path);
void RemoveFile(const std::string& path);  // if it is there

}  // namespace spexd

#endif  // SPEXD_SERVER_BASE_FILES_H_
