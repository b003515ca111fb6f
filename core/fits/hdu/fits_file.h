// The structure of a FITS file in memory: its HDUs, their headers and the place of their data. Nothing is
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
  std::string file;  // file name for messages
  // EXTNAME, else HDUNAME, in upper case; only its beginning if it is long; "PRIMARY" for a primary HDU
  // without either.
  std::string name;
  std::string type;  // "IMAGE" (also the primary), "BINTABLE", ...
  std::vector<std::string> cards;                   // without END
  std::unordered_map<std::string, size_t> card_of;  // keyword -> its first card
  int bitpix = 0;
  std::vector<int64_t> axes;  // NAXIS1 first
  absl::string_view data;     // without padding; includes a table's heap
  std::shared_ptr<MemoryAccount> memory;  // SourceLimits::memory

  // Header values; nullopt if a value is missing or of another type.
  std::optional<std::string> String(const std::string& keyword) const;
  std::optional<double> Number(const std::string& keyword) const;
  std::optional<int64_t> Integer(const std::string& keyword) const;
  bool IsTrue(const std::string& keyword) const;
  bool Has(const std::string& keyword) const { return card_of.count(keyword) > 0; }
  bool IsTable() const { return type == "BINTABLE"; }

  // The integer of a keyword. InvalidArgument if it is missing or not within [least, most].
  absl::StatusOr<int64_t> RequireInteger(const std::string& keyword, int64_t least, int64_t most) const;
  // The number of a keyword. InvalidArgument if it is missing.
  absl::StatusOr<double> RequireNumber(const std::string& keyword) const;

  // Take memory from the file's account. A reader of the HDU must do so before it allocates: TakeMemory for
  // results, BorrowMemory for memory that is freed with the loan. After ResourceExhausted it must not
  // allocate.
  absl::Status TakeMemory(int64_t bytes) const;
  absl::StatusOr<MemoryLoan> BorrowMemory(int64_t bytes) const { return MemoryLoan::Take(memory, bytes); }

  // InvalidArgument with the message "file, HDU NAME: text".
  absl::Status Error(absl::string_view text) const;
};

class FitsFile {
 public:
  // Parses a file. InvalidArgument: not FITS, truncated, or not to the standard.
  static absl::StatusOr<FitsFile> Parse(const Source& source);

  const std::vector<Hdu>& hdus() const { return hdus_; }
  const std::string& name() const { return source_.name(); }
  int64_t structure_bytes() const { return structure_.bytes(); }  // an upper estimate of the memory of hdus()
  // The first HDU with one of these names, in the order of the names; nullptr if there is none. "" is the
  // primary.
  const Hdu* Find(std::initializer_list<absl::string_view> names) const;
  // Like Find, but InvalidArgument, naming the missing HDU and those present, if there is none.
  absl::StatusOr<const Hdu*> Get(std::initializer_list<absl::string_view> names) const;

 private:
  explicit FitsFile(const Source& source) : source_(source) {}

  Source source_;         // owns the bytes that the HDUs point into
  MemoryLoan structure_;  // memory of the HDUs
  std::vector<Hdu> hdus_;
};

// An upper estimate of the bytes that a copy of a card takes.
inline constexpr int64_t kCardCopyBytes = 160;

// The product and the sum of a and b; nullopt on overflow or a negative operand.
std::optional<int64_t> CheckedProduct(int64_t a, int64_t b);
std::optional<int64_t> CheckedSum(int64_t a, int64_t b);

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_HDU_FITS_FILE_H_
