// The least work that each stage of a bundle takes: operations and bytes of memory traffic.
#ifndef SPEXD_TESTS_BENCH_FLOOR_H_
#define SPEXD_TESTS_BENCH_FLOOR_H_

#include <array>

#include "core/extract/stage.h"
#include "core/model/psf.h"
#include "core/plan/bundle_plan.h"

namespace spexd::bench {

struct Floor {
  double flops = 0;  // a fused multiply-add counts two
  double bytes = 0;  // each array that no cache holds, once for each time it must be read or written
};

// With the usual covariance width and 16 poles: holes in the data take more.
std::array<Floor, kStageCount> FloorOfBundle(const Psf& psf, const BundlePlan& plan);

}  // namespace spexd::bench

#endif  // SPEXD_TESTS_BENCH_FLOOR_H_
