// FOLDER/index: a copy of what the store knows of jobs that have ended, so that a start need not read the
// files of each. It is only a cache: a start without it reads them all.
//
// The first line is the file's length in bytes, 20 digits, so that no line can be missing unnoticed. Each
// other line is a record of a job, see IndexRecord; a later line of a job replaces an earlier one. A job that
// has not ended by its last line is to be read from its files. Before the store changes the files of a job
// that the index lists, it adds such a line, so that what the index says of a job is true as long as the job
// has a folder in jobs/.
#ifndef SPEXD_SERVER_DETACHED_STORE_INDEX_FILE_H_
#define SPEXD_SERVER_DETACHED_STORE_INDEX_FILE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/file_descriptor.h"
#include "server/detached/store/stored_job.h"

namespace spexd {

// What Create makes is another file, which becomes the index by Publish. Not safe to use from many threads.
// Errors: Unavailable, the disk cannot be read or written; the message names the file.
class IndexFile {
 public:
  // No index.
  IndexFile() = default;
  // Opens the folder's index. `jobs`: those whose files need not be read, without headers; all have ended. An
  // index that cannot be used is removed, and no index is returned; `why` then tells what is wrong with it,
  // and is OK where there was none.
  static absl::StatusOr<IndexFile> Open(const std::string& folder, std::vector<StoredJob>* jobs,
                                        absl::Status* why);
  static absl::StatusOr<IndexFile> Create(const std::string& folder);
  // The jobs that Open would return, none without an index; changes nothing. DataLoss: it cannot be used.
  static absl::StatusOr<std::vector<StoredJob>> Listed(const std::string& folder);
  // Removes what Create made and Publish did not take, if there is any.
  static void Discard(const std::string& folder);

  bool exists() const { return !path_.empty(); }
  // Lists jobs. They are on disk once Sync, Publish or Forget returned.
  absl::Status Add(const std::vector<StoredJob>& jobs);
  absl::Status Sync();  // writes the length, too
  // Makes it the folder's index in place of `before`. After an error the folder has none, or `before` removes
  // it at its next Forget.
  absl::Status Publish(IndexFile* before);
  // These jobs are to be read from their files. Removes the index where that cannot be written. After an
  // error the jobs must not be changed.
  absl::Status Forget(const std::vector<std::string>& ids);

 private:
  IndexFile(const std::string& folder, std::string path, FileDescriptor file)
      : folder_(folder), path_(std::move(path)), file_(std::move(file)) {}
  absl::Status Read(std::vector<StoredJob>* jobs);
  absl::Status Remove();

  std::string folder_, path_;
  FileDescriptor file_{-1};
  int64_t bytes_ = 0;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_STORE_INDEX_FILE_H_
