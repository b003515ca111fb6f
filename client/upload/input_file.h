// Input files on their way to a server.
#ifndef SPEXD_CLIENT_UPLOAD_INPUT_FILE_H_
#define SPEXD_CLIENT_UPLOAD_INPUT_FILE_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace spexd::client {

inline constexpr int64_t kChunkBytes = int64_t{1} << 20;

// A regular file, read piece by piece as it is on disk. Every error names the path.
class InputFile {
 public:
  // NotFound, PermissionDenied, InvalidArgument (a URL, a folder, an empty file).
  static absl::StatusOr<InputFile> Open(const std::string& path);

  const std::string& path() const { return path_; }
  int64_t bytes() const { return bytes_; }  // its size when it was opened
  // The next piece of at most kChunkBytes; "" at the end. DataLoss if the file's length has changed.
  absl::Status Read(std::string* piece);
  absl::StatusOr<std::string> Read();
  // Checksum of the bytes read so far.
  uint32_t crc32c() const { return crc32c_; }

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::string path_;
  int64_t bytes_ = 0;
  int64_t read_ = 0;
  std::unique_ptr<std::FILE, Closer> file_;
  uint32_t crc32c_ = 0;
};

// The path as a server on the same file system sees it: absolute, links untouched. URLs stay as they are, for
// the server to refuse.
std::string AbsolutePath(const std::string& path);

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_UPLOAD_INPUT_FILE_H_
