// Frames that appear in a folder, as they appear.
#ifndef SPEXD_CLIENT_CLI_NIGHT_FOLDER_WATCH_H_
#define SPEXD_CLIENT_CLI_NIGHT_FOLDER_WATCH_H_

#include <sys/stat.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/batch/frame_task.h"
#include "core/base/file_descriptor.h"
#include "core/base/threads/mutex.h"

namespace spexd::cli {

// Whether a file of this name is taken for a preprocessed frame: preproc-*.fits, .fits.gz or .fits.fz.
bool IsPreprocName(absl::string_view name);

// What is to be done with the files of a folder. Used from many threads.
class FrameIntake {
 public:
  virtual ~FrameIntake() = default;
  // The image and the output.
  virtual FrameTask Name(const std::string& path) const = 0;
  // The whole task, which may be `refused`. An error: the file is no whole frame, perhaps not yet.
  virtual absl::StatusOr<FrameTask> Open(const std::string& path, const std::stop_token& stop) const = 0;
  virtual std::vector<std::string> Psfs() const = 0;
};

// The pauses of a watch.
struct WatchTimes {
  using Time = std::chrono::milliseconds;

  Time scan = std::chrono::seconds(1);            // between two looks at the folder
  int scans_of_all = 30;                          // every so many of them also look at frames that have ended
  Time settled = std::chrono::milliseconds(500);  // unchanged, a file that only a look at the folder found
  // Between two looks at a file that is not whole: twice as long each time.
  Time first_look = std::chrono::milliseconds(500), last_look = std::chrono::seconds(30);
  Time abandoned = std::chrono::minutes(1);  // unchanged, a file that is not whole has failed
  // After which a frame comes again that may succeed then: twice as long each time.
  Time first_retry = std::chrono::seconds(30), last_retry = std::chrono::minutes(5);
};

// The frames of a folder, without end: those that are there, the oldest first, and those that appear or
// change, in that order. inotify tells at once what this machine writes; a look at the folder finds what
// others write (NFS), and what was not told of. A file is given out when it is a whole frame, and again after
// it has changed (size, time of modification or inode), once nobody has it any more. One that stays
// incomplete is given out as refused, and again once it is whole.
class FolderWatch : public FrameSource {
 public:
  // NotFound, PermissionDenied or InvalidArgument if the folder cannot be read. `intake` must live as long.
  static absl::StatusOr<std::unique_ptr<FolderWatch>> Open(const std::string& folder,
                                                           const FrameIntake* intake,
                                                           const WatchTimes& times = {});
  ~FolderWatch() override;

  std::optional<NumberedFrame> Next(const std::stop_token& stop) override ABSL_LOCKS_EXCLUDED(mutex_);
  void Later(NumberedFrame frame) override ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<std::chrono::seconds> Ended(const NumberedFrame& frame, bool may_pass) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<NumberedFrame> Rest() override ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<size_t> Count() const override { return std::nullopt; }
  std::vector<std::string> Psfs() const override { return intake_->Psfs(); }

  // OK, or why the watch has ended by itself: the folder is gone.
  absl::Status status() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Clock = std::chrono::steady_clock;

  // What a file is known by.
  struct Version {
    uint64_t inode = 0;
    int64_t bytes = 0, modified = 0;  // nanoseconds

    bool operator==(const Version&) const = default;
  };
  enum class State { kWaiting, kInHand, kEnded };
  enum class FoundBy { kStart, kScan, kEvent };

  struct File {
    size_t number = 0;
    Version version;
    Clock::time_point changed;  // when that was seen first
    State state = State::kEnded;
    Clock::time_point due;             // of one that waits
    bool again = false;                // it has changed while somebody has it
    bool failed = false;               // this version has
    bool incomplete = false;           // it was given out as refused
    WatchTimes::Time look{}, retry{};  // the next pauses
  };

  FolderWatch(std::string folder, const FrameIntake* intake, const WatchTimes& times);

  std::string PathOf(const std::string& name) const;
  // nullopt: there is no such regular file.
  std::optional<Version> VersionOf(const std::string& name) const;
  // Looks at a file that was found at that time.
  void Saw(const std::string& name, FoundBy by, Clock::time_point now) ABSL_LOCKS_EXCLUDED(mutex_);
  void Wait(const std::string& name, File* file, Clock::time_point until)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The name of a file that is due; waits for one. nullopt: a stop is requested, or the folder is gone.
  std::optional<std::string> Take(const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mutex_);
  // The frame of a file that was taken; nullopt if it is to wait, or is gone.
  std::optional<NumberedFrame> Give(const std::string& name, const std::stop_token& stop)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The work of thread_.
  void Watch();
  // Whether events were lost.
  bool ReadEvents() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Scan(FoundBy by, bool all) ABSL_LOCKS_EXCLUDED(mutex_);
  void End(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string folder_;
  const FrameIntake* const intake_;
  const WatchTimes times_;
  FileDescriptor events_;  // inotify; none: looks at the folder find everything
  FileDescriptor ends_;    // eventfd, readable once thread_ is to end
  Mutex mutex_;
  CondVar changed_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  size_t numbers_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, File> files_ ABSL_GUARDED_BY(mutex_);  // by name
  // Those that wait: when each is due, when it was modified, its name.
  std::set<std::tuple<Clock::time_point, int64_t, std::string>> queue_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_NIGHT_FOLDER_WATCH_H_
