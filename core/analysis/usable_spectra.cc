#include "core/analysis/usable_spectra.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/analysis/resolution_matrix.h"
#include "core/analysis/usable_bin.h"
#include "core/base/status_macros.h"

namespace spexd {
namespace {

bool AllFinite(absl::Span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
}

// Bins whose model is not known, because an element of their row is not finite, have no data: such elements
// would spread into every result of the fibre.
void Mend(int64_t i, Array<float, 3>* resolution, UsableSpectra* spectra) {
  const int64_t bins = resolution->shape(2);
  for (int k = 0; k < kResolutionDiagonals; ++k) {
    const Diagonal diagonal = ResolutionMatrix::DiagonalAt(k, bins);
    for (int64_t j = 0; j < bins; ++j) {
      float& element = (*resolution)(i, k, j);
      if (std::isfinite(element)) continue;
      element = 0;
      if (j < diagonal.first || j >= diagonal.end) continue;
      const int64_t row = j + diagonal.offset;
      if (spectra->ivar(i, row) > 0) spectra->mask(i, row) |= kMaskNoData;
      spectra->flux(i, row) = spectra->ivar(i, row) = 0;
    }
  }
}

}  // namespace

absl::StatusOr<UsableSpectra> MakeUsable(const Frame& frame, const Workers& workers) {
  const Spectra& from = frame.spectra;
  if (from.resolution.shape(1) != kResolutionDiagonals) {
    return absl::InvalidArgumentError(
        absl::StrFormat("frame: its resolution has %d diagonals, the products need %d",
                        from.resolution.shape(1), kResolutionDiagonals));
  }
  if (frame.grid.count < kResolutionDiagonals) {
    return absl::InvalidArgumentError(absl::StrFormat("frame: has %d bins, the products need at least %d",
                                                      frame.grid.count, kResolutionDiagonals));
  }
  UsableSpectra spectra;
  spectra.wave = frame.grid.Values();
  spectra.resolution = &from.resolution;
  spectra.mask.Reshape(from.mask.shape());
  spectra.flux.Reshape(from.flux.shape());
  spectra.ivar.Reshape(from.flux.shape());
  const int64_t fibres = from.flux.shape(0), elements = kResolutionDiagonals * frame.grid.count;
  std::vector<char> finite(static_cast<size_t>(fibres));
  SPEXD_RETURN_IF_ERROR(ParallelFor(fibres, workers, [&](int64_t i) {
    for (int64_t j = 0; j < from.flux.shape(1); ++j) {
      const UsableBin bin = UsableBinOf(from.flux(i, j), from.ivar(i, j), from.mask(i, j));
      spectra.flux(i, j) = bin.flux;
      spectra.ivar(i, j) = bin.ivar;
      spectra.mask(i, j) = from.mask(i, j);
    }
    finite[static_cast<size_t>(i)] = AllFinite(
        from.resolution.flat().subspan(static_cast<size_t>(i * elements), static_cast<size_t>(elements)));
    return absl::OkStatus();
  }));
  if (std::all_of(finite.begin(), finite.end(), [](char each) { return each; })) return spectra;
  auto mended = std::make_shared<Array<float, 3>>(from.resolution);
  for (int64_t i = 0; i < fibres; ++i) {
    if (!finite[static_cast<size_t>(i)]) Mend(i, mended.get(), &spectra);
  }
  spectra.resolution = mended.get();
  spectra.mended_resolution = std::move(mended);
  spectra.changed = true;
  return spectra;
}

void DropFibres(const std::vector<bool>& dropped, UsableSpectra* spectra) {
  for (int64_t i = 0; i < spectra->fibres(); ++i) {
    if (!dropped[static_cast<size_t>(i)]) continue;
    spectra->changed = true;
    for (int64_t j = 0; j < spectra->bins(); ++j) {
      spectra->flux(i, j) = spectra->ivar(i, j) = 0;
      spectra->mask(i, j) |= kMaskBadFibre;
    }
  }
}

std::vector<double> InnerIvar(const UsableSpectra& spectra, int64_t row) {
  const auto ivar = spectra.ivar.Row(row);
  std::vector<double> inner(ivar.size(), 0);
  const int64_t end = spectra.bins() - kEdgeBins;
  for (int64_t j = kEdgeBins; j < end; ++j) inner[j] = ivar[j];
  return inner;
}

}  // namespace spexd
