// The rules that a fuzz target checks. A violation ends the program, which libFuzzer records as a finding.
#ifndef SPEXD_TESTS_FUZZ_SUPPORT_FUZZ_CHECK_H_
#define SPEXD_TESTS_FUZZ_SUPPORT_FUZZ_CHECK_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace spexd::fuzz {

// Ends the program with the message `what` unless `holds`.
void Require(bool holds, absl::string_view what);

// Rules for an input's error, on which the sender must be able to act: its code is InvalidArgument or another
// one of the readers' contracts, its message is printable ASCII, not empty and at most kMaxMessageBytes long.
// `also`: further codes of the contract. `utf8`: the message contains names that users chose, in which only
// control characters are wrong.
struct ErrorRules {
  std::vector<absl::StatusCode> also = {};
  bool utf8 = false;
};
void RequireGoodError(const absl::Status& status, const ErrorRules& rules = {});

// gRPC carries a status in metadata, which clients limit to 8 KiB in all.
inline constexpr size_t kMaxMessageBytes = 4096;

// Measures the largest number of bytes of the heap in use, above those in use when the meter was made. At
// most one may exist.
class HeapMeter {
 public:
  HeapMeter();
  ~HeapMeter();
  HeapMeter(const HeapMeter&) = delete;
  HeapMeter& operator=(const HeapMeter&) = delete;

  int64_t peak() const;
};

// Ends the program if more than `most` bytes were allocated since `meter` was made.
void RequireHeapWithin(const HeapMeter& meter, int64_t most, absl::string_view what);

// Memory that reading an input's structure may take: headers are copied twice, as text and by keyword, and
// numbers of one byte become doubles.
constexpr int64_t StructureBytes(int64_t input_bytes) { return (int64_t{1} << 20) + 16 * input_bytes; }

}  // namespace spexd::fuzz

#endif  // SPEXD_TESTS_FUZZ_SUPPORT_FUZZ_CHECK_H_
