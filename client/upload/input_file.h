// Input files that are uploaded to a server.
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

// A regular file that is read in pieces, as it is on disk. Errors name the path.
class InputFile {
 public:
  // Opens a file. NotFound, PermissionDenied; InvalidArgument: it is a URL, a folder or an empty file.
  static absl::StatusOr<InputFile> Open(const std::string& path);

  const std::string& path() const { return path_; }
  int64_t bytes() const { return bytes_; }  // its size when it was opened
  // Reads the next piece of at most kChunkBytes; "" at the end. DataLoss: the file's length has changed.
  absl::Status Read(std::string* piece);
  absl::StatusOr<std::string> Read();
  // The CRC-32C of the bytes that were read so far.
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

// Returns the absolute path, without resolving links, for a server on the same file system. URLs are returned
// unchanged; the server refuses them.
std::string AbsolutePath(const std::string& path);

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_UPLOAD_INPUT_FILE_H_
