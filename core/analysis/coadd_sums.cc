#include "core/analysis/coadd_sums.h"

#include <algorithm>
#include <cmath>

#include "core/analysis/resolution_matrix.h"

namespace spexd {
namespace {

// The weight of a bin of an exposure; 0 if its values are not finite.
double WeightOf(const Exposure& exposure, int64_t bin) {
  const double ivar = exposure.spectra->ivar(exposure.fibre, bin),
               flux = exposure.spectra->flux(exposure.fibre, bin);
  return ivar > 0 && std::isfinite(ivar) && std::isfinite(flux) ? ivar : 0;
}

// Calls `use` with the diagonal and the column of each element of row `row` of a resolution.
template <typename Use>
void ForRow(int64_t row, int64_t bins, const Use& use) {
  for (int k = 0; k < kResolutionDiagonals; ++k) {
    const Diagonal diagonal = ResolutionMatrix::DiagonalAt(k, bins);
    const int64_t column = row - diagonal.offset;
    if (column >= diagonal.first && column < diagonal.end) use(k, column);
  }
}

}  // namespace

void CoaddSums::Clear(int64_t bin) {
  for (const Row row : {kWeight, kFlux, kChi2}) values_(row, bin) = 0;
  ForRow(bin, values_.shape(1), [&](int k, int64_t column) { values_(kResolution + k, column) = 0; });
}

void CoaddSums::AddBin(const Exposure& exposure, int64_t bin, double weight) {
  const Spectra& from = *exposure.spectra;
  const int64_t fibre = exposure.fibre;
  values_(kWeight, bin) += weight;
  values_(kFlux, bin) += weight * from.flux(fibre, bin);
  if (!from.chi2pix.empty()) values_(kChi2, bin) += weight * from.chi2pix(fibre, bin);
  ForRow(bin, values_.shape(1), [&](int k, int64_t column) {
    values_(kResolution + k, column) += weight * from.resolution(fibre, k, column);
  });
}

void CoaddSums::Add(const Exposure& exposure) {
  for (int64_t j = 0; j < values_.shape(1); ++j) {
    const uint32_t mask = exposure.spectra->mask(exposure.fibre, j);
    const double weight = WeightOf(exposure, j);
    uint32_t& masks_so_far = masks_[static_cast<size_t>(j)];
    const bool had_good = masks_so_far == 0 && values_(kWeight, j) > 0;
    if (mask == 0 && weight > 0) {
      if (masks_so_far != 0) Clear(j);  // drops the masked values
      masks_so_far = 0;
      AddBin(exposure, j, weight);
    } else if (!had_good) {
      masks_so_far |= mask;
      if (weight > 0) AddBin(exposure, j, weight);
    }
  }
}

void CoaddSums::Write(int64_t fibre, Spectra* to) const {
  const int64_t bins = values_.shape(1);
  const auto mean = [&](int64_t row, int64_t column, int64_t weight_of) {
    const double weight = values_(kWeight, weight_of);
    return weight > 0 ? static_cast<float>(values_(row, column) / weight) : 0.0f;
  };
  for (int64_t j = 0; j < bins; ++j) {
    to->flux(fibre, j) = mean(kFlux, j, j);
    to->ivar(fibre, j) = static_cast<float>(values_(kWeight, j));
    to->mask(fibre, j) = masks_[static_cast<size_t>(j)] | (values_(kWeight, j) > 0 ? 0 : kMaskNoData);
    to->chi2pix(fibre, j) = mean(kChi2, j, j);
  }
  for (int k = 0; k < kResolutionDiagonals; ++k) {
    const Diagonal diagonal = ResolutionMatrix::DiagonalAt(k, bins);
    auto row = to->resolution.Row(fibre, k);
    std::fill(row.begin(), row.end(), 0.0f);
    for (int64_t j = diagonal.first; j < diagonal.end; ++j)
      row[static_cast<size_t>(j)] = mean(kResolution + k, j, j + diagonal.offset);
  }
}

}  // namespace spexd
