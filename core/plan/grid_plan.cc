#include "core/plan/grid_plan.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/model/tolerances.h"

namespace spexd {
namespace {

constexpr double kMaxSamples = 8192;  // limit on samples along a domain, which a file may make very long

WaveRange DomainOfSpots(const Psf& psf) {
  return std::visit([](const auto& model) { return model.Domain(); }, psf.spots);
}

absl::Status CheckDomain(const char* name, WaveRange domain, const Psf& psf, const WavelengthGrid& grid) {
  if (grid.first >= domain.first - kDomainMargin && grid.last() <= domain.last + kDomainMargin) {
    return absl::OkStatus();
  }
  const WaveRange range = RangeOnCcd(psf);
  const bool overlap = grid.first < range.last && grid.last() > range.first;
  return absl::InvalidArgumentError(absl::StrFormat(
      "wavelength grid %.6g to %.6g Angstrom exceeds the PSF's domain of %s, %.6g to %.6g, by more than %g; "
      "the CCD shows %.6g to %.6g of all fibres: use -w %.10g,%.10g,%.10g",
      grid.first, grid.last(), name, domain.first, domain.last, kDomainMargin, range.first, range.last,
      overlap ? std::max(range.first, grid.first) : range.first,
      overlap ? std::min(range.last, grid.last()) : range.last, grid.step));
}

// The least number of CCD rows between neighbouring bins, of the first, middle and last fibre.
double RowsPerBin(const Psf& psf, const WavelengthGrid& grid) {
  const double middle = 0.5 * (grid.first + grid.last());
  double least = INFINITY;
  for (int fibre : {0, psf.fibres / 2, psf.fibres - 1}) {
    for (double wave : {grid.first, middle, grid.last()}) {
      // The difference over one Angstrom is valid for one bin as for many.
      const double rows =
          Evaluate(psf.traces.y, fibre, wave + 0.5) - Evaluate(psf.traces.y, fibre, wave - 0.5);
      least = std::min(least, std::abs(rows) * grid.step);
    }
  }
  return least;
}

}  // namespace

absl::Status CheckGrid(const Psf& psf, const WavelengthGrid& grid) {
  if (grid.count < 1 || !(grid.step > 0) || !std::isfinite(grid.step) || !std::isfinite(grid.first) ||
      !std::isfinite(grid.last())) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "wavelength grid: first %g, step %g, %d bins; needs finite values, a step > 0 and a bin", grid.first,
        grid.step, grid.count));
  }
  if (grid.count > kMaxWavelengthBins) {
    return absl::InvalidArgumentError(
        absl::StrFormat("wavelength grid: %d bins, the limit is %d", grid.count, kMaxWavelengthBins));
  }
  const LegendreTable &x = psf.traces.x, &y = psf.traces.y;
  SPEXD_RETURN_IF_ERROR(CheckDomain("XTRACE", {x.wave_min, x.wave_max}, psf, grid));
  SPEXD_RETURN_IF_ERROR(CheckDomain("YTRACE", {y.wave_min, y.wave_max}, psf, grid));
  SPEXD_RETURN_IF_ERROR(CheckDomain("its spots", DomainOfSpots(psf), psf, grid));
  // RowsPerBin looks half an Angstrom beyond the grid.
  SPEXD_RETURN_IF_ERROR(CheckValues("YTRACE", y, {grid.first - 0.5, grid.last() + 0.5}));
  const double rows = RowsPerBin(psf, grid);
  if (!(rows >= kMinRowsPerBin)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("wavelength grid: a step of %g Angstrom is %.3g CCD rows, the least is %g", grid.step,
                        rows, kMinRowsPerBin));
  }
  const WavelengthGrid padded = Padded(grid, PadBins(psf, grid));
  const WaveRange range = {padded.first, padded.last()};
  SPEXD_RETURN_IF_ERROR(CheckValues("XTRACE", x, range));
  SPEXD_RETURN_IF_ERROR(CheckValues("YTRACE", y, range));
  return std::visit([range](const auto& model) { return model.CheckOn(range); }, psf.spots);
}

WaveRange RangeOnCcd(const Psf& psf) {
  const LegendreTable &x = psf.traces.x, &y = psf.traces.y;
  const WaveRange spots = DomainOfSpots(psf);
  const WaveRange domain = {std::ceil(std::max({x.wave_min, y.wave_min, spots.first})),
                            std::floor(std::min({x.wave_max, y.wave_max, spots.last}))};
  const double step = std::max(1.0, std::ceil((domain.last - domain.first) / kMaxSamples));
  WaveRange range = {INFINITY, -INFINITY};
  for (double wave = domain.first; wave <= domain.last; wave += step) {
    bool on_ccd = true;
    for (int fibre = 0; fibre < psf.fibres && on_ccd; ++fibre) {
      const double row = Evaluate(y, fibre, wave);
      on_ccd = !(row < 0 || row > psf.rows - 1);  // a fibre without a trace (NaN) limits nothing
    }
    if (!on_ccd) continue;
    range.first = std::min(range.first, wave);
    range.last = wave;
  }
  return range.first <= range.last ? range : WaveRange{y.wave_min, y.wave_max};
}

bool IsFineGrid(const WavelengthGrid& grid) {
  // A barycentric factor makes a step of 0.4 slightly smaller; such a grid is not fine.
  return grid.step < kFineGridStep * (1 - 1e-3);
}

int PadBins(const Psf& psf, const WavelengthGrid& grid) {
  return std::max(kMinPadBins, static_cast<int>(std::ceil((psf.spot_rows() + 1) / RowsPerBin(psf, grid))));
}

int ReachEstimate(const Psf& psf, const WavelengthGrid& grid) {
  // At the same wavelength, the rows of neighbouring fibres differ by a few.
  return std::min(grid.count, static_cast<int>(std::ceil((psf.spot_rows() + 4) / RowsPerBin(psf, grid))));
}

int FibreReachEstimate(const Psf& psf) {
  const double wave = 0.5 * (psf.traces.x.wave_min + psf.traces.x.wave_max);
  int reach = 0;
  for (int first : {0, psf.fibres / 2}) {
    const double x = Evaluate(psf.traces.x, first, wave);
    int apart = 0;
    while (first + apart + 1 < psf.fibres &&
           std::abs(Evaluate(psf.traces.x, first + apart + 1, wave) - x) < psf.spot_columns() + 1) {
      ++apart;
    }
    reach = std::max(reach, apart);
  }
  return reach;
}

int ColumnsEstimate(const Psf& psf, const WavelengthGrid& grid, int bundle_size) {
  // A few bundles at a few wavelengths are enough: between those, traces bend by less than a spot.
  const int size = std::min(bundle_size, psf.fibres), step = std::max(size, psf.fibres / 20);
  double widest = 0;
  for (int first = 0; first < psf.fibres; first += step) {
    double low = psf.columns, high = 0;
    for (int fibre : {first, std::min(first + size, psf.fibres) - 1}) {
      for (int k = 0; k <= 4; ++k) {
        const double x = Evaluate(psf.traces.x, fibre, grid.first + 0.25 * k * (grid.last() - grid.first));
        low = std::min(low, x);
        high = std::max(high, x);
      }
    }
    widest = std::max(widest, high - low);
  }
  return static_cast<int>(std::min(widest, 1.0 * psf.columns)) + 2 * psf.spot_columns();
}

WavelengthGrid Padded(const WavelengthGrid& grid, int pad) {
  return {grid.first - pad * grid.step, grid.step, grid.count + 2 * pad};
}

}  // namespace spexd
