// The file of a folder's record: one JSON object per line, shared by any number of processes.
#ifndef SPEXD_CLIENT_CLI_BATCH_RECORD_FILE_H_
#define SPEXD_CLIENT_CLI_BATCH_RECORD_FILE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "core/base/file_descriptor.h"
#include "core/base/threads/mutex.h"

namespace spexd::cli {

inline constexpr char kRecordName[] = "spex-night.jsonl";

// Lines are appended whole, under a lock, and are on disk when Add returns. A partial line of a killed
// process is no record, and the next record begins a new line. A claim is a lock on a byte far beyond the
// file's end, which the system releases when the process ends in any way. Safe to use from many threads.
class RecordFile {
 public:
  // Opens or creates the record in `folder`.
  static absl::StatusOr<std::unique_ptr<RecordFile>> Open(const std::string& folder);

  // Claims an output among processes and threads. Returns false if another one has it.
  absl::StatusOr<bool> Claim(const std::string& output);
  void Release(const std::string& output);

  // Returns the last record of an output that any process has written; nullopt: there is none.
  absl::StatusOr<std::optional<nlohmann::json>> Find(const std::string& output);
  absl::Status Add(const nlohmann::json& record);
  // Whether the record that Find returned was added after the file was opened, and only by other processes.
  bool IsOfOthers(const std::string& output) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  RecordFile(std::string path, FileDescriptor file, int64_t size)
      : path_(std::move(path)), file_(std::move(file)), size_when_opened_(size) {}

  absl::StatusOr<bool> Lock(int64_t byte, short type, bool wait) const;
  // Appends a line at the end of the file, after a newline if the last line is partial.
  absl::Status Append(const std::string& line);
  // Reads the lines that were added since the last call.
  absl::Status Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Failure(const char* doing) const;

  const std::string path_;
  const FileDescriptor file_;
  const int64_t size_when_opened_;
  mutable Mutex mutex_;
  std::set<int64_t> claimed_ ABSL_GUARDED_BY(mutex_);  // bytes; file locks exclude only processes
  int64_t read_ ABSL_GUARDED_BY(mutex_) = 0;           // bytes that were read
  std::map<std::string, nlohmann::json> records_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> own_ ABSL_GUARDED_BY(mutex_);  // outputs with records of this process
  std::set<std::string> new_ ABSL_GUARDED_BY(mutex_);  // outputs with records since the file was opened
};

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_BATCH_RECORD_FILE_H_
