#include "core/analysis/usable_spectra.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "core/analysis/resolution_matrix.h"
#include "core/analysis/usable_bin.h"
#include "core/base/status_macros.h"

namespace spexd {
namespace {

// Elements that are not finite would spread into every result of the fibre without an error.
absl::Status CheckFinite(const Array<float, 3>& resolution, int64_t i) {
  const ResolutionMatrix r(resolution, i);
  for (int k = 0; k < kResolutionDiagonals; ++k) {
    const Diagonal diagonal = ResolutionMatrix::DiagonalAt(k, r.bins());
    const float* const values = r.values(k);
    if (std::all_of(values + diagonal.first, values + diagonal.end, [](float r) { return std::isfinite(r); }))
      continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("frame: the resolution of spectrum %d has values on diagonal %d that are not finite",
                        i, diagonal.offset));
  }
  return absl::OkStatus();
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
  SPEXD_RETURN_IF_ERROR(ParallelFor(from.flux.shape(0), workers, [&](int64_t i) {
    for (int64_t j = 0; j < from.flux.shape(1); ++j) {
      const UsableBin bin = UsableBinOf(from.flux(i, j), from.ivar(i, j), from.mask(i, j));
      spectra.flux(i, j) = bin.flux;
      spectra.ivar(i, j) = bin.ivar;
      spectra.mask(i, j) = from.mask(i, j);
    }
    return CheckFinite(from.resolution, i);
  }));
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

absl::Status CheckFiberflatShape(int64_t rows, int64_t columns, int64_t fibres, int64_t bins) {
  if (rows == fibres && columns == bins) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "fiberflat: has shape %d x %d, must be %d fibres x %d wavelengths", rows, columns, fibres, bins));
}

absl::Status ApplyFiberflat(const Array<double, 2>& fiberflat, UsableSpectra* spectra) {
  if (absl::Status shape =
          CheckFiberflatShape(fiberflat.shape(0), fiberflat.shape(1), spectra->fibres(), spectra->bins());
      !shape.ok()) {
    return shape;
  }
  spectra->changed = true;
  for (int64_t k = 0; k < fiberflat.size(); ++k) {
    const double flat = fiberflat.flat()[k];
    double &flux = spectra->flux.flat()[k], &ivar = spectra->ivar.flat()[k];
    if (flat > 0 && std::isfinite(flat)) {
      flux /= flat;
      ivar *= flat * flat;
    } else {
      flux = ivar = 0;
      spectra->mask.flat()[k] |= kMaskBadFiberflat;
    }
  }
  return absl::OkStatus();
}

std::vector<double> InnerIvar(const UsableSpectra& spectra, int64_t row) {
  const auto ivar = spectra.ivar.Row(row);
  std::vector<double> inner(ivar.size(), 0);
  const int64_t end = spectra.bins() - kEdgeBins;
  for (int64_t j = kEdgeBins; j < end; ++j) inner[j] = ivar[j];
  return inner;
}

}  // namespace spexd
