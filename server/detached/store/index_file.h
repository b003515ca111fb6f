// FOLDER/index: the jobs that have ended, as the store knows them, so that a start need not read their files.
// The index is only a cache: without it, a start reads the files of all jobs.
//
// The first line is the length of the file in bytes, as 20 digits, so that missing lines are noticed. Each
// other line is the record of a job (see IndexRecord). The last line of a job counts. If it says that the job
// has not ended, the job must be read from its files. The store adds such a line before it changes the files
// of a listed job, so that the index is true for every job that has a folder in jobs/.
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

// An open index, or a new one that Create makes as another file and Publish puts in place. Not safe to use
// from many threads at once. Errors: Unavailable if the disk cannot be read or written; the message names the
// file.
class IndexFile {
 public:
  // No index.
  IndexFile() = default;
  // Opens the folder's index. Sets `jobs` to the jobs whose files need not be read; all have ended and none
  // has its header. If the index cannot be used, removes it, sets `why` to what is wrong with it, and returns
  // no index. `why` is OK if there was no index.
  static absl::StatusOr<IndexFile> Open(const std::string& folder, std::vector<StoredJob>* jobs,
                                        absl::Status* why);
  // Creates a new, empty index, which is not yet the folder's.
  static absl::StatusOr<IndexFile> Create(const std::string& folder);
  // Returns the jobs that Open would return, without changing anything; none without an index. DataLoss: the
  // index cannot be used.
  static absl::StatusOr<std::vector<StoredJob>> Listed(const std::string& folder);
  // Removes an index of Create that was not published, if there is one.
  static void Discard(const std::string& folder);

  bool exists() const { return !path_.empty(); }
  // Adds records of jobs. They are durable after Sync, Publish or Forget.
  absl::Status Add(const std::vector<StoredJob>& jobs);
  absl::Status Sync();  // writes the length, too
  // Makes this the folder's index in place of `before`. After an error, the folder has no index, or `before`
  // removes it at its next Forget.
  absl::Status Publish(IndexFile* before);
  // Marks jobs as to be read from their files. If this cannot be written, removes the index. After an error,
  // the files of these jobs must not be changed.
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
