// What products are timed with: a made-up frame and a library of templates.
#ifndef SPEXD_CLIENT_BENCH_MADE_UP_PRODUCT_INPUTS_H_
#define SPEXD_CLIENT_BENCH_MADE_UP_PRODUCT_INPUTS_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/analysis/usable_spectra.h"
#include "core/analysis/velocity/template_library.h"
#include "core/model/frame.h"
#include "core/model/wavelength_grid.h"

namespace spexd::bench {

struct ProductInputs {
  std::unique_ptr<const Frame> frame;  // whose resolution the spectra name
  UsableSpectra spectra;
  std::vector<int> sky_fibres, targets;
  TemplateLibrary library;  // 45 templates
};

// Sky with bright lines; a twelfth of the fibres see nothing else, the others stars of the library's grid.
// InvalidArgument if there is no room for both.
absl::StatusOr<ProductInputs> MakeUpProductInputs(int fibres, const WavelengthGrid& grid);

}  // namespace spexd::bench

#endif  // SPEXD_CLIENT_BENCH_MADE_UP_PRODUCT_INPUTS_H_
