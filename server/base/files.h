// Access to the files of the jobs folder. Errors name the file. A function that writes returns OK only when
// the data are on disk.
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

// Returns Unavailable with the message "PATH: WHAT: reason", where the reason is that of errno.
absl::Status DiskError(const std::string& path, absl::string_view what);
// Returns the status with "PATH: " before its message.
absl::Status InFile(const std::string& path, const absl::Status& status);

// Writes all bytes at the offset.
absl::Status WriteAt(const FileDescriptor& file, const std::string& path, absl::string_view bytes,
                     int64_t offset);
// Reads `size` bytes at the offset; fewer at the file's end.
absl::StatusOr<std::string> ReadAt(const FileDescriptor& file, const std::string& path, size_t size,
                                   int64_t offset);

// Writes a new file that only the process's user may read and write. Its name is durable after SyncFolder.
absl::Status WriteNewFile(const std::string& path, absl::string_view bytes);
// Returns the names of all entries of the folder except "." and "..".
absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path);
// Makes changes of names in a folder (new, moved, removed) durable.
absl::Status SyncFolder(const std::string& path);
// Makes a folder, durably, that only the process's user may use. Does nothing if it exists.
absl::Status MakeFolder(const std::string& path);
void RemoveFile(const std::string& path);  // ignores errors

}  // namespace spexd

#endif  // SPEXD_SERVER_BASE_FILES_H_
