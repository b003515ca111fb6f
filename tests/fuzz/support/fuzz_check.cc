#include "tests/fuzz/support/fuzz_check.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_format.h"

// The sanitizers declare these in <sanitizer/allocator_interface.h>, which GCC does not have.
extern "C" {
int __sanitizer_install_malloc_and_free_hooks(void (*allocated)(const volatile void*, size_t),
                                              void (*released)(const volatile void*));
size_t __sanitizer_get_allocated_size(const volatile void*);
}

namespace spexd::fuzz {
namespace {

// These are global because the sanitizer calls hooks without an argument of ours. They count while a meter
// exists.
std::atomic<bool> counting{false};
std::atomic<int64_t> in_use{0}, max_in_use{0};

void OnAllocation(const volatile void*, size_t bytes) {
  if (!counting) return;
  const int64_t now = in_use += static_cast<int64_t>(bytes);
  if (now > max_in_use) max_in_use = now;
}

void OnRelease(const volatile void* memory) {
  if (!counting || memory == nullptr) return;
  in_use -= static_cast<int64_t>(__sanitizer_get_allocated_size(memory));
}

}  // namespace

void Require(bool holds, absl::string_view what) {
  if (holds) return;
  absl::FPrintF(stderr, "does not hold: %s\n", what);
  std::abort();
}

void RequireGoodError(const absl::Status& status, const ErrorRules& rules) {
  if (status.ok()) return;
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kPermissionDenied:
      break;
    default:
      Require(std::find(rules.also.begin(), rules.also.end(), status.code()) != rules.also.end(),
              absl::StrFormat("a bad input's error has a proper code: %s", status.ToString()));
  }
  const absl::string_view message = status.message();
  Require(!message.empty(), "an error has a message");
  Require(message.size() <= kMaxMessageBytes,
          absl::StrFormat("an error's message of %d bytes is short: %s ...", message.size(),
                          message.substr(0, 200)));
  const auto good = [&rules](char c) { return (c >= ' ' && c <= '~') || (rules.utf8 && (c & 0x80) != 0); };
  Require(std::all_of(message.begin(), message.end(), good),
          absl::StrFormat("an error's message is printable: %s", message));
}

HeapMeter::HeapMeter() {
  static const bool hooked = __sanitizer_install_malloc_and_free_hooks(&OnAllocation, &OnRelease) != 0;
  Require(hooked, "the sanitizer takes hooks");
  in_use = max_in_use = 0;
  counting = true;
}

HeapMeter::~HeapMeter() { counting = false; }

int64_t HeapMeter::peak() const { return max_in_use; }

void RequireHeapWithin(const HeapMeter& meter, int64_t most, absl::string_view what) {
  Require(meter.peak() <= most,
          absl::StrFormat("%s takes %d bytes of memory, at most %d", what, meter.peak(), most));
}

}  // namespace spexd::fuzz
