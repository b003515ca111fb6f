#include "core/simulate/truth_grid.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <variant>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"

namespace spexd {
namespace {

constexpr double kOverscan = 12;                  // most Angstrom beyond the domain
constexpr double kOverscanRows = 32;              // CCD rows beyond the CCD; the same limit beyond the domain
constexpr int kSamples = 4096;                    // number of samples of traces along their domain
constexpr int kLeastSamples = 64;                 // least number of samples of a spectrum
constexpr double kMaxSamples = int64_t{1} << 28;  // most samples of all true spectra together

std::vector<int> FibresWithLight(const Psf& psf) {
  std::vector<int> fibres;
  for (int fibre = 0; fibre < psf.fibres; ++fibre) {
    if (!std::visit([fibre](const auto& model) { return model.IsEmptyFibre(fibre); }, psf.spots))
      fibres.push_back(fibre);
  }
  return fibres;
}

// The wavelengths at which any of the fibres has light on the CCD, up to the next sample beyond; first > last
// if there are none.
WaveRange RangeWithLight(const Psf& psf, const std::vector<int>& fibres) {
  const LegendreTable &x = psf.traces.x, &y = psf.traces.y;
  const WaveRange spots = std::visit([](const auto& model) { return model.Domain(); }, psf.spots);
  const WaveRange domain = {std::max({x.wave_min, y.wave_min, spots.first}),
                            std::min({x.wave_max, y.wave_max, spots.last})};
  const auto sample = [&domain](int k) {
    const double part = std::clamp(k, 0, kSamples) / static_cast<double>(kSamples);
    return part == 1 ? domain.last : domain.first + part * (domain.last - domain.first);
  };
  int first = kSamples + 1, last = -1;
  for (int k = 0; k <= kSamples && domain.first < domain.last; ++k) {
    const bool on_ccd = std::ranges::any_of(fibres, [&](int fibre) {
      const double row = Evaluate(y, fibre, sample(k));
      return row >= -kOverscanRows && row <= psf.rows - 1 + kOverscanRows;
    });
    if (!on_ccd) continue;
    first = std::min(first, k);
    last = k;
  }
  return first <= last ? WaveRange{sample(first - 1), sample(last + 1)} : WaveRange{1, 0};
}

// The Angstroms in the narrowest CCD row, from a few fibres; infinite if all light is on one row.
double NarrowestRow(const Psf& psf, const std::vector<int>& fibres, WaveRange range) {
  constexpr int kPlaces = 64;
  const double span = range.last - range.first, half = span / 4096;
  double most = 0;  // rows per Angstrom
  for (const int fibre : {fibres.front(), fibres[fibres.size() / 2], fibres.back()}) {
    for (int k = 0; k <= kPlaces; ++k) {
      const double wave = range.first + span * k / kPlaces;
      const double rows =
          Evaluate(psf.traces.y, fibre, wave + half) - Evaluate(psf.traces.y, fibre, wave - half);
      most = std::max(most, std::abs(rows) / (2 * half));
    }
  }
  return 1 / most;
}

}  // namespace

absl::StatusOr<WavelengthGrid> MakeTruthGrid(const Psf& psf, TruthOf light) {
  const std::vector<int> fibres = FibresWithLight(psf);
  const WaveRange range = RangeWithLight(psf, fibres);
  if (!(range.first < range.last)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("simulator: no light of the PSF falls on its CCD of %d rows: %d of %d fibres have "
                        "spots, YTRACE is of "
                        "%.6g to %.6g Angstrom",
                        psf.rows, fibres.size(), psf.fibres, psf.traces.y.wave_min, psf.traces.y.wave_max));
  }
  const double row = NarrowestRow(psf, fibres, range);
  const bool is_usual = row >= 2 * kTruthStep && row <= 4 * kTruthStep;
  double step = is_usual ? kTruthStep : std::min(row / 3, (range.last - range.first) / kLeastSamples);
  if (light == TruthOf::kSources) step = std::min(step, kTruthStep);
  const double overscan = std::min(kOverscan, kOverscanRows * row);
  const double first = range.first - overscan, last = range.last + overscan;
  const double count = std::ceil((last - first) / step) + 1;
  const double most = std::min(1.0 * kMaxWavelengthBins, kMaxSamples / psf.fibres);
  if (!(count <= most)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "simulator: true spectra of %d fibres from %.6g to %.6g Angstrom have %.6g samples of %.3g Angstrom "
        "each, the limit is %.6g",
        psf.fibres, first, last, count, step, most));
  }
  return WavelengthGrid{first, step, static_cast<int>(count)};
}

}  // namespace spexd
