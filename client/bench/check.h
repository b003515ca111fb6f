// The check that the results to be timed are right.
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

// The difference of one bundle in float64 between two engines, over bins whose MASK is 0 in both.
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
  int64_t bins = 0, good_bins = 0;            // good bins have MASK 0
  std::optional<cli::TruthDifference> truth;  // only for a simulated frame
  std::optional<EngineDifference> engines;
  std::vector<std::string> wrong;  // all faults, with value and limit; empty: there are none
};

// Checks a whole frame in float32: every bundle is there once, has the right shape and is OK; every value is
// finite; no good bin lacks an ivar; the pulls of a simulated frame have the right spread.
CheckReport CheckFrame(const Inputs& inputs, std::vector<BundleResult> bundles);

// Checks the middle bundle in float64: every value is finite; rounded to float32 it has the same bits as in
// `frame`, which the same engine made; and it is close to that of `reference` (may be null). Adds to the
// report. Errors are those of the engines.
absl::Status CheckBundle(Engine* engine, Engine* reference, const Inputs& inputs,
                         const std::vector<BundleResult>& frame, CheckReport* report);

}  // namespace spexd::bench

#endif  // SPEXD_CLIENT_BENCH_CHECK_H_
