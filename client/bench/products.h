// The timing of a frame's products: sky, velocities of stars, redshifts of emission lines.
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
  std::string of;    // what the seconds are for: "a frame", "a star"
  Spread seconds;
  Floor floor;
};

struct ProductReport {
  std::string where = "one thread";           // or the name of the device
  int fibres = 0, sky_fibres = 0, stars = 0;  // stars: those of a sample of velocities
  int repeats = 0;
  double evaluations = 0;       // of the model, per star
  double flops = 0, bytes = 0;  // peaks per second
  std::vector<ProductTiming> products;

  double LeastSeconds(const ProductTiming& product) const;
};

// Times the products on one processor. The frame and the templates are made up in memory: as many sky fibres
// as in a survey (a twelfth), stars from a grid of 45 templates, and emission lines. Errors of the products,
// for example on a grid with too few bins.
absl::StatusOr<ProductReport> TimeProducts(int fibres, const WavelengthGrid& grid, int repeats);

// The peaks of a device per second, in float64.
struct DevicePeaks {
  std::string where;  // its name
  double flops = 0, bytes = 0;
};
// Times the products on a device. Velocities are those of all stars of a frame, once with its spectra in the
// device's memory and once with spectra from the host's.
absl::StatusOr<ProductReport> TimeProductsOn(Analyser* analyser, const DevicePeaks& peaks, int fibres,
                                             const WavelengthGrid& grid, int repeats);

}  // namespace spexd::bench

#endif  // SPEXD_CLIENT_BENCH_PRODUCTS_H_
