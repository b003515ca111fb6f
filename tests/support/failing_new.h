// operator new of the whole program, which fails when a test says so: std::vector, std::function and
// absl::Status use it. Link it into tests of running out of memory only.
#ifndef SPEXD_TESTS_SUPPORT_FAILING_NEW_H_
#define SPEXD_TESTS_SUPPORT_FAILING_NEW_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"

namespace spexd::testing {

enum class Failing { kOnce, kForGood };

// Runs `body` with an allocation that fails, after `count` others: that one alone, or all from then on. All
// threads count. Returns what `body` returns; `met`: whether the allocation came.
absl::Status WithFailingAllocation(int64_t count, Failing failing, const std::function<absl::Status()>& body,
                                   bool* met);

// Waits until an allocation failed, of whatever thread. For such a body.
void AwaitFailedAllocation();
// Whether an allocation has failed. For such a body.
bool AnAllocationFailed();

// Runs `body` again and again with a later allocation that fails, until none does any more. Each run must end
// well, or with ResourceExhausted. Returns how many failed.
int FailEverywhere(Failing failing, const std::function<absl::Status()>& body);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SUPPORT_FAILING_NEW_H_
