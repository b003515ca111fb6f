// The timing of the sky and the line redshifts of a frame on a device.
#ifndef SPEXD_CLIENT_BENCH_DEVICE_PRODUCTS_H_
#define SPEXD_CLIENT_BENCH_DEVICE_PRODUCTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "client/bench/made_up/product_inputs.h"
#include "client/bench/products.h"
#include "core/analysis/analyser/analyser.h"

namespace spexd::bench {

// Returns two rows for each product: the device's seconds for spectra in its memory, and the seconds until
// the results are in the host's memory, with the copies of the spectra to the device. Internal: the results
// differ from those of processors by more than float32 explains.
absl::StatusOr<std::vector<ProductTiming>> TimeSkyAndLinesOn(Analyser* analyser, const ProductInputs& inputs,
                                                             int repeats);

}  // namespace spexd::bench

#endif  // SPEXD_CLIENT_BENCH_DEVICE_PRODUCTS_H_
