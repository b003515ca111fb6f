#include "client/cli/batch/record_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/digest/sha256.h"
#include "core/base/status_macros.h"

namespace spexd::cli {
namespace {

// The positions of locks, which are beyond the end of any file.
constexpr int64_t kWriting = int64_t{1} << 62;
constexpr int64_t kFirstClaim = int64_t{1} << 61;

// Returns the byte of an output's claim. If two outputs have the same byte, which is very unlikely, one waits
// for the other.
int64_t ClaimByte(const std::string& output) {
  uint64_t hash = 0;
  (void)absl::SimpleHexAtoi(Sha256Hex(output).substr(0, 15), &hash);  // 60 bits
  return kFirstClaim + static_cast<int64_t>(hash);
}

// Returns the "output" of a record; "": the line is no record.
std::string OutputOf(const nlohmann::json& record) {
  if (!record.is_object()) return "";
  const auto output = record.find("output");
  return output != record.end() && output->is_string() ? output->get<std::string>() : "";
}

}  // namespace

absl::Status RecordFile::Failure(const char* doing) const {
  const bool full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
  return absl::Status(full ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kInternal,
                      absl::StrCat("cannot ", doing, " ", path_, ": ", std::strerror(errno)));
}

absl::StatusOr<std::unique_ptr<RecordFile>> RecordFile::Open(const std::string& folder) {
  const std::string path = (std::filesystem::path(folder) / kRecordName).string();
  FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (file.get() < 0) {
    return absl::PermissionDeniedError(absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
  }
  struct stat info;
  const int64_t size = fstat(file.get(), &info) == 0 ? info.st_size : 0;
  return std::unique_ptr<RecordFile>(new RecordFile(path, std::move(file), size));
}

absl::StatusOr<bool> RecordFile::Lock(int64_t byte, short type, bool wait) const {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  // The locks belong to this open file, so that closing another descriptor of the file does not release them.
  while (fcntl(file_.get(), wait ? F_OFD_SETLKW : F_OFD_SETLK, &lock) != 0) {
    if (errno == EINTR) continue;
    if (!wait && (errno == EAGAIN || errno == EACCES)) return false;
    return Failure("lock");
  }
  return true;
}

absl::StatusOr<bool> RecordFile::Claim(const std::string& output) {
  const int64_t byte = ClaimByte(output);
  const MutexLock lock(&mutex_);
  if (claimed_.contains(byte)) return false;
  SPEXD_ASSIGN_OR_RETURN(const bool mine, Lock(byte, F_WRLCK, /*wait=*/false));
  if (mine) claimed_.insert(byte);
  return mine;
}

void RecordFile::Release(const std::string& output) {
  const int64_t byte = ClaimByte(output);
  const MutexLock lock(&mutex_);
  claimed_.erase(byte);
  Lock(byte, F_UNLCK, /*wait=*/false).IgnoreError();  // closing the file releases it in any case
}

absl::Status RecordFile::Read() {
  struct stat info;
  if (fstat(file_.get(), &info) != 0) return Failure("read");
  std::string text;
  if (info.st_size > read_) text.resize(static_cast<size_t>(info.st_size - read_));
  size_t have = 0;
  while (have < text.size()) {
    const ssize_t count =
        pread(file_.get(), text.data() + have, text.size() - have, read_ + static_cast<int64_t>(have));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failure("read");
    if (count == 0) break;
    have += static_cast<size_t>(count);
  }
  text.resize(have);
  size_t begin = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    nlohmann::json record = nlohmann::json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                                  text.begin() + static_cast<std::ptrdiff_t>(end), nullptr,
                                                  /*allow_exceptions=*/false);
    const std::string output = OutputOf(record);
    if (!output.empty()) {
      if (read_ + static_cast<int64_t>(begin) >= size_when_opened_) new_.insert(output);
      records_[output] = std::move(record);
    }
    begin = end + 1;
  }
  read_ += static_cast<int64_t>(begin);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<nlohmann::json>> RecordFile::Find(const std::string& output) {
  const MutexLock lock(&mutex_);
  SPEXD_RETURN_IF_ERROR(Read());
  const auto found = records_.find(output);
  if (found == records_.end()) return std::nullopt;
  return found->second;
}

bool RecordFile::IsOfOthers(const std::string& output) const {
  const MutexLock lock(&mutex_);
  return new_.contains(output) && !own_.contains(output);
}

absl::Status RecordFile::Append(const std::string& line) {
  struct stat info;
  if (fstat(file_.get(), &info) != 0) return Failure("write");
  char last = '\n';
  if (info.st_size > 0 && pread(file_.get(), &last, 1, info.st_size - 1) != 1) return Failure("write");
  const std::string text = absl::StrCat(last == '\n' ? "" : "\n", line, "\n");
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = pwrite(file_.get(), text.data() + done, text.size() - done,
                                 info.st_size + static_cast<int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const absl::Status error = Failure("write");
      (void)ftruncate(file_.get(), info.st_size);
      return error;
    }
    done += static_cast<size_t>(count);
  }
  return fdatasync(file_.get()) == 0 ? absl::OkStatus() : Failure("write");
}

absl::Status RecordFile::Add(const nlohmann::json& record) {
  const std::string line = record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const MutexLock lock(&mutex_);  // the file lock does not exclude threads of this process
  SPEXD_RETURN_IF_ERROR(Lock(kWriting, F_WRLCK, /*wait=*/true).status());
  const absl::Cleanup unlock = [this] { Lock(kWriting, F_UNLCK, /*wait=*/false).IgnoreError(); };
  own_.insert(OutputOf(record));
  return Append(line);
}

}  // namespace spexd::cli
