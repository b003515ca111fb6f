// Which results of a batch are there already: an earlier run's files are kept where inputs, settings and
// files are the same.
#ifndef SPEXD_CLIENT_CLI_BATCH_BATCH_RECORD_H_
#define SPEXD_CLIENT_CLI_BATCH_BATCH_RECORD_H_

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/batch/frame_task.h"
#include "client/cli/batch/record_file.h"
#include "core/base/threads/mutex.h"

namespace spexd::cli {

// SHA-256 of a file's bytes. NotFound if it cannot be read, InvalidArgument if it is a pipe.
absl::StatusOr<std::string> FileSha256(const std::string& path);

// A record in each folder that results go to, which any number of processes share. A result is a set of files
// that are made together; it is done if its record has the description of what it is made of as it is now,
// and the SHA-256 of its files as they are now. Safe to use from many threads.
class BatchRecord {
 public:
  enum class State { kToDo, kDone, kElsewhere };
  struct Claim {
    State state = State::kToDo;
    nlohmann::json made_of;  // the description
    nlohmann::json record;   // of one that is done
  };

  // Opens or makes the record in the folder of a file, and looks for what killed processes left there; the
  // others do so when they meet a new folder. Errors as RecordFile::Open.
  absl::Status OpenBeside(const std::string& path);

  // kToDo: the result is the caller's until End. kElsewhere: another process is at it; it may be asked for
  // again. `describe` tells what the result is made of; it is called before the work, so that inputs that
  // change meanwhile are seen the next time. Errors of the record and of `describe`.
  absl::StatusOr<Claim> Begin(const NamedFiles& files,
                              const std::function<absl::StatusOr<nlohmann::json>()>& describe);
  // The files were written: adds a record, with what was `measured`, and returns it once it is on disk. A
  // file that Begin named may be missing if measured["products"] has its "error".
  absl::StatusOr<nlohmann::json> Done(const NamedFiles& files, const nlohmann::json& made_of,
                                      const nlohmann::json& measured);
  void End(const NamedFiles& files);

  // The checksum of a frame's image: where another process has recorded the frame since this one looks at the
  // record, and the image is not newer, the checksum that is recorded. Processes that share a list need not
  // read what the others have just read.
  absl::StatusOr<std::string> ImageSha256(const FrameTask& task);

  // The checksum of a file that several results may share, read once; a client::kPsfHashPrefix name as it is.
  absl::StatusOr<std::string> SharedSha256(const std::string& path);

 private:
  struct Folder {
    std::unique_ptr<RecordFile> file;
    std::multimap<std::string, std::string> leftovers;  // as Open found them, by the file they were to become
  };

  absl::StatusOr<const Folder*> FolderOf(const std::string& path);
  absl::StatusOr<Claim> Look(const NamedFiles& files, RecordFile* file,
                             const std::function<absl::StatusOr<nlohmann::json>()>& describe);
  // Removes what processes that were killed left beside files that are claimed.
  absl::Status RemoveLeftovers(const NamedFiles& files);

  Mutex mutex_;
  std::map<std::string, Folder> folders_ ABSL_GUARDED_BY(mutex_);  // elements stay as they are
  std::map<std::string, std::string> shared_ ABSL_GUARDED_BY(mutex_);
};

// What the frame of `task` and its products are made of: checksums and settings. `fiberflat`: "" for none.
absl::StatusOr<nlohmann::json> DescribeTask(const FrameTask& task, const std::string& fiberflat,
                                            const ProductInputs& inputs, BatchRecord* record);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_BATCH_BATCH_RECORD_H_
