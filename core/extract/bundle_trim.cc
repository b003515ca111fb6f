#include "core/extract/bundle_trim.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/model/frame.h"
#include "core/model/tolerances.h"

namespace spexd {
namespace {

// Cuts an array to some of its rows, the slices of the first axis.
template <typename T, size_t N>
void CutRows(int first, int count, Array<T, N>* array) {
  if (array->empty()) return;
  const int64_t row = array->size() / array->shape(0);
  auto shape = array->shape();
  shape[0] = count;
  Array<T, N> cut(shape);
  std::copy_n(array->data() + first * row, count * row, cut.data());
  *array = std::move(cut);
}

}  // namespace

void Trim(const FibreRange& asked, BundleResult* result) {
  const FibreRange kept = Intersect(result->fibres, asked);
  if (kept == result->fibres) return;
  const int first = kept.first - result->fibres.first;
  CutRows(first, kept.count, &result->flux);
  CutRows(first, kept.count, &result->ivar);
  CutRows(first, kept.count, &result->mask);
  CutRows(first, kept.count, &result->resolution);
  CutRows(first, kept.count, &result->chi2pix);
  CutRows(first, kept.count, &result->pixmask);
  CutRows(first, kept.count, &result->spectra.flux);
  CutRows(first, kept.count, &result->spectra.ivar);
  CutRows(first, kept.count, &result->spectra.mask);
  CutRows(first, kept.count, &result->spectra.resolution);
  CutRows(first, kept.count, &result->spectra.chi2pix);
  result->fibres = kept;
}

BundleResult FailedBundle(const FibreRange& fibres, int bins, absl::Status status) {
  BundleResult result;
  result.fibres = fibres;
  result.status = std::move(status);
  for (Array<double, 2>* array : {&result.flux, &result.ivar, &result.chi2pix})
    array->Assign({fibres.count, bins});
  result.pixmask.Assign({fibres.count, bins}, 1.0);
  result.mask.Assign({fibres.count, bins}, kMaskNoData | kMaskAllBadPix | kMaskSomeBadPix);
  result.resolution.Assign({fibres.count, kResolutionDiagonals, bins});
  for (int i = 0; i < fibres.count; ++i) {
    for (int j = 0; j < bins; ++j) result.resolution(i, kResolutionHalfWidth, j) = 1;
  }
  return result;
}

void FailUnlessProven(int bins, BundleResult* result) {
  std::string failure;
  if (!(result->residual <= kMaxFluxResidual)) {
    failure =
        absl::StrFormat("flux of fibres %d to %d: the residual stays at %.3g, the limit is %g",
                        result->fibres.first, result->fibres.end() - 1, result->residual, kMaxFluxResidual);
  } else if (!(result->root_error <= kMaxRootError)) {
    failure = absl::StrFormat(
        "square roots of fibres %d to %d: |Q v|^2 differs from v^T P v by %.3g of it, the limit is %g",
        result->fibres.first, result->fibres.end() - 1, result->root_error, kMaxRootError);
  } else {
    return;
  }
  BundleResult failed = FailedBundle(result->fibres, bins, absl::InternalError(failure));
  failed.bundle = result->bundle;
  failed.residual = result->residual;
  failed.root_error = result->root_error;
  *result = std::move(failed);
}

}  // namespace spexd
