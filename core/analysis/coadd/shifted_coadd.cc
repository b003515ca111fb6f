#include "core/analysis/coadd/shifted_coadd.h"

#include <algorithm>
#include <cmath>
#include <stop_token>

#include "absl/strings/str_format.h"
#include "core/analysis/coadd/shift_taps.h"
#include "core/analysis/resolution_matrix.h"
#include "core/extract/cpu/stages/factor.h"
#include "core/extract/cpu/stages/resolution.h"
#include "core/extract/formulas.h"
#include "core/model/tolerances.h"

namespace spexd {
namespace {

// The largest number of coadd bins that a bin of an exposure sees: the taps of kResolutionDiagonals bins,
// which the stretch of a shift moves apart by at most one more bin.
constexpr int kMaxTouched = kShiftTaps + kResolutionDiagonals;
constexpr int kHalfBand = kMaxTouched - 1;
// The part of a bin outside the coadd's grid above which it has no weight, because the coadd has no light
// there.
constexpr double kMaxOutside = 1e-3;
constexpr double kPrior = 1e-6;      // part of the median diagonal element; prior of flux 0
constexpr double kMaxMisfit = 1e-6;  // Angstrom by which the ends of grids with one step may differ

// The part of the coadd's bins that an exposure's bin sees: a row of R_e S_e.
struct SeenBins {
  int64_t first = 0;
  double weight[kMaxTouched] = {};
};

SeenBins SeenBy(const ShiftedExposure& from, const std::vector<ShiftTaps>& taps, int64_t bin) {
  const int64_t bins = from.grid.count, row = from.exposure.fibre;
  const int64_t begin = std::max<int64_t>(0, bin - kResolutionHalfWidth),
                end = std::min(bins, bin + kResolutionHalfWidth + 1);
  SeenBins seen;
  seen.first = taps[begin].first;
  for (int64_t j = begin; j < end; ++j) {
    const double element = from.exposure.spectra->resolution(row, bin - j + kResolutionHalfWidth, j);
    double* const to = seen.weight + (taps[j].first - seen.first);
    for (int t = 0; t < kShiftTaps; ++t) to[t] += element * taps[j].weight[t];
  }
  return seen;
}

// Whether the coadd's grid contains all bins that matter in what a bin sees.
bool IsInside(const SeenBins& seen, int64_t bins) {
  double outside = 0, all = 0;
  for (int t = 0; t < kMaxTouched; ++t) {
    const double size = std::abs(seen.weight[t]);
    all += size;
    if (seen.first + t < 0 || seen.first + t >= bins) outside += size;
  }
  return outside <= kMaxOutside * all;
}

double WeightOf(const Exposure& exposure, int64_t bin) {
  const Spectra& spectra = *exposure.spectra;
  const double ivar = spectra.ivar(exposure.fibre, bin);
  const bool usable = spectra.mask(exposure.fibre, bin) == 0 && ivar > 0 && std::isfinite(ivar) &&
                      std::isfinite(spectra.flux(exposure.fibre, bin));
  return usable ? ivar : 0;
}

// A and b, and further sums over the exposures for each bin of the coadd.
struct Sums {
  explicit Sums(int bins)
      : right_hand(bins, 0.0), coverage(bins, 0.0), weight(bins, 0.0), chi2(bins, 0.0), masks(bins, 0) {
    for (int j = 0; j < bins; ++j) normal.width.push_back(std::min(kHalfBand, bins - 1 - j));
    normal.Shape();
    std::fill_n(normal.Diagonal(0), (normal.most() + 1) * normal.stride(), 0.0);
  }

  cpu::SymmetricBand normal;
  std::vector<double> right_hand;
  std::vector<double> coverage;      // [bin]: diagonal of A if each usable bin had an ivar of 1
  std::vector<double> weight, chi2;  // [bin]: sums over the exposures' bins that are nearest
  std::vector<uint32_t> masks;
};

void AddBin(const SeenBins& seen, double weight, double flux, Sums* sums) {
  const int bins = sums->normal.size();
  const int begin = static_cast<int>(std::max<int64_t>(0, -seen.first)),
            end = static_cast<int>(std::min<int64_t>(kMaxTouched, bins - seen.first));
  for (int t = begin; t < end; ++t) {
    const double product = weight * seen.weight[t];
    sums->right_hand[seen.first + t] += product * flux;
    sums->coverage[seen.first + t] += seen.weight[t] * seen.weight[t];
    for (int u = t; u < end; ++u) sums->normal.Diagonal(u - t)[seen.first + t] += product * seen.weight[u];
  }
}

void AddExposure(const ShiftedExposure& from, const WavelengthGrid& grid, Sums* sums) {
  const Spectra& spectra = *from.exposure.spectra;
  const int64_t row = from.exposure.fibre, bins = sums->normal.size();
  std::vector<ShiftTaps> taps;
  for (int64_t i = 0; i < from.grid.count; ++i) {
    taps.push_back(TapsAt(PositionInCoadd(from.grid, i, from.velocity, grid)));
  }
  for (int64_t i = 0; i < from.grid.count; ++i) {
    const int64_t nearest = taps[i].first + kShiftHalf;
    const bool on_grid = nearest >= 0 && nearest < bins;
    if (on_grid) sums->masks[nearest] |= spectra.mask(row, i);
    const double weight = WeightOf(from.exposure, i);
    if (weight == 0) continue;
    const SeenBins seen = SeenBy(from, taps, i);
    if (!IsInside(seen, bins)) continue;
    AddBin(seen, weight, spectra.flux(row, i), sums);
    if (!on_grid) continue;
    sums->weight[nearest] += weight;
    if (!spectra.chi2pix.empty()) sums->chi2[nearest] += weight * spectra.chi2pix(row, i);
  }
}

// The amount added to the diagonal, so that bins without data have flux 0.
double PriorOf(const Sums& sums) {
  std::vector<double> diagonal;
  for (int j = 0; j < sums.normal.size(); ++j) {
    if (sums.normal.Diagonal(0)[j] > 0) diagonal.push_back(sums.normal.Diagonal(0)[j]);
  }
  if (diagonal.empty()) return 0;
  const auto middle = diagonal.begin() + static_cast<std::ptrdiff_t>(diagonal.size() / 2);
  std::nth_element(diagonal.begin(), middle, diagonal.end());
  return kPrior * *middle;
}

void ReportNoData(int64_t fibre, int64_t bin, Spectra* to) {
  to->flux(fibre, bin) = 0;
  to->ivar(fibre, bin) = 0;
  to->mask(fibre, bin) |= kMaskNoData;
}

void Report(const Sums& sums, const cpu::SquareRoot& root, int64_t fibre, Spectra* to) {
  const int bins = sums.normal.size();
  for (int j = 0; j < bins; ++j) {
    const double flux = ReportedFlux(root.applied[j], root.row_sum[j], 1),
                 ivar = ReportedIvar(root.row_sum[j], 1);
    to->mask(fibre, j) = sums.weight[j] > 0 ? 0 : sums.masks[j];
    to->chi2pix(fibre, j) = static_cast<float>(sums.weight[j] > 0 ? sums.chi2[j] / sums.weight[j] : 0);
    to->flux(fibre, j) = RoundToFloat(flux);
    to->ivar(fibre, j) = RoundToFloat(ivar);
    if (!HasData(sums.coverage[j]) || !IsReportable(flux, ivar)) ReportNoData(fibre, j, to);
  }
  for (int k = 0; k < kResolutionDiagonals; ++k) {
    const Diagonal at = ResolutionMatrix::DiagonalAt(k, bins);
    const int d = static_cast<int>(at.offset);
    auto row = to->resolution.Row(fibre, k);
    std::fill(row.begin(), row.end(), 0.0f);
    for (int64_t j = at.first; j < at.end; ++j) {
      const double entry = root.diagonal[std::abs(d)][std::min(j, j + d)];
      row[j] = RoundToFloat(ReportedResolution(entry, root.row_sum[j + d], d));
    }
  }
}

// Reports a coadd in which no exposure has any weight: only masks, and an identity as resolution.
void ReportNothing(const Sums& sums, int64_t fibre, Spectra* to) {
  for (int k = 0; k < kResolutionDiagonals; ++k) {
    auto row = to->resolution.Row(fibre, k);
    std::fill(row.begin(), row.end(), k == kResolutionHalfWidth ? 1.0f : 0.0f);
  }
  for (int j = 0; j < sums.normal.size(); ++j) {
    to->mask(fibre, j) = sums.masks[j];
    to->chi2pix(fibre, j) = 0;
    ReportNoData(fibre, j, to);
  }
}

}  // namespace

absl::Status CheckShifted(const ShiftedExposure& exposure, const WavelengthGrid& grid) {
  const WavelengthGrid& from = exposure.grid;
  if (!(std::abs(exposure.velocity) <= kMaxShift)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("velocity: %g km/s, must be -%g to %g", exposure.velocity, kMaxShift, kMaxShift));
  }
  if (!(std::abs(from.step - grid.step) * grid.count < kMaxMisfit)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "wavelengths: the step is %.9g Angstrom, must be %.9g as the coadd's", from.step, grid.step));
  }
  const double begin = PositionInCoadd(from, 0, exposure.velocity, grid),
               end = PositionInCoadd(from, from.count - 1, exposure.velocity, grid);
  if (!(end >= 0 && begin <= grid.count - 1)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("wavelengths: %g to %g Angstrom have no bin in common with the coadd's %g to %g",
                        from.first, from.last(), grid.first, grid.last()));
  }
  const int64_t diagonals = exposure.exposure.spectra->resolution.shape(1);
  if (diagonals != kResolutionDiagonals) {
    return absl::InvalidArgumentError(
        absl::StrFormat("resolution: has %d diagonals, must have %d", diagonals, kResolutionDiagonals));
  }
  return absl::OkStatus();
}

void CoaddShifted(const std::vector<ShiftedExposure>& exposures, const WavelengthGrid& grid, int64_t fibre,
                  Spectra* to) {
  Sums sums(grid.count);
  for (const ShiftedExposure& exposure : exposures) AddExposure(exposure, grid, &sums);
  const double prior = PriorOf(sums);
  if (prior == 0) return ReportNothing(sums, fibre, to);
  for (int j = 0; j < grid.count; ++j) sums.normal.Diagonal(0)[j] += prior;
  const std::stop_token never;
  cpu::BandFactor factor;
  AlignedBuffer<double> scratch;
  cpu::SquareRootSolver solver;
  cpu::SquareRoot root;
  factor.Compute(sums.normal, 0, never, &scratch);
  factor.Solve(sums.right_hand.data());
  solver.Solve(sums.normal, false, sums.right_hand.data(), never, &root);
  Report(sums, root, fibre, to);
}

}  // namespace spexd
