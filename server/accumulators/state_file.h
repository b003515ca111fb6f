// The file of an accumulator: values one after the other as they are in memory, then the CRC-32C of them all.
#ifndef SPEXD_SERVER_ACCUMULATORS_STATE_FILE_H_
#define SPEXD_SERVER_ACCUMULATORS_STATE_FILE_H_

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/file_descriptor.h"

namespace spexd {

// Errors are kept: after the first every call does nothing, and Finish reports it.
class StateWriter {
 public:
  // `path`: for messages.
  StateWriter(const FileDescriptor* file, std::string path) : file_(*file), path_(std::move(path)) {}

  template <typename T>
  void Value(const T& value) {
    static_assert(std::is_arithmetic_v<T>);
    Bytes({reinterpret_cast<const char*>(&value), sizeof(T)});
  }
  template <typename T>
  void Values(absl::Span<const T> values) {
    static_assert(std::is_arithmetic_v<T>);
    Bytes({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
  }
  void Text(absl::string_view text);  // with its length before it

  // Writes the checksum; all is on disk once it returns OK. The bytes of the file.
  absl::StatusOr<int64_t> Finish();

 private:
  void Bytes(absl::string_view bytes);
  void Flush();

  const FileDescriptor& file_;
  const std::string path_;
  std::string waiting_;
  int64_t written_ = 0;
  uint32_t crc_ = 0;
  absl::Status status_;
};

// Reads what StateWriter wrote. After the first error every call does nothing, and Finish reports it: nothing
// that was read may be used before Finish is OK.
class StateReader {
 public:
  StateReader(const FileDescriptor* file, std::string path);

  template <typename T>
  T Value() {
    static_assert(std::is_arithmetic_v<T>);
    T value = {};
    Bytes(reinterpret_cast<char*>(&value), sizeof(T));
    return value;
  }
  template <typename T>
  void Values(absl::Span<T> values) {
    static_assert(std::is_arithmetic_v<T>);
    Bytes(reinterpret_cast<char*>(values.data()), values.size() * sizeof(T));
  }
  std::string Text();
  // A number of things that take at least `bytes_each` of the file; DataLoss if what is left has no room for
  // them, so that a damaged number takes no memory.
  int64_t Count(int64_t bytes_each);
  // False, and DataLoss, unless so many bytes are left.
  bool CheckRoom(int64_t bytes);
  // The file is none of these.
  void FailAsForeign();
  bool ok() const { return status_.ok(); }

  // DataLoss, naming the file: it is not as it was written.
  absl::Status Finish();

 private:
  void Bytes(char* to, size_t size);
  void Fail(absl::Status status);

  const FileDescriptor& file_;
  const std::string path_;
  int64_t at_ = 0, end_ = 0;  // of the values
  uint32_t crc_ = 0;
  absl::Status status_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_ACCUMULATORS_STATE_FILE_H_
