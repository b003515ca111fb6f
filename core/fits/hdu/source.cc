#include "core/fits/hdu/source.h"

#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/digest/sha256.h"
#include "core/base/file_descriptor.h"
#include "core/base/memory/huge_pages.h"
#include "core/base/status_macros.h"
#include "core/base/threads/deadline.h"
#include "core/base/threads/parallel.h"

namespace spexd {

// The content of a file. Its memory is not zeroed, because it is large and is overwritten at once.
struct SourceBytes {
  std::unique_ptr<char[]> data;
  size_t size = 0;
  MemoryLoan loan = {};

  static absl::StatusOr<SourceBytes> OfSize(size_t size, const std::string& name,
                                            const SourceLimits& limits) {
    SourceBytes bytes;
    SPEXD_ASSIGN_OR_RETURN(bytes.loan, MemoryLoan::Take(limits.memory, static_cast<int64_t>(size)));
    bytes.data.reset(new (std::nothrow) char[std::max<size_t>(size, 1)]);
    bytes.size = size;
    if (bytes.data == nullptr) {
      return absl::ResourceExhaustedError(absl::StrCat(name, ": no memory for ", size, " bytes"));
    }
    AdviseHugePages(bytes.data.get(), size);
    return bytes;
  }
};

namespace {

// Bytes read between two checks of the stop token.
constexpr int64_t kPieceBytes = int64_t{1} << 20;
// The most threads that read. More would gain nothing, because they wait for memory.
constexpr int kMaxReaders = 4;

absl::Status TooLarge(const std::string& name, absl::string_view what, int64_t limit) {
  return absl::InvalidArgumentError(absl::StrFormat("%s: %s, the limit is %d bytes", name, what, limit));
}

absl::Status ErrnoStatus(int error, const std::string& path) {
  const std::string text = absl::StrCat(path, ": ", strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      if (IsExtendedName(path)) {
        return absl::InvalidArgumentError(
            absl::StrCat(path, ": a URL or an extended file name; the path of a file is needed"));
      }
      return absl::NotFoundError(text);
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(text);
    case ENAMETOOLONG:
    case ELOOP:
      return absl::InvalidArgumentError(text);
    default:
      return absl::InternalError(text);
  }
}

bool IsGzip(absl::string_view bytes) {
  return bytes.size() >= 2 && static_cast<unsigned char>(bytes[0]) == 0x1f &&
         static_cast<unsigned char>(bytes[1]) == 0x8b;
}

// The most bytes that deflate can make of so many, with room for tiny inputs.
uint64_t MostInflated(size_t compressed) { return uint64_t{1032} * compressed + 64; }

size_t MostCapacity(size_t compressed, int64_t limit) {
  return static_cast<size_t>(std::min<uint64_t>(MostInflated(compressed), limit));
}

// The size that the last member's trailer states (modulo 2^32); `end` is the end of the trailer. It is right
// for the usual file of one member.
size_t FirstCapacity(absl::string_view end, size_t compressed, int64_t limit) {
  uint32_t size = 0;
  for (size_t k = 0; end.size() >= 4 && k < 4; ++k) {
    size |= uint32_t{static_cast<unsigned char>(end[end.size() - 4 + k])} << (8 * k);
  }
  return std::min(std::max<size_t>(size, 4096), MostCapacity(compressed, limit));
}

absl::StatusOr<SourceBytes> Inflate(absl::string_view gzip, const std::string& name,
                                    const SourceLimits& limits) {
  const int64_t limit = limits.max_bytes;
  const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> inflater(
      libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  if (inflater == nullptr) return absl::ResourceExhaustedError(name + ": no memory to inflate gzip data");
  const size_t most = MostCapacity(gzip.size(), limit);
  size_t capacity = FirstCapacity(gzip, gzip.size(), limit);
  SPEXD_ASSIGN_OR_RETURN(SourceBytes out, SourceBytes::OfSize(capacity, name, limits));
  size_t used = 0;
  while (IsGzip(gzip)) {
    SPEXD_RETURN_IF_ERROR(CheckStop(limits.stop));
    size_t read = 0, written = 0;
    const libdeflate_result result = libdeflate_gzip_decompress_ex(
        inflater.get(), gzip.data(), gzip.size(), out.data.get() + used, capacity - used, &read, &written);
    if (result == LIBDEFLATE_INSUFFICIENT_SPACE) {
      if (capacity == most) {
        if (static_cast<int64_t>(most) < limit) break;  // deflate cannot make so much: the file is corrupt
        return TooLarge(name, "inflates to more than is allowed", limit);
      }
      capacity = capacity > most / 2 ? most : capacity * 2;
      SPEXD_ASSIGN_OR_RETURN(SourceBytes larger, SourceBytes::OfSize(capacity, name, limits));
      std::copy(out.data.get(), out.data.get() + used, larger.data.get());
      out = std::move(larger);
      continue;
    }
    if (result != LIBDEFLATE_SUCCESS) break;
    gzip.remove_prefix(read);
    used += written;
    // The file may be padded with zeros after the last member.
    if (gzip.find_first_not_of('\0') == absl::string_view::npos) {
      out.size = used;
      return out;
    }
  }
  return absl::InvalidArgumentError(name + ": the gzip data is truncated or corrupt");
}

}  // namespace

bool IsExtendedName(const std::string& path) {
  return absl::StrContains(path, "://") || absl::StartsWith(path, "!") ||
         (absl::EndsWith(path, "]") && absl::StrContains(path, "[")) ||
         (absl::EndsWith(path, ")") && absl::StrContains(path, "("));
}

struct Source::Content {
  std::string name;
  std::string given;  // the bytes passed to FromBytes
  std::shared_ptr<MemoryAccount> memory;
  SourceBytes read, inflated;
  absl::string_view disk;   // the file on disk, in `given` or `read`
  absl::string_view bytes;  // `disk`, or in `inflated`
  mutable std::once_flag hash_once;
  mutable std::string hash;
};

const std::string& Source::name() const { return content_->name; }
absl::string_view Source::bytes() const { return content_->bytes; }
const std::shared_ptr<MemoryAccount>& Source::memory() const { return content_->memory; }

int64_t Source::memory_bytes() const {
  return static_cast<int64_t>(content_->disk.size() + content_->inflated.size);
}

int64_t Source::FirstInflatedBytes(absl::string_view beginning, absl::string_view end, int64_t bytes,
                                   const SourceLimits& limits) {
  if (!IsGzip(beginning)) return 0;
  return static_cast<int64_t>(FirstCapacity(end, static_cast<size_t>(bytes), limits.max_bytes));
}

const std::string& Source::content_hash() const {
  const Content& content = *content_;
  std::call_once(content.hash_once, [&content] { content.hash = Sha256Hex(content.disk); });
  return content.hash;
}

absl::StatusOr<Source> Source::Make(std::shared_ptr<Content> content, const SourceLimits& limits) {
  content->bytes = content->disk;
  content->memory = limits.memory;
  if (IsGzip(content->disk)) {
    SPEXD_ASSIGN_OR_RETURN(content->inflated, Inflate(content->disk, content->name, limits));
    content->bytes = absl::string_view(content->inflated.data.get(), content->inflated.size);
  }
  return Source(std::move(content));
}

absl::StatusOr<Source> Source::FromBytes(std::string name, std::string bytes, const SourceLimits& limits) {
  auto content = std::make_shared<Content>();
  content->name = std::move(name);
  content->given = std::move(bytes);
  content->disk = content->given;
  if (static_cast<int64_t>(content->disk.size()) > limits.max_bytes) {
    return TooLarge(content->name, absl::StrFormat("has %d bytes", content->disk.size()), limits.max_bytes);
  }
  return Make(std::move(content), limits);
}

absl::StatusOr<Source> Source::FromFile(const std::string& path, const SourceLimits& limits) {
  if (path.empty()) return absl::InvalidArgumentError("the path of an input file is empty");
  // Non-blocking, so that a FIFO is refused and not waited for.
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return ErrnoStatus(errno, path);
  struct stat info;
  if (fstat(file.get(), &info) != 0) return ErrnoStatus(errno, path);
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, S_ISDIR(info.st_mode) ? ": is a folder, not a file" : ": is not a regular file"));
  }
  return FromOpenFile(path, file.get(), info.st_size, limits);
}

absl::StatusOr<Source> Source::FromOpenFile(const std::string& name, int file, int64_t bytes,
                                            const SourceLimits& limits) {
  if (bytes > limits.max_bytes) {
    return TooLarge(name, absl::StrFormat("has %d bytes", bytes), limits.max_bytes);
  }
  auto content = std::make_shared<Content>();
  content->name = name;
  SPEXD_ASSIGN_OR_RETURN(content->read, SourceBytes::OfSize(static_cast<size_t>(bytes), name, limits));
  const Workers workers = {std::min(limits.threads, kMaxReaders), limits.stop};
  SPEXD_RETURN_IF_ERROR(ParallelFor((bytes + kPieceBytes - 1) / kPieceBytes, workers, [&](int64_t piece) {
    const int64_t end = std::min(bytes, (piece + 1) * kPieceBytes);
    for (int64_t at = piece * kPieceBytes; at < end;) {
      const ssize_t got = pread(file, content->read.data.get() + at, static_cast<size_t>(end - at), at);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return ErrnoStatus(errno, name);
      if (got == 0) return absl::InvalidArgumentError(name + ": became shorter while it was read");
      at += got;
    }
    return absl::OkStatus();
  }));
  content->disk = absl::string_view(content->read.data.get(), content->read.size);
  return Make(std::move(content), limits);
}

}  // namespace spexd
