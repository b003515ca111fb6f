#include "client/cli/night/folder_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/base/threads/deadline.h"
#include "core/base/threads/guard.h"

namespace spexd::cli {
namespace {

constexpr uint32_t kGone = IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED;

absl::Status FolderError(const std::string& folder, const std::error_code& error) {
  const std::string text = absl::StrCat("--watch: ", folder, ": ", error.message());
  if (error == std::errc::no_such_file_or_directory) return absl::NotFoundError(text);
  if (error == std::errc::permission_denied) return absl::PermissionDeniedError(text);
  return absl::InvalidArgumentError(text);
}

// Whether the folder does not exist, and is not only unreachable for a time.
bool IsGone(const absl::Status& status) { return absl::IsNotFound(status); }

}  // namespace

bool IsPreprocName(absl::string_view name) {
  return absl::StartsWith(name, "preproc-") &&
         (absl::EndsWith(name, ".fits") || absl::EndsWith(name, ".fits.gz") ||
          absl::EndsWith(name, ".fits.fz"));
}

FolderWatch::FolderWatch(std::string folder, const FrameIntake* intake, const WatchTimes& times)
    : folder_(std::move(folder)),
      intake_(intake),
      times_(times),
      events_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)),
      ends_(eventfd(0, EFD_CLOEXEC)) {}

absl::StatusOr<std::unique_ptr<FolderWatch>> FolderWatch::Open(const std::string& folder,
                                                               const FrameIntake* intake,
                                                               const WatchTimes& times) {
  std::unique_ptr<FolderWatch> watch(new FolderWatch(folder, intake, times));
  if (watch->ends_.get() < 0) {
    return absl::ResourceExhaustedError(absl::StrCat("--watch: eventfd: ", std::strerror(errno)));
  }
  // Events begin before the first scan, so that nothing is missed between them. Without inotify, scans find
  // everything.
  constexpr uint32_t kEvents = IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
  if (watch->events_.get() >= 0 && inotify_add_watch(watch->events_.get(), folder.c_str(), kEvents) < 0) {
    watch->events_ = FileDescriptor(-1);
  }
  SPEXD_RETURN_IF_ERROR(watch->Scan(FoundBy::kStart, /*all=*/true));
  watch->thread_ = std::thread([watch = watch.get()] {
    absl::Status status = CatchExceptions([watch] {
      watch->Watch();
      return absl::OkStatus();
    });
    if (!status.ok()) watch->End(std::move(status));
  });
  return watch;
}

FolderWatch::~FolderWatch() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(ends_.get(), &one, sizeof(one));
  thread_.join();
}

std::string FolderWatch::PathOf(const std::string& name) const {
  return (std::filesystem::path(folder_) / name).string();
}

std::optional<FolderWatch::Version> FolderWatch::VersionOf(const std::string& name) const {
  struct stat info;
  if (stat(PathOf(name).c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return Version{info.st_ino, info.st_size,
                 int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec};
}

void FolderWatch::Wait(const std::string& name, File* file, Clock::time_point until) {
  queue_.erase({file->due, file->version.modified, name});
  file->state = State::kWaiting;
  file->due = until;
  queue_.emplace(until, file->version.modified, name);
  changed_.NotifyAll();
}

void FolderWatch::Saw(const std::string& name, FoundBy by, Clock::time_point now) {
  const std::optional<Version> version = VersionOf(name);
  if (!version.has_value()) return;
  // An event means that the writer has closed or renamed the file. A file that a scan found may still be
  // written.
  const Clock::time_point due = by == FoundBy::kScan ? now + times_.settled : now;
  const MutexLock lock(&mutex_);
  const auto [at, is_new] = files_.try_emplace(name);
  File& file = at->second;
  if (is_new) file.number = numbers_++;
  if (!is_new && file.version == *version) {
    // An event of a file that a scan has found before makes it due earlier.
    const bool early = by == FoundBy::kEvent && file.state == State::kWaiting && !file.failed;
    if (early && file.due > due) Wait(name, &file, due);
    return;
  }
  if (file.state == State::kWaiting) queue_.erase({file.due, file.version.modified, name});
  file.version = *version;
  file.changed = now;
  file.failed = false;
  file.look = times_.first_look;
  file.retry = times_.first_retry;
  if (file.state == State::kInHand) {
    file.again = true;
  } else {
    Wait(name, &file, due);
  }
}

std::optional<std::string> FolderWatch::Take(const std::stop_token& stop) {
  const WakeOnStop wake(stop, &mutex_, &changed_);
  const MutexLock lock(&mutex_);
  while (!stop.stop_requested() && status_.ok()) {
    if (queue_.empty()) {
      changed_.Wait(&mutex_);
      continue;
    }
    const Clock::time_point due = std::get<Clock::time_point>(*queue_.begin());
    if (due > Clock::now()) {
      changed_.WaitUntil(&mutex_, due);
      continue;
    }
    std::string name = std::get<std::string>(*queue_.begin());
    queue_.erase(queue_.begin());
    files_[name].state = State::kInHand;
    return name;
  }
  return std::nullopt;
}

std::optional<NumberedFrame> FolderWatch::Give(const std::string& name, const std::stop_token& stop) {
  std::optional<Version> version = VersionOf(name);
  absl::StatusOr<FrameTask> task = absl::NotFoundError("");
  if (version.has_value()) {
    task = CatchExceptions([&] { return intake_->Open(PathOf(name), stop); });
    version = VersionOf(name);  // again, to notice a file that changed meanwhile
  }
  const Clock::time_point now = Clock::now();
  const MutexLock lock(&mutex_);
  File& file = files_[name];
  if (!version.has_value() && !file.again) {
    files_.erase(name);
    return std::nullopt;
  }
  if (!file.again && *version != file.version) {  // the file is still being written
    file.version = *version;
    file.changed = now;
    file.failed = false;
    Wait(name, &file, now + times_.settled);
    return std::nullopt;
  }
  if (std::exchange(file.again, false) || stop.stop_requested()) {
    Wait(name, &file, now);
    return std::nullopt;
  }
  if (task.ok()) return NumberedFrame{file.number, *std::move(task)};
  if (!file.failed && now - file.changed >= times_.abandoned) {
    file.failed = file.incomplete = true;
    FrameTask refused = intake_->Name(PathOf(name));
    refused.refused = absl::Status(
        task.status().code(),
        absl::StrFormat(
            "%s; it is no whole frame, and has not changed for %d s; it is extracted once it is one",
            task.status().message(), times_.abandoned / std::chrono::seconds(1)));
    return NumberedFrame{file.number, std::move(refused)};
  }
  Wait(name, &file, now + file.look);
  file.look = std::min(2 * file.look, times_.last_look);
  return std::nullopt;
}

std::optional<NumberedFrame> FolderWatch::Next(const std::stop_token& stop) {
  while (const std::optional<std::string> name = Take(stop)) {
    if (std::optional<NumberedFrame> frame = Give(*name, stop)) return frame;
  }
  return std::nullopt;
}

void FolderWatch::Later(NumberedFrame frame) {
  const std::string name = std::filesystem::path(frame.task.job.image).filename().string();
  const MutexLock lock(&mutex_);
  File& file = files_[name];
  file.again = false;
  Wait(name, &file, Clock::now() + kLookAgain);
}

std::optional<std::chrono::seconds> FolderWatch::Ended(const NumberedFrame& frame, bool may_pass) {
  const std::string name = std::filesystem::path(frame.task.job.image).filename().string();
  const Clock::time_point now = Clock::now();
  const MutexLock lock(&mutex_);
  File& file = files_[name];
  if (file.state != State::kInHand) return std::nullopt;
  const bool incomplete = std::exchange(file.incomplete, false);
  if (std::exchange(file.again, false)) {
    Wait(name, &file, now);
    return std::nullopt;
  }
  if (incomplete) {
    Wait(name, &file, now + file.look);
    return std::nullopt;
  }
  if (!may_pass) {
    file.state = State::kEnded;
    file.retry = times_.first_retry;
    return std::nullopt;
  }
  file.failed = true;
  const WatchTimes::Time pause = std::exchange(file.retry, std::min(2 * file.retry, times_.last_retry));
  Wait(name, &file, now + pause);
  return std::chrono::ceil<std::chrono::seconds>(pause);
}

std::vector<NumberedFrame> FolderWatch::Rest() {
  const MutexLock lock(&mutex_);
  std::vector<NumberedFrame> rest;
  for (const auto& [name, file] : files_) {
    if (file.state != State::kWaiting || file.failed) continue;
    rest.push_back({file.number, intake_->Name(PathOf(name))});
  }
  return rest;
}

absl::Status FolderWatch::status() {
  const MutexLock lock(&mutex_);
  return status_;
}

void FolderWatch::End(absl::Status status) {
  const MutexLock lock(&mutex_);
  status_.Update(std::move(status));
  changed_.NotifyAll();
}

absl::Status FolderWatch::Scan(FoundBy by, bool all) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entries(folder_, error);
  for (const std::filesystem::directory_iterator end; !error && entries != end; entries.increment(error)) {
    std::string name = entries->path().filename().string();
    if (IsPreprocName(name)) names.push_back(std::move(name));
  }
  if (error) return FolderError(folder_, error);
  if (!all) {
    const MutexLock lock(&mutex_);
    std::erase_if(names, [this](const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      const auto known = files_.find(name);
      return known != files_.end() && known->second.state == State::kEnded;
    });
  }
  const Clock::time_point now = Clock::now();
  for (const std::string& name : names) Saw(name, by, now);
  return absl::OkStatus();
}

bool FolderWatch::ReadEvents() {
  bool lost = false;
  alignas(inotify_event) char bytes[64 * (sizeof(inotify_event) + NAME_MAX + 1)];
  while (true) {
    const ssize_t count = read(events_.get(), bytes, sizeof(bytes));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return lost;
    for (const char* at = bytes; at < bytes + count;) {
      const auto* const event = reinterpret_cast<const inotify_event*>(at);
      at += sizeof(inotify_event) + event->len;
      lost = lost || (event->mask & IN_Q_OVERFLOW) != 0;
      if ((event->mask & kGone) != 0) {
        End(absl::NotFoundError(
            absl::StrCat("--watch: ", folder_, " was removed or renamed; the watch has ended")));
        return false;
      }
      if (event->len > 0 && IsPreprocName(event->name)) Saw(event->name, FoundBy::kEvent, Clock::now());
    }
  }
}

void FolderWatch::Watch() {
  Clock::time_point next = Clock::now() + times_.scan, readable = Clock::now();
  int scans = 0;
  while (status().ok()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
    pollfd wait[2] = {{events_.get(), POLLIN, 0}, {ends_.get(), POLLIN, 0}};
    if (poll(wait, 2, static_cast<int>(std::max<int64_t>(left, 0))) < 0 && errno != EINTR) {
      return End(absl::InternalError(absl::StrCat("--watch: poll: ", std::strerror(errno))));
    }
    if (wait[1].revents != 0) return;
    const bool lost = wait[0].revents != 0 && ReadEvents();
    if (!lost && Clock::now() < next) continue;
    const absl::Status scanned = Scan(FoundBy::kScan, lost || ++scans % times_.scans_of_all == 0);
    if (scanned.ok()) readable = Clock::now();
    // A network file system may be unreachable for a time.
    if (!scanned.ok() && (IsGone(scanned) || Clock::now() - readable >= times_.abandoned)) {
      return End(scanned);
    }
    next = Clock::now() + times_.scan;
  }
}

}  // namespace spexd::cli
