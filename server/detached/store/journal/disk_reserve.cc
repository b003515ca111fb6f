#include "server/detached/store/journal/disk_reserve.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "server/base/files.h"

namespace spexd {
namespace {

constexpr int64_t kPartBytes = DiskReserve::kBytes / 8;
constexpr int64_t kBytesOfStatBlock = 512;

}  // namespace

DiskReserve::DiskReserve(std::string path)
    : path_(std::move(path)), file_(open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW)) {
  struct stat found {};
  if (file_.get() < 0 || fstat(file_.get(), &found) != 0) return;
  // A copy of the file may have holes.
  const int64_t real = std::min<int64_t>(found.st_size, found.st_blocks * kBytesOfStatBlock);
  held_ = std::min(kBytes, real / kPartBytes * kPartBytes);
}

absl::Status DiskReserve::Fill() {
  MutexLock lock(&mutex_);
  if (held_ == kBytes) return absl::OkStatus();
  if (file_.get() < 0)
    file_ = FileDescriptor(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file_.get() < 0) return DiskError(path_, "cannot be made");
  while (held_ < kBytes) {
    const int failed = posix_fallocate(file_.get(), 0, held_ + kPartBytes);
    if (failed == EINTR) continue;
    if (failed != 0) {
      if (ftruncate(file_.get(), held_) != 0) return DiskError(path_, "cannot be cut");
      errno = failed;
      return DiskError(path_, "has no room, which the journal needs on a full disk");
    }
    held_ += kPartBytes;
  }
  return absl::OkStatus();
}

bool DiskReserve::GiveUpPart() {
  MutexLock lock(&mutex_);
  if (held_ == 0) return false;
  held_ -= kPartBytes;
  return ftruncate(file_.get(), held_) == 0;
}

bool DiskReserve::whole() const {
  MutexLock lock(&mutex_);
  return held_ == kBytes;
}

}  // namespace spexd
