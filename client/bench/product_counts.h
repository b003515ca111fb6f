// The least work of products: operations and bytes by the counts of each step, a multiply-add as two.
#ifndef SPEXD_CLIENT_BENCH_PRODUCT_COUNTS_H_
#define SPEXD_CLIENT_BENCH_PRODUCT_COUNTS_H_

#include "client/bench/floor.h"
#include "core/model/frame.h"

namespace spexd::bench {

struct ProductCounts {
  static constexpr double kDouble = sizeof(double), kFloat = sizeof(float);
  static constexpr double kBandPairs = 66;  // pairs of diagonals of R that meet in a band of 11

  double fibres, bins, sky_fibres, rounds;
  double number = kDouble;  // bytes of an element of flux and ivar

  // Normal equations in each round, factor, solution and band of the inverse, variance in each fibre; R
  // twice.
  Floor Sky() const {
    return {rounds * bins * (3 * kBandPairs * sky_fibres + 310) + 4 * kBandPairs * fibres * bins,
            fibres * bins * (2 * kResolutionDiagonals * kFloat + 7 * number)};
  }
  // Two filters of 29 bins with R and their overlap, and the stack of nine lines at 10 760 redshifts.
  Floor Lines() const {
    return {fibres * (1600 * bins + 10760.0 * 9 * 12),
            fibres * bins * (kResolutionDiagonals * kFloat + 2 * number)};
  }
  // The scan's two matrix products in float32, which are done twice as fast; evaluations of the fit.
  Floor Star(double templates, double velocities, double evaluations) const {
    return {0.5 * 22 * bins * templates * velocities + 600 * bins * evaluations,
            bins * (kResolutionDiagonals * kFloat + 2 * number)};
  }
};

}  // namespace spexd::bench

#endif  // SPEXD_CLIENT_BENCH_PRODUCT_COUNTS_H_
