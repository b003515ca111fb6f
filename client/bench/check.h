// Checks that the results to be timed are right.
#ifndef SPEXD_CLIENT_BENCH_CHECK_H_
#define SPEXD_CLIENT_BENCH_CHECK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/bench/inputs.h"
#include "client/compare/compare.h"
#include "core/extract/engine.h"

namespace spexd::bench {

// One bundle in float64 from two engines, over bins whose MASK is 0 in both.
struct EngineDifference {
  int bundle = 0;
  std::string reference;  // the other engine
  int64_t compared = 0, mask_differs = 0;
  double pull = 0;        // largest |flux - flux| sqrt(ivar)
  double sqrt_ivar = 0;   // largest relative difference
  double resolution = 0;  // largest difference of elements whose row and column are both compared
};

struct CheckReport {
  int bundles = 0;
  int64_t bins = 0, good_bins = 0;            // good: MASK 0
  std::optional<cli::TruthDifference> truth;  // only for a simulated frame
  std::optional<EngineDifference> engines;
  std::vector<std::string> wrong;  // every fault found, with value and limit; empty if all is right
};

// A whole frame, float32: every bundle there once, of the right shape and OK, every value finite, no good bin
// without an ivar, and the pulls of a simulated one as they should be.
CheckReport CheckFrame(const Inputs& inputs, std::vector<BundleResult> bundles);

// The middle bundle in float64: every value finite, rounded to float32 the same bits as in `frame`, which the
// same engine made; and, where there is a reference, close to that engine's. Adds to the report.
// An error is an engine's own.
absl::Status CheckBundle(Engine* engine, Engine* reference, const Inputs& inputs,
                         const std::vector<BundleResult>& frame, CheckReport* report);

}  // namespace spexd::bench

#endif  // SPEXD_CLIENT_BENCH_CHECK_H_
