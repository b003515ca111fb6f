// What a fuzz target holds true of the code under test. What does not hold ends the program, which libFuzzer
// records as a finding.
#ifndef SPEXD_TESTS_FUZZ_SUPPORT_FUZZ_CHECK_H_
#define SPEXD_TESTS_FUZZ_SUPPORT_FUZZ_CHECK_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace spexd::fuzz {

// Ends the program with `what` unless `holds`.
void Require(bool holds, absl::string_view what);

// An input's error is one that its sender can act on: InvalidArgument or one of the codes beside it in the
// readers' contracts, with a message that is neither empty nor longer than kMaxMessageBytes, in printable
// ASCII. `also`: further codes of the contract. `utf8`: the message has names that users chose, in which only
// control characters are wrong.
struct ErrorRules {
  std::vector<absl::StatusCode> also = {};
  bool utf8 = false;
};
void RequireGoodError(const absl::Status& status, const ErrorRules& rules = {});

// gRPC carries a status in metadata, of which clients take 8 KiB in all.
inline constexpr size_t kMaxMessageBytes = 4096;

// Bytes of the heap that were in use at most, above those in use when the meter was made. At most one at a
// time.
class HeapMeter {
 public:
  HeapMeter();
  ~HeapMeter();
  HeapMeter(const HeapMeter&) = delete;
  HeapMeter& operator=(const HeapMeter&) = delete;

  int64_t peak() const;
};

// Ends the program if what was allocated since `meter` was made exceeds `most` bytes.
void RequireHeapWithin(const HeapMeter& meter, int64_t most, absl::string_view what);

// Memory that reading an input's structure may take: headers are copied, once as text and once by keyword,
// and numbers of one byte become doubles.
constexpr int64_t StructureBytes(int64_t input_bytes) { return (int64_t{1} << 20) + 16 * input_bytes; }

}  // namespace spexd::fuzz

#endif  // SPEXD_TESTS_FUZZ_SUPPORT_FUZZ_CHECK_H_
