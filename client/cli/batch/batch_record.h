// The record of a batch, which says what earlier runs have made. Results whose inputs, settings and files are
// unchanged are kept.
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

// Returns the SHA-256 of a file's bytes. NotFound: it cannot be read. InvalidArgument: it is a pipe.
absl::StatusOr<std::string> FileSha256(const std::string& path);

// A record in each folder of results, which any number of processes share. A result is a set of files that
// are made together. It is done if its record has the current description of its inputs and settings and the
// current SHA-256 of its files. Safe to use from many threads.
class BatchRecord {
 public:
  enum class State { kToDo, kDone, kElsewhere };
  struct Claim {
    State state = State::kToDo;
    nlohmann::json made_of;  // the description of inputs and settings
    nlohmann::json record;   // kDone: the result's record
  };

  // Opens or creates the record in the folder of a file, and looks for files that killed processes left
  // there. The other functions do so, too, for a new folder. Errors as in RecordFile::Open.
  absl::Status OpenBeside(const std::string& path);

  // Claims a result. kToDo: the caller has it until End. kElsewhere: another process has it; the caller may
  // ask again. `describe` returns the description; it is called before the work, so that the next run notices
  // inputs that change meanwhile. Errors of the record and of `describe`.
  absl::StatusOr<Claim> Begin(const NamedFiles& files,
                              const std::function<absl::StatusOr<nlohmann::json>()>& describe);
  // Adds the record of a result whose files were written, with `measured`, and returns the record when it is
  // on disk. A file of Begin may be missing if measured["products"] has its "error".
  absl::StatusOr<nlohmann::json> Done(const NamedFiles& files, const nlohmann::json& made_of,
                                      const nlohmann::json& measured);
  void End(const NamedFiles& files);

  // Returns the SHA-256 of a frame's image. If another process has recorded the frame since this process
  // opened the record, and the image is not newer, returns the recorded value, so that processes that share a
  // list do not read each other's images.
  absl::StatusOr<std::string> ImageSha256(const FrameTask& task);

  // Returns the SHA-256 of a file that several results may share, which is read once; a name with
  // client::kPsfHashPrefix is returned unchanged.
  absl::StatusOr<std::string> SharedSha256(const std::string& path);

 private:
  struct Folder {
    std::unique_ptr<RecordFile> file;
    std::multimap<std::string, std::string> leftovers;  // temporary files of killed processes, by target
  };

  absl::StatusOr<const Folder*> FolderOf(const std::string& path);
  absl::StatusOr<Claim> Look(const NamedFiles& files, RecordFile* file,
                             const std::function<absl::StatusOr<nlohmann::json>()>& describe);
  // Removes the temporary files that killed processes left for the files, which are claimed.
  absl::Status RemoveLeftovers(const NamedFiles& files);

  Mutex mutex_;
  std::map<std::string, Folder> folders_ ABSL_GUARDED_BY(mutex_);  // elements do not change
  std::map<std::string, std::string> shared_ ABSL_GUARDED_BY(mutex_);
};

// Returns the description of a frame with its products: checksums of inputs, and settings. `fiberflat`: "":
// none.
absl::StatusOr<nlohmann::json> DescribeTask(const FrameTask& task, const std::string& fiberflat,
                                            const ProductInputs& inputs, BatchRecord* record);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_BATCH_BATCH_RECORD_H_
