#include "core/extract/rounding.h"

#include "core/extract/formulas.h"

namespace spexd {
namespace {

template <size_t N>
Array<float, N> Narrowed(const Array<double, N>& values) {
  Array<float, N> narrow(values.shape());
  for (int64_t k = 0; k < values.size(); ++k) narrow.data()[k] = RoundToFloat(values.data()[k]);
  return narrow;
}

}  // namespace

Spectra RoundToFloat32(const BundleResult& result) {
  Spectra spectra;
  spectra.flux = Narrowed(result.flux);
  spectra.ivar = Narrowed(result.ivar);
  spectra.mask = result.mask;
  spectra.resolution = Narrowed(result.resolution);
  spectra.chi2pix = Narrowed(result.chi2pix);
  // A bin whose ivar a float cannot hold would get ivar 0 and mask 0, or a flux and an ivar that contradict
  // each other.
  for (int64_t k = 0; k < spectra.flux.size(); ++k) {
    if (IsReportable(result.flux.data()[k], result.ivar.data()[k])) continue;
    spectra.flux.data()[k] = 0;
    spectra.ivar.data()[k] = 0;
    spectra.chi2pix.data()[k] = 0;
    spectra.mask.data()[k] |= kMaskNoData | kMaskSomeBadPix | kMaskAllBadPix;
  }
  return spectra;
}

void KeepFloat32(BundleResult* result) {
  result->spectra = RoundToFloat32(*result);
  for (Array<double, 2>* array : {&result->flux, &result->ivar, &result->chi2pix, &result->pixmask})
    *array = Array<double, 2>();
  result->mask = Array<uint32_t, 2>();
  result->resolution = Array<double, 3>();
}

}  // namespace spexd
