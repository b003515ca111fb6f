#include "core/frame/bundle_spectra.h"

#include <utility>

#include "core/extract/rounding.h"

namespace spexd {

BundleSpectra ToBundleSpectra(BundleResult result) {
  BundleSpectra bundle;
  bundle.bundle = result.bundle;
  bundle.fibres = result.fibres;
  bundle.residual = result.residual;
  bundle.root_error = result.root_error;
  bundle.spectra = result.spectra.flux.empty() ? RoundToFloat32(result) : std::move(result.spectra);
  bundle.status = std::move(result.status);
  bundle.model = std::move(result.model);
  return bundle;
}

}  // namespace spexd
