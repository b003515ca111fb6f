// Reads a file as a server does: all memory for it is taken from a budget.
#ifndef SPEXD_TESTS_FUZZ_SUPPORT_READ_METERED_H_
#define SPEXD_TESTS_FUZZ_SUPPORT_READ_METERED_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "core/fits/hdu/source.h"
#include "tests/fits/counting_account.h"
#include "tests/fuzz/support/fuzz_check.h"

namespace spexd::fuzz {

inline constexpr int64_t kMaxFileBytes = int64_t{1}
                                         << 20;  // of an inflated file; larger ones only take longer
inline constexpr int64_t kBudgetBytes = int64_t{16} << 20;
// Limit for texts and descriptions of columns, which no account counts.
inline constexpr int64_t kUncountedBytes = int64_t{1} << 20;

// Returns the result of `read` on the file, a StatusOr. Ends the program if its sender cannot act on the
// error, or if more memory was allocated than taken from the budget.
template <typename Read>
auto ReadMetered(absl::string_view bytes, absl::string_view what, const Read& read)
    -> decltype(read(std::declval<const Source&>())) {
  const auto account = std::make_shared<testing::CountingAccount>(kBudgetBytes);
  const HeapMeter meter;
  const absl::StatusOr<Source> source =
      Source::FromBytes("input.fits", std::string(bytes), {.max_bytes = kMaxFileBytes, .memory = account});
  RequireGoodError(source.status());
  if (!source.ok()) return source.status();
  auto result = read(*source);
  RequireGoodError(result.status());
  RequireHeapWithin(meter, static_cast<int64_t>(bytes.size()) + account->peak() + kUncountedBytes, what);
  return result;
}

}  // namespace spexd::fuzz

#endif  // SPEXD_TESTS_FUZZ_SUPPORT_READ_METERED_H_
