#include "tests/support/failing_new.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

// Allocations that still succeed; negative: all do.
std::atomic<int64_t> allocations_left = -1;
// Whether all allocations after the failing one fail, too.
std::atomic<bool> for_good = false;
std::atomic<bool> one_failed = false;

bool CountsDownToFailure() {
  int64_t left = allocations_left.load();
  while (left >= 0) {
    if (left == 0 && for_good) return true;
    if (allocations_left.compare_exchange_weak(left, left - 1)) return left == 0;
  }
  return false;
}

bool Fails() {
  if (!CountsDownToFailure()) return false;
  one_failed = true;
  one_failed.notify_all();
  return true;
}

}  // namespace

// Replaces operator new of the whole program, which std::vector, std::function and absl::Status use.
void* operator new(size_t bytes) {
  if (Fails()) throw std::bad_alloc();
  if (void* const memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
// Not inlined: GCC would take malloc and delete for a mismatch.
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace spexd::testing {

absl::Status WithFailingAllocation(int64_t count, Failing failing, const std::function<absl::Status()>& body,
                                   bool* met) {
  for_good = failing == Failing::kForGood;
  one_failed = false;
  allocations_left = count;
  const absl::Status status = body();
  *met = one_failed;
  allocations_left = -1;
  return status;
}

void AwaitFailedAllocation() { one_failed.wait(false); }

bool AnAllocationFailed() { return one_failed; }

int FailEverywhere(Failing failing, const std::function<absl::Status()>& body) {
  int failed = 0, passed = 0;
  for (int64_t count = 0; passed < 3 && count < 100000; ++count) {
    bool met = false;
    const absl::Status status = WithFailingAllocation(count, failing, body, &met);
    if (status.ok()) {
      passed += met ? 0 : 1;
    } else {
      EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status << " after " << count;
      ++failed;
    }
  }
  EXPECT_EQ(passed, 3);
  return failed;
}

}  // namespace spexd::testing
