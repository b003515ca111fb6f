// The files of detached jobs.
//
//   FOLDER/lock             locked while a server uses the folder
//   FOLDER/jobs/ID/         one job:
//     header, state         see job_record.h
//     image, psf, fibermap, fiberflat, templates, trace_reference
//                           the uploads, until the job ends
//     events                the results, see event_log_format.h
//   FOLDER/index            a cache of ended jobs, see index_file.h
//   FOLDER/new/ID/          a job that is being written; renamed to jobs/ID when it is complete
//   FOLDER/removed/ID/      a job that is being removed
//   FOLDER/quarantine/      entries of jobs/ that a start could not read; spexd never removes them
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

// Changes are durable when a call returns OK. Safe to use from many threads, for different jobs at the same
// time. Errors name the file. Unavailable: the disk cannot be read or written. DataLoss: a file is missing or
// damaged.
class JobsFolder {
 public:
  // Creates the folder if necessary, locks it, and empties new/ and removed/. Unavailable: another server has
  // locked it. FailedPrecondition: it has folders of these names, but no server ever locked it.
  static absl::StatusOr<JobsFolder> Open(const std::string& path);
  // Locks the folder without changing anything. NotFound: no server ever used it.
  static absl::StatusOr<JobsFolder> OpenToCheck(const std::string& path);

  const std::string& path() const { return path_; }
  std::string EventsPath(const std::string& id) const { return PathOf(id, "events"); }
  std::string InputPath(const std::string& id, const std::string& input) const { return PathOf(id, input); }

  // Returns the names of the entries of jobs/.
  absl::StatusOr<std::vector<std::string>> List() const;
  // Reads a job. DataLoss: its header or state is damaged. FailedPrecondition: a newer version of spexd wrote
  // it.
  absl::StatusOr<StoredJob> Read(const std::string& id) const;
  absl::StatusOr<std::string> ReadHeader(const std::string& id) const;
  // Checks the SHA-256 of the uploads. DataLoss: one is damaged or missing. Cancelled: a stop was requested.
  absl::Status CheckInputs(const StoredJob& job, std::stop_token stop = {}) const;

  // Writes a new job with its uploads to new/. After an error, nothing is left of it.
  absl::Status Write(const StoredJob& job,
                     const std::vector<std::pair<std::string, std::string>>& inputs) const;
  // Moves a job from new/ to jobs/. After an error it is not in jobs/; Discard removes the rest.
  absl::Status Publish(const std::string& id) const;
  // Removes a job that was written but not published, if there is one.
  void Discard(const std::string& id) const;
  // Writes the job's state. REQUIRES: job.changes is larger by one than in the state that was written before.
  absl::Status WriteState(const StoredJob& job) const;

  // Removes the files that an ended job does not need.
  void RemoveUnneeded(const StoredJob& job) const;
  // Moves a job to removed/. Until DeleteRemoved returns, a loss of power may bring it back.
  absl::Status MoveToRemoved(const std::string& id) const;
  // Deletes the jobs in removed/. May take long.
  absl::Status DeleteRemoved(const std::vector<std::string>& ids) const;
  // Moves the entry `name` of jobs/ to quarantine/ and returns its new path.
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
