#include "core/model/low_pass.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace spexd {
namespace {

constexpr double kKaiser = 6;  // shape of the window

// The modified Bessel function I0 for 0 <= x <= 20, to rounding. std::cyl_bessel_i is unsafe in threads: it
// calls lgamma, which writes a global.
double BesselI0(double x) {
  double term = 1, sum = 1;
  for (int k = 1; term > 1e-17 * sum; ++k) {
    term *= 0.25 * x * x / (static_cast<double>(k) * k);
    sum += term;
  }
  return sum;
}

std::vector<double> PositionsOf(const std::vector<double>& wave, const WavelengthGrid& grid) {
  std::vector<double> positions;
  for (const double value : wave) positions.push_back((value - grid.first) / grid.step);
  return positions;
}

}  // namespace

double KaiserWindow(double part) { return BesselI0(kKaiser * std::sqrt(1 - part * part)); }

double LowPassWeight(double bins) {
  if (!(std::abs(bins) < kLowPassHalf)) return 0;
  const double at = 2 * kLowPassCutoff * std::numbers::pi * bins;
  return (at == 0 ? 1 : std::sin(at) / at) * KaiserWindow(bins / kLowPassHalf);
}

LowPass::LowPass(const std::vector<double>& wave, const WavelengthGrid& grid)
    : LowPass(PositionsOf(wave, grid), grid.count) {}

LowPass::LowPass(const std::vector<double>& positions, int bins) : taps_(static_cast<size_t>(bins)) {
  if (positions.size() < 2) return;
  const size_t last = positions.size() - 1;
  const double step = (positions[last] - positions[0]) / static_cast<double>(last),
               scale = std::max(1.0, step);
  constexpr double kSlack = 1e-6;
  for (int bin = 0; bin < bins; ++bin) {
    // Each sample stands for half the way to its neighbours; the outermost ones stand for as much on both
    // sides.
    const double before = positions[0] - 0.5 * (positions[1] - positions[0]),
                 behind = positions[last] + 0.5 * (positions[last] - positions[last - 1]);
    if (!(bin - 0.5 > before - kSlack && bin + 0.5 < behind + kSlack)) continue;
    Taps& taps = taps_[static_cast<size_t>(bin)];
    const auto first = std::lower_bound(positions.begin(), positions.end(), bin - kLowPassHalf * scale);
    taps.sample = static_cast<size_t>(first - positions.begin());
    double total = 0;
    for (size_t k = taps.sample; k <= last && positions[k] < bin + kLowPassHalf * scale; ++k) {
      const double width = k == 0      ? positions[1] - positions[0]
                           : k == last ? positions[last] - positions[last - 1]
                                       : 0.5 * (positions[k + 1] - positions[k - 1]);
      taps.weights.push_back(width * LowPassWeight((positions[k] - bin) / scale));
      total += taps.weights.back();
    }
    for (double& weight : taps.weights) weight /= total;
  }
}

template <typename T>
std::vector<double> LowPass::ApplyTo(absl::Span<const T> samples) const {
  std::vector<double> values;
  for (const Taps& taps : taps_) {
    double sum = taps.weights.empty() ? std::numeric_limits<double>::quiet_NaN() : 0;
    for (size_t k = 0; k < taps.weights.size(); ++k) sum += taps.weights[k] * samples[taps.sample + k];
    values.push_back(sum);
  }
  return values;
}

template std::vector<double> LowPass::ApplyTo(absl::Span<const float>) const;
template std::vector<double> LowPass::ApplyTo(absl::Span<const double>) const;

}  // namespace spexd
