// The structure of a FITS file in memory: its HDUs, their headers and where their data lies. Nothing is
// trusted: every size is checked against the bytes that are there.
#ifndef SPEXD_CORE_FITS_HDU_FITS_FILE_H_
#define SPEXD_CORE_FITS_HDU_FITS_FILE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/memory/memory_account.h"
#include "core/fits/hdu/source.h"

namespace spexd {

struct Hdu {
  std::string file;  // for messages
  std::string name;  // EXTNAME, else HDUNAME, upper case, its beginning if it is long; "PRIMARY" for a
                     // primary without
  std::string type;  // "IMAGE" (the primary too), "BINTABLE", ...
  std::vector<std::string> cards;                   // without END
  std::unordered_map<std::string, size_t> card_of;  // keyword -> its first card
  int bitpix = 0;
  std::vector<int64_t> axes;  // NAXIS1 first
  absl::string_view data;     // without padding; a table's heap included
  std::shared_ptr<MemoryAccount> memory;  // SourceLimits::memory

  // Header values; nullopt where absent or of another type.
  std::optional<std::string> String(const std::string& keyword) const;
  std::optional<double> Number(const std::string& keyword) const;
  std::optional<int64_t> Integer(const std::string& keyword) const;
  bool IsTrue(const std::string& keyword) const;
  bool Has(const std::string& keyword) const { return card_of.count(keyword) > 0; }
  bool IsTable() const { return type == "BINTABLE"; }

  // The integer of a keyword. InvalidArgument if there is none or it is not within [least, most].
  absl::StatusOr<int64_t> RequireInteger(const std::string& keyword, int64_t least, int64_t most) const;
  // The number of a keyword, or InvalidArgument.
  absl::StatusOr<double> RequireNumber(const std::string& keyword) const;

  // Whoever reads the HDU asks for the memory of what it makes: TakeMemory for results, BorrowMemory for what
  // is freed with the loan. ResourceExhausted: it must not be allocated.
  absl::Status TakeMemory(int64_t bytes) const;
  absl::StatusOr<MemoryLoan> BorrowMemory(int64_t bytes) const { return MemoryLoan::Take(memory, bytes); }

  // InvalidArgument "file, HDU NAME: text".
  absl::Status Error(absl::string_view text) const;
};

class FitsFile {
 public:
  // InvalidArgument: not FITS, truncated, or not to the standard.
  static absl::StatusOr<FitsFile> Parse(const Source& source);

  const std::vector<Hdu>& hdus() const { return hdus_; }
  const std::string& name() const { return source_.name(); }
  int64_t structure_bytes() const { return structure_.bytes(); }  // an upper estimate of the memory of hdus()
  // The first HDU of one of these names, in their order; nullptr if there is none. "" is the primary.
  const Hdu* Find(std::initializer_list<absl::string_view> names) const;
  // Like Find, but InvalidArgument that names the HDU missing and those present.
  absl::StatusOr<const Hdu*> Get(std::initializer_list<absl::string_view> names) const;

 private:
  explicit FitsFile(const Source& source) : source_(source) {}

  Source source_;  // keeps the bytes that the HDUs point into
  MemoryLoan structure_;  // memory of the HDUs
  std::vector<Hdu> hdus_;
};

// Memory of a copy of a card: an upper estimate, in bytes.
inline constexpr int64_t kCardCopyBytes = 160;

// a * b and a + b; nullopt on overflow or a negative operand.
std::optional<int64_t> CheckedProduct(int64_t a, int64_t b);
std::optional<int64_t> CheckedSum(int64_t a, int64_t b);

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_HDU_FITS_FILE_H_
