// The bytes of an input file, from a path or an upload.
#ifndef SPEXD_CORE_FITS_HDU_SOURCE_H_
#define SPEXD_CORE_FITS_HDU_SOURCE_H_

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/memory/memory_account.h"

namespace spexd {

struct SourceLimits {
  int64_t max_bytes = int64_t{4} << 30;  // limit for the file and for the inflated bytes of a .gz
  // The account for all memory that the file causes: its bytes, and what readers make of them. An error of
  // the account ends the reading. Null: memory has no limit, as in programs that read their user's own files.
  std::shared_ptr<MemoryAccount> memory = nullptr;
  // Stops the reading, with Cancelled, between two pieces of a file or two members of a .gz.
  std::stop_token stop = {};
  int threads = 1;  // number of threads that read a file
};

// An immutable file in memory, whose bytes are shared by copies. Thread-safe.
class Source {
 public:
  // Reads a whole regular file. Errors name the path: NotFound, PermissionDenied, InvalidArgument (a folder;
  // a file that is too large; a URL or CFITSIO extended name such as "file://x", "x.fits[1]" or "x.fits(y)"
  // instead of a path). This function and the two below inflate a whole-file gzip (found by its magic bytes;
  // several members allowed) with libdeflate.
  static absl::StatusOr<Source> FromFile(const std::string& path, const SourceLimits& limits = {});

  // Reads an open regular file in the same way. InvalidArgument if it becomes shorter than `bytes` meanwhile.
  static absl::StatusOr<Source> FromOpenFile(const std::string& name, int file, int64_t bytes,
                                             const SourceLimits& limits);

  // Takes bytes as they are on disk. `name` is for messages and headers.
  static absl::StatusOr<Source> FromBytes(std::string name, std::string bytes,
                                          const SourceLimits& limits = {});

  const std::string& name() const;
  absl::string_view bytes() const;
  const std::shared_ptr<MemoryAccount>& memory() const;  // SourceLimits::memory
  // Bytes that the source holds: the file, and the inflated bytes of a .gz.
  int64_t memory_bytes() const;
  // The memory that inflating a file of `bytes` bytes takes at first; 0 unless its beginning is that of a
  // gzip. It suffices if the size in the last 4 bytes, `end`, is right, which it is for a file of one member.
  static int64_t FirstInflatedBytes(absl::string_view beginning, absl::string_view end, int64_t bytes,
                                    const SourceLimits& limits);
  // The SHA-256 of the bytes as they were on disk, computed when first asked for.
  const std::string& content_hash() const;

 private:
  struct Content;
  explicit Source(std::shared_ptr<const Content> content) : content_(std::move(content)) {}
  static absl::StatusOr<Source> Make(std::shared_ptr<Content> content, const SourceLimits& limits);

  std::shared_ptr<const Content> content_;
};

// Whether CFITSIO would read more than a path into the name: "scheme://...", "x.fits[1]", "x.fits(y)",
// "!x.fits".
bool IsExtendedName(const std::string& path);

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_HDU_SOURCE_H_
