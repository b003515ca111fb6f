// Which frames of a night are done: an earlier run's results are kept where inputs, settings and files are
// the same.
#ifndef SPEXD_CLIENT_CLI_NIGHT_NIGHT_RECORD_H_
#define SPEXD_CLIENT_CLI_NIGHT_NIGHT_RECORD_H_

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "client/cli/batch/frame_batch.h"
#include "client/cli/night/night_list.h"
#include "client/cli/night/record_file.h"

namespace spexd::cli {

// What became of one frame.
struct NightResult {
  enum class State { kNotReached, kWritten, kSkipped, kFailed };
  State state = State::kNotReached;
  nlohmann::json record;  // of one that was written or skipped
  std::string error;
};

// SHA-256 of a file's bytes. NotFound if it cannot be read.
absl::StatusOr<std::string> FileSha256(const std::string& path);

// A record in each folder that an output goes to. A frame is done if its record has the SHA-256 of the inputs
// as they are now, the same settings, and the SHA-256 of the files as they are now.
class NightRecord : public BatchRecord {
 public:
  // `rows` and `tasks` belong together, and outlive this. Errors as RecordFile::Open.
  static absl::StatusOr<std::unique_ptr<NightRecord>> Open(const std::vector<NightRow>& rows,
                                                           const std::vector<FrameTask>& tasks);

  absl::StatusOr<State> Begin(size_t task) override;
  absl::Status Done(size_t task, const JobOutcome& outcome) override;
  void Failed(size_t task, const absl::Status& status) override;
  void End(size_t task) override;

  // The results in the order of the list. Call when no batch runs.
  const std::vector<NightResult>& results() const { return results_; }

 private:
  NightRecord(const std::vector<NightRow>& rows, const std::vector<FrameTask>& tasks)
      : rows_(rows), tasks_(tasks), results_(tasks.size()), made_of_(tasks.size()) {}

  RecordFile& FileOf(size_t task) const;
  std::string NameOf(size_t task) const;  // of the output, in its folder
  // What the result is made of: checksums and settings.
  absl::StatusOr<nlohmann::json> Describe(size_t task);
  // The checksum of a file that several frames may share: read once.
  absl::StatusOr<std::string> SharedSha256(const std::string& path);
  absl::StatusOr<State> Look(size_t task);
  // Removes what processes that were killed left beside the task's files. The task must be claimed.
  void RemoveLeftovers(size_t task) const;

  const std::vector<NightRow>& rows_;
  const std::vector<FrameTask>& tasks_;
  std::map<std::string, std::unique_ptr<RecordFile>> files_;  // by folder; not changed after Open
  std::multimap<std::string, std::string> leftovers_;         // as Open found them, by the path of the output
  std::vector<NightResult> results_;                          // each element is its task's thread's
  std::vector<nlohmann::json> made_of_;                       // as results_
  Mutex mutex_;
  std::map<std::string, std::string> shared_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_NIGHT_NIGHT_RECORD_H_
