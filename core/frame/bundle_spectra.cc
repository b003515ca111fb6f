#include "core/frame/bundle_spectra.h"

#include <cmath>
#include <limits>
#include <utility>

#include "core/extract/formulas.h"

namespace spexd {
namespace {

// The nearest finite float.
float Narrow(double value) {
  constexpr double kMost = std::numeric_limits<float>::max();
  if (std::isnan(value)) return 0;
  return static_cast<float>(value > kMost ? kMost : value < -kMost ? -kMost : value);
}

template <size_t N>
Array<float, N> Narrowed(const Array<double, N>& values) {
  Array<float, N> narrow(values.shape());
  for (int64_t k = 0; k < values.size(); ++k) narrow.data()[k] = Narrow(values.data()[k]);
  return narrow;
}

}  // namespace

BundleSpectra ToBundleSpectra(BundleResult result) {
  BundleSpectra bundle;
  bundle.bundle = result.bundle;
  bundle.fibres = result.fibres;
  bundle.status = std::move(result.status);
  bundle.model = std::move(result.model);
  Spectra& spectra = bundle.spectra;
  spectra.flux = Narrowed(result.flux);
  spectra.ivar = Narrowed(result.ivar);
  spectra.resolution = Narrowed(result.resolution);
  spectra.chi2pix = Narrowed(result.chi2pix);
  spectra.mask = std::move(result.mask);
  // An ivar that a float cannot hold would leave a bin with ivar 0 and mask 0, or with flux and ivar that
  // belie each other.
  for (int64_t k = 0; k < spectra.flux.size(); ++k) {
    if (IsReportable(result.flux.data()[k], result.ivar.data()[k])) continue;
    spectra.flux.data()[k] = 0;
    spectra.ivar.data()[k] = 0;
    spectra.chi2pix.data()[k] = 0;
    spectra.mask.data()[k] |= kMaskNoData | kMaskSomeBadPix | kMaskAllBadPix;
  }
  return bundle;
}

}  // namespace spexd
