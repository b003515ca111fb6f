#include "core/model/traces/traces.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_format.h"

namespace spexd {
namespace {

// Upper bounds of the Legendre polynomials' absolute values from `first` to `last` Angstrom, by degree. They
// are the polynomials' values at t = 1, and beyond the domain at the largest |t|.
std::vector<double> PolynomialBounds(const LegendreTable& table, WaveRange range) {
  double reach = 1;
  for (const double wave : {range.first, range.last}) {
    reach = std::max(reach, std::abs(2 * (wave - table.wave_min) / (table.wave_max - table.wave_min) - 1));
  }
  constexpr double kMax = std::numeric_limits<double>::max();
  std::vector<double> bounds(static_cast<size_t>(table.coeff.shape(1)), reach <= kMax ? 1 : HUGE_VAL);
  if (bounds.size() > 1) bounds[1] = reach;
  for (size_t k = 2; k < bounds.size(); ++k) {
    const double n = static_cast<double>(k);
    bounds[k] = ((2 * n - 1) * reach * bounds[k - 1] - (n - 1) * bounds[k - 2]) / n;
    if (!(bounds[k] <= kMax)) bounds[k] = HUGE_VAL;  // likewise for all higher degrees
  }
  return bounds;
}

}  // namespace

bool IsDomain(double wave_min, double wave_max) {
  return wave_min < wave_max && wave_min >= -kMaxWavelength && wave_max <= kMaxWavelength;
}

absl::Status CheckTable(const std::string& name, const LegendreTable& table, int fibres) {
  if (table.coeff.shape(0) != fibres) {
    return absl::InvalidArgumentError(
        absl::StrFormat("PSF: %s has %d fibres, the PSF %d", name, table.coeff.shape(0), fibres));
  }
  const int64_t coefficients = table.coeff.shape(1);
  if (coefficients < 1 || coefficients > kMaxLegendreCoefficients) {
    return absl::InvalidArgumentError(absl::StrFormat("PSF: %s has %d coefficients, must be 1 to %d", name,
                                                      coefficients, kMaxLegendreCoefficients));
  }
  if (!IsDomain(table.wave_min, table.wave_max)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("PSF: %s has WAVEMIN %g, WAVEMAX %g; both must be within %g Angstrom either way and "
                        "WAVEMIN the lesser",
                        name, table.wave_min, table.wave_max, kMaxWavelength));
  }
  for (int i = 0; i < fibres; ++i) {
    for (double c : table.coeff.Row(i)) {
      if (!std::isfinite(c)) {
        return absl::InvalidArgumentError(
            absl::StrFormat("PSF: %s has a coefficient that is not finite in row %d", name, i));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckValues(const std::string& name, const LegendreTable& table, WaveRange range) {
  const std::vector<double> bounds = PolynomialBounds(table, range);
  for (int64_t fibre = 0; fibre < table.coeff.shape(0); ++fibre) {
    const absl::Span<const double> row = table.coeff.Row(fibre);
    double most = 0;
    for (size_t k = 0; k < row.size(); ++k) most += row[k] == 0 ? 0 : std::abs(row[k]) * bounds[k];
    if (most <= kMaxSeriesValue) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("PSF: %s of fibre %d may reach %.3g between %.6g and %.6g Angstrom, the limit is %g",
                        name, fibre, most, range.first, range.last, kMaxSeriesValue));
  }
  return absl::OkStatus();
}

// Performs the same operations as EvaluateMany, for one wavelength.
double Evaluate(const LegendreTable& table, int fibre, double wave) {
  const absl::Span<const double> c = table.coeff.Row(fibre);
  const double t = 2 * (wave - table.wave_min) / (table.wave_max - table.wave_min) - 1;
  double b1 = 0, b2 = 0;
  for (int k = static_cast<int>(c.size()) - 1; k > 0; --k) {
    const double rise = (2.0 * k + 1) / (k + 1), fall = (k + 1.0) / (k + 2);
    const double b0 = c[k] + rise * t * b1 - fall * b2;
    b2 = b1;
    b1 = b0;
  }
  return c[0] + t * b1 - 0.5 * b2;
}

void EvaluateMany(const LegendreTable& table, int fibre, absl::Span<const double> wave,
                  absl::Span<double> out) {
  constexpr size_t kBlock = 64;  // wavelengths whose recurrences run side by side
  const absl::Span<const double> c = table.coeff.Row(fibre);
  const double width = table.wave_max - table.wave_min;
  for (size_t begin = 0; begin < wave.size(); begin += kBlock) {
    const size_t count = std::min(kBlock, wave.size() - begin);
    double t[kBlock] = {}, b1[kBlock] = {}, b2[kBlock] = {};
    for (size_t i = 0; i < count; ++i) t[i] = 2 * (wave[begin + i] - table.wave_min) / width - 1;
    for (int k = static_cast<int>(c.size()) - 1; k > 0; --k) {
      const double rise = (2.0 * k + 1) / (k + 1), fall = (k + 1.0) / (k + 2), coefficient = c[k];
      for (size_t i = 0; i < kBlock; ++i) {
        const double b0 = coefficient + rise * t[i] * b1[i] - fall * b2[i];
        b2[i] = b1[i];
        b1[i] = b0;
      }
    }
    for (size_t i = 0; i < count; ++i) out[begin + i] = c[0] + t[i] * b1[i] - 0.5 * b2[i];
  }
}

}  // namespace spexd
