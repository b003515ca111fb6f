// The inputs for timing products: a made-up frame and a library of templates.
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
  std::unique_ptr<const Frame> frame;  // has the resolution to which `spectra` refer
  UsableSpectra spectra;
  std::vector<int> sky_fibres, targets;
  TemplateLibrary library;  // 45 templates
};

// Makes a frame whose fibres see a sky with bright lines. A twelfth of the fibres see nothing else; the
// others also see stars from the library's grid. InvalidArgument: there are too few fibres for both.
absl::StatusOr<ProductInputs> MakeUpProductInputs(int fibres, const WavelengthGrid& grid);

}  // namespace spexd::bench

#endif  // SPEXD_CLIENT_BENCH_MADE_UP_PRODUCT_INPUTS_H_
