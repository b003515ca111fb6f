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

// Removes the data of bins with an element that is not finite in their row of the resolution. Their model is
// unknown, and such elements would spread into every result of the fibre.
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

constexpr double kMaxOuterLight = 1e-3;  // part of a bin's light that the left-out diagonals may have

// InvalidArgument if diagonals beyond those of products have light.
absl::Status CheckOuterDiagonals(absl::string_view name, const Array<float, 3>& resolution) {
  const int half = static_cast<int>(resolution.shape(1) / 2), outer = half - kResolutionHalfWidth;
  const int64_t bins = resolution.shape(2);
  for (int64_t i = 0; i < resolution.shape(0) && outer > 0; ++i) {
    std::vector<double> light(static_cast<size_t>(bins), 0);
    for (int k = 0; k < 2 * half + 1; ++k) {
      if (k >= outer && k < 2 * half + 1 - outer) continue;
      const Diagonal diagonal(k, half, bins);
      for (int64_t j = diagonal.first; j < diagonal.end; ++j) {
        if (std::isfinite(resolution(i, k, j)))
          light[static_cast<size_t>(j)] += std::abs(resolution(i, k, j));
      }
    }
    const auto most = std::max_element(light.begin(), light.end());
    if (*most <= kMaxOuterLight) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: its resolution has %d diagonals, and bin %d of row %d has %.2g of its light beyond the inner "
        "%d; "
        "the products need it to be at most %g",
        name, 2 * half + 1, most - light.begin(), i, *most, kResolutionDiagonals, kMaxOuterLight));
  }
  return absl::OkStatus();
}

// The resolution with kResolutionDiagonals diagonals: its inner ones, or all of them with diagonals of 0
// around.
Array<float, 3> WithDiagonals(const Array<float, 3>& from) {
  const int64_t fibres = from.shape(0), bins = from.shape(2),
                shift = from.shape(1) / 2 - kResolutionHalfWidth;
  Array<float, 3> to({fibres, kResolutionDiagonals, bins});
  for (int64_t i = 0; i < fibres; ++i) {
    for (int64_t k = std::max<int64_t>(0, -shift);
         k < std::min<int64_t>(kResolutionDiagonals, from.shape(1) - shift); ++k)
      std::copy_n(&from(i, k + shift, 0), bins, &to(i, k, 0));
  }
  return to;
}

}  // namespace

absl::StatusOr<UsableSpectra> MakeUsable(const Frame& frame, const Workers& workers) {
  return MakeUsable("frame", frame.spectra, frame.grid.Values(), workers);
}

absl::StatusOr<UsableSpectra> MakeUsable(absl::string_view name, const Spectra& from,
                                         std::vector<double> wave, const Workers& workers) {
  const int64_t fibres = from.flux.shape(0), bins = from.flux.shape(1), diagonals = from.resolution.shape(1);
  if (diagonals % 2 == 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: its resolution has %d diagonals, the products need an odd number", name, diagonals));
  }
  if (bins < kResolutionDiagonals) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: has %d bins, the products need at least %d", name, bins, kResolutionDiagonals));
  }
  UsableSpectra spectra;
  spectra.wave = std::move(wave);
  spectra.resolution = &from.resolution;
  spectra.mask.Reshape(from.mask.shape());
  spectra.flux.Reshape(from.flux.shape());
  spectra.ivar.Reshape(from.flux.shape());
  std::vector<char> finite(static_cast<size_t>(fibres));
  const int64_t elements = diagonals * bins;
  SPEXD_RETURN_IF_ERROR(ParallelFor(fibres, workers, [&](int64_t i) {
    for (int64_t j = 0; j < bins; ++j) {
      const UsableBin bin = UsableBinOf(from.flux(i, j), from.ivar(i, j), from.mask(i, j));
      spectra.flux(i, j) = bin.flux;
      spectra.ivar(i, j) = bin.ivar;
      spectra.mask(i, j) = from.mask(i, j);
    }
    finite[static_cast<size_t>(i)] = AllFinite(
        from.resolution.flat().subspan(static_cast<size_t>(i * elements), static_cast<size_t>(elements)));
    return absl::OkStatus();
  }));
  const bool all_finite = std::all_of(finite.begin(), finite.end(), [](char each) { return each; });
  if (all_finite && diagonals == kResolutionDiagonals) return spectra;
  auto mended = std::make_shared<Array<float, 3>>();
  if (diagonals == kResolutionDiagonals) {
    *mended = from.resolution;
  } else {
    SPEXD_RETURN_IF_ERROR(CheckOuterDiagonals(name, from.resolution));
    *mended = WithDiagonals(from.resolution);
  }
  for (int64_t i = 0; i < fibres; ++i) {
    if (!finite[static_cast<size_t>(i)]) Mend(i, mended.get(), &spectra);
  }
  spectra.resolution = mended.get();
  spectra.mended_resolution = std::move(mended);
  spectra.changed = true;
  return spectra;
}

absl::Status DropPartialBins(const Workers& workers, UsableSpectra* spectra) {
  const int64_t bins = spectra->bins();
  std::vector<char> changed(static_cast<size_t>(spectra->fibres()), 0);
  SPEXD_RETURN_IF_ERROR(ParallelFor(spectra->fibres(), workers, [&](int64_t i) {
    const std::vector<double> ones(static_cast<size_t>(bins), 1);
    std::vector<double> sums(ones.size());
    ResolutionMatrix(*spectra->resolution, i).Multiply(ones.data(), sums.data());
    for (int64_t j = kEdgeBins; j < bins - kEdgeBins; ++j) {
      if (!(spectra->ivar(i, j) > 0) || sums[static_cast<size_t>(j)] > kMinRowSum) continue;
      spectra->mask(i, j) |= kMaskNoData;
      spectra->flux(i, j) = spectra->ivar(i, j) = 0;
      changed[static_cast<size_t>(i)] = 1;
    }
    return absl::OkStatus();
  }));
  if (std::any_of(changed.begin(), changed.end(), [](char each) { return each; })) spectra->changed = true;
  return absl::OkStatus();
}

UsableSpectra BinsOf(const UsableSpectra& spectra, int64_t first, int64_t end) {
  const int64_t fibres = spectra.fibres(), bins = end - first;
  UsableSpectra part;
  part.wave.assign(spectra.wave.begin() + first, spectra.wave.begin() + end);
  part.flux.Reshape({fibres, bins});
  part.ivar.Reshape({fibres, bins});
  part.mask.Reshape({fibres, bins});
  auto resolution = std::make_shared<Array<float, 3>>();
  resolution->Reshape({fibres, kResolutionDiagonals, bins});
  for (int64_t i = 0; i < fibres; ++i) {
    std::copy_n(&spectra.flux(i, first), bins, &part.flux(i, 0));
    std::copy_n(&spectra.ivar(i, first), bins, &part.ivar(i, 0));
    std::copy_n(&spectra.mask(i, first), bins, &part.mask(i, 0));
    for (int k = 0; k < kResolutionDiagonals; ++k)
      std::copy_n(&(*spectra.resolution)(i, k, first), bins, &(*resolution)(i, k, 0));
  }
  part.resolution = resolution.get();
  part.mended_resolution = std::move(resolution);
  part.changed = true;
  return part;
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
