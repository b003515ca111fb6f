// Timing the products of a frame: its sky, velocities of stars, redshifts of emission lines.
#ifndef SPEXD_CLIENT_BENCH_PRODUCTS_H_
#define SPEXD_CLIENT_BENCH_PRODUCTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/bench/floor.h"
#include "client/bench/measure.h"
#include "core/analysis/analyser/analyser.h"
#include "core/model/wavelength_grid.h"

namespace spexd::bench {

struct ProductTiming {
  std::string name;  // "sky"
  std::string of;    // what the seconds are of: "a frame", "a star"
  Spread seconds;
  Floor floor;
};

struct ProductReport {
  std::string where = "one thread";           // or the device
  int fibres = 0, sky_fibres = 0, stars = 0;  // stars: that a sample of velocities was divided by
  int repeats = 0;
  double evaluations = 0;       // of the model, a star's
  double flops = 0, bytes = 0;  // peaks there, a second
  std::vector<ProductTiming> products;

  double LeastSeconds(const ProductTiming& product) const;
};

// Uses one processor. The frame and the templates are made up in memory: as many sky fibres as in a survey (a
// twelfth), stars of a grid of 45 templates, and emission lines. Errors: those of the products, as on a grid
// of too few bins.
absl::StatusOr<ProductReport> TimeProducts(int fibres, const WavelengthGrid& grid, int repeats);

// What a device can do, a second, in float64.
struct DevicePeaks {
  std::string where;  // its name
  double flops = 0, bytes = 0;
};
// The same on a device, for the products that it makes: all stars of a frame that lies in its memory, and of
// one that comes from the host's.
absl::StatusOr<ProductReport> TimeProductsOn(Analyser* analyser, const DevicePeaks& peaks, int fibres,
                                             const WavelengthGrid& grid, int repeats);

}  // namespace spexd::bench

#endif  // SPEXD_CLIENT_BENCH_PRODUCTS_H_
