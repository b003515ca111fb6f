// The files of detached jobs.
//
//   FOLDER/lock             held while a server uses the folder
//   FOLDER/jobs/ID/         one job:
//     header, state         see job_record.h
//     image, psf, fibermap, fiberflat, templates, trace_reference
//                           uploads as they came, until the job ends
//     events                results, see event_log_format.h
//   FOLDER/index            what a start need not read in jobs/, see index_file.h
//   FOLDER/new/ID/          a job that is being written: renamed to jobs/ID once it is whole
//   FOLDER/removed/ID/      a job that is being removed
//   FOLDER/quarantine/      what a start found in jobs/ and could not read: spexd never removes it
#ifndef SPEXD_SERVER_DETACHED_STORE_JOBS_FOLDER_H_
#define SPEXD_SERVER_DETACHED_STORE_JOBS_FOLDER_H_

#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/file_descriptor.h"
#include "server/detached/store/stored_job.h"

namespace spexd {

// What a call changed is on disk when it returns OK. Safe to use from many threads, for different jobs at the
// same time. Errors: Unavailable, the disk cannot be read or written; DataLoss, a file is missing or damaged;
// both name the file.
class JobsFolder {
 public:
  // Makes the folder, locks it, and empties new/ and removed/. Unavailable: another server has locked it.
  // FailedPrecondition: it has folders of these names, but was never locked by a server.
  static absl::StatusOr<JobsFolder> Open(const std::string& path);
  // Locks the folder and changes nothing. NotFound: no server ever used it.
  static absl::StatusOr<JobsFolder> OpenToCheck(const std::string& path);

  const std::string& path() const { return path_; }
  std::string EventsPath(const std::string& id) const { return PathOf(id, "events"); }
  std::string InputPath(const std::string& id, const std::string& input) const { return PathOf(id, input); }

  // The names in jobs/.
  absl::StatusOr<std::vector<std::string>> List() const;
  // DataLoss: the job cannot be used. FailedPrecondition: a newer spexd wrote it.
  absl::StatusOr<StoredJob> Read(const std::string& id) const;
  absl::StatusOr<std::string> ReadHeader(const std::string& id) const;
  // DataLoss: an upload is not what came, by its SHA-256. Cancelled: `stop` was requested.
  absl::Status CheckInputs(const StoredJob& job, std::stop_token stop = {}) const;

  // Writes a new job with its uploads to new/. Where that fails, nothing is left.
  absl::Status Write(const StoredJob& job,
                     const std::vector<std::pair<std::string, std::string>>& inputs) const;
  // Moves it to jobs/. After an error it is not there; Discard removes what is left.
  absl::Status Publish(const std::string& id) const;
  // Removes a job that was written and not published, if there is one.
  void Discard(const std::string& id) const;
  // REQUIRES: job.changes is one more than that of the state that was written before.
  absl::Status WriteState(const StoredJob& job) const;

  // Removes the files that a job that has ended does not need.
  void RemoveUnneeded(const StoredJob& job) const;
  // The job is gone, though a loss of power may bring it back until DeleteRemoved has returned.
  absl::Status MoveToRemoved(const std::string& id) const;
  // Deletes jobs that were moved. May take long.
  absl::Status DeleteRemoved(const std::vector<std::string>& ids) const;
  // Moves NAME of jobs/ to quarantine/, and returns its new path.
  absl::StatusOr<std::string> Quarantine(const std::string& name) const;

 private:
  explicit JobsFolder(std::string path) : path_(std::move(path)) {}
  std::string PathOf(const std::string& id, const std::string& file) const;
  std::string NewPath(const std::string& id) const;
  absl::Status Lock(int flags);

  std::string path_;
  FileDescriptor lock_{-1};
};

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_STORE_JOBS_FOLDER_H_
