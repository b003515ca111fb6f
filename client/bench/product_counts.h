// The minimum work of products: operations (a multiply-add counts as two) and bytes, summed over their steps.
#ifndef SPEXD_CLIENT_BENCH_PRODUCT_COUNTS_H_
#define SPEXD_CLIENT_BENCH_PRODUCT_COUNTS_H_

#include "client/bench/floor.h"
#include "core/model/frame.h"

namespace spexd::bench {

struct ProductCounts {
  static constexpr double kDouble = sizeof(double), kFloat = sizeof(float);
  static constexpr double kBandPairs = 66;  // pairs of the 11 diagonals of R that meet in a band of R^T R

  double fibres, bins, sky_fibres, rounds;
  double number = kDouble;  // bytes of an element of flux and ivar

  // The sky of a frame: in each round the normal equations, their factor, the solution and a band of the
  // inverse; then the variance in each fibre. R is read twice.
  Floor Sky() const {
    return {rounds * bins * (3 * kBandPairs * sky_fibres + 310) + 4 * kBandPairs * fibres * bins,
            fibres * bins * (2 * kResolutionDiagonals * kFloat + 7 * number)};
  }
  // The redshifts of a frame: two filters of 29 bins with R, their overlap, and the sum over nine lines at
  // 10,760 redshifts.
  Floor Lines() const {
    return {fibres * (1600 * bins + 10760.0 * 9 * 12),
            fibres * bins * (kResolutionDiagonals * kFloat + 2 * number)};
  }
  // The velocity of a star: the scan's two matrix products in float32, which count as half because they are
  // twice as fast, and the evaluations of the fit.
  Floor Star(double templates, double velocities, double evaluations) const {
    return {0.5 * 22 * bins * templates * velocities + 600 * bins * evaluations,
            bins * (kResolutionDiagonals * kFloat + 2 * number)};
  }
};

}  // namespace spexd::bench

#endif  // SPEXD_CLIENT_BENCH_PRODUCT_COUNTS_H_
