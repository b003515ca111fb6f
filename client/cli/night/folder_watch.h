// The watch of a folder: a source of the frames that appear in it.
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

// Whether the name is that of a preprocessed frame: preproc-*.fits, .fits.gz or .fits.fz.
bool IsPreprocName(absl::string_view name);

// Makes tasks of the files of a folder. Many threads use it.
class FrameIntake {
 public:
  virtual ~FrameIntake() = default;
  // Returns a task with only the image and the output.
  virtual FrameTask Name(const std::string& path) const = 0;
  // Returns the complete task, which may be `refused`. Errors: the file is not a complete frame, perhaps not
  // yet.
  virtual absl::StatusOr<FrameTask> Open(const std::string& path, const std::stop_token& stop) const = 0;
  virtual std::vector<std::string> Psfs() const = 0;
};

// The times of a watch.
struct WatchTimes {
  using Time = std::chrono::milliseconds;

  Time scan = std::chrono::seconds(1);            // between two scans of the folder
  int scans_of_all = 30;                          // one of so many scans also looks at frames that have ended
  Time settled = std::chrono::milliseconds(500);  // how long a file found by a scan must be unchanged
  // The pauses between two looks at an incomplete file, which double each time.
  Time first_look = std::chrono::milliseconds(500), last_look = std::chrono::seconds(30);
  Time abandoned = std::chrono::minutes(1);  // unchanged for this time, an incomplete file has failed
  // The pauses before a failed frame that may succeed later comes again, which double each time.
  Time first_retry = std::chrono::seconds(30), last_retry = std::chrono::minutes(5);
};

// The frames of a folder, without end: first the existing ones, oldest first, then those that appear or
// change. inotify reports at once what this machine writes. Scans find what other machines write (NFS), and
// lost events. A file is given out when it is a complete frame, and again when it has changed (size, time of
// modification or inode), but not while a caller works on it. A file that stays incomplete is given out as
// refused, and again when it is complete.
class FolderWatch : public FrameSource {
 public:
  // `intake` must outlive the watch. NotFound, PermissionDenied, InvalidArgument: the folder cannot be read.
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

  // OK, or why the watch has ended by itself: the folder is gone or cannot be read.
  absl::Status status() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Clock = std::chrono::steady_clock;

  // The version of a file, by which changes are noticed.
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
    Clock::time_point changed;  // when this version was first seen
    State state = State::kEnded;
    Clock::time_point due;             // kWaiting: when the file is due
    bool again = false;                // kInHand: the file has changed meanwhile
    bool failed = false;               // this version has failed
    bool incomplete = false;           // the file was given out as refused
    WatchTimes::Time look{}, retry{};  // the next pauses
  };

  FolderWatch(std::string folder, const FrameIntake* intake, const WatchTimes& times);

  std::string PathOf(const std::string& name) const;
  // Returns the current version; nullopt: there is no such regular file.
  std::optional<Version> VersionOf(const std::string& name) const;
  // Looks at a file that was found at `now`.
  void Saw(const std::string& name, FoundBy by, Clock::time_point now) ABSL_LOCKS_EXCLUDED(mutex_);
  void Wait(const std::string& name, File* file, Clock::time_point until)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for a file that is due and returns its name; nullopt: a stop was requested, or the watch has ended.
  std::optional<std::string> Take(const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the frame of a file that was taken; nullopt: it must wait, or is gone.
  std::optional<NumberedFrame> Give(const std::string& name, const std::stop_token& stop)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Runs on thread_.
  void Watch();
  // Reads events. Returns whether some were lost.
  bool ReadEvents() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Scan(FoundBy by, bool all) ABSL_LOCKS_EXCLUDED(mutex_);
  void End(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string folder_;
  const FrameIntake* const intake_;
  const WatchTimes times_;
  FileDescriptor events_;  // inotify; invalid: scans find everything
  FileDescriptor ends_;    // eventfd, readable when thread_ must end
  Mutex mutex_;
  CondVar changed_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  size_t numbers_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, File> files_ ABSL_GUARDED_BY(mutex_);  // by name
  // The waiting files: when each is due, its time of modification, its name.
  std::set<std::tuple<Clock::time_point, int64_t, std::string>> queue_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_NIGHT_FOLDER_WATCH_H_
